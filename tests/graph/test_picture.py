"""Graphs as pictures."""

import xml.etree.ElementTree

import numpy as np

from tedsl import graph
from tedsl.graph import Spec, ops
from tedsl.graph.passes import fuse
from tedsl.graph.picture import picture


def network(x):
    w = graph.constant(np.ones((4, 3, 1, 1), "float32"), name="weights")
    return ops.nn.relu(ops.nn.conv2d(x, w, 1, 0, 1))


def test_boxes_name_operators_constants_and_shapes():
    g = graph.trace(network, Spec((1, 3, 8, 8)))
    drawn = str(picture(g))
    xml.etree.ElementTree.fromstring(drawn)
    for text in ("x", "nn.conv2d", "weights float32[4, 3, 1, 1]", "nn.relu", "float32[1, 4, 8, 8]"):
        assert f">{text}<" in drawn


def test_calls_show_what_they_call():
    drawn = str(picture(fuse(graph.trace(network, Spec((1, 3, 8, 8))))))
    assert "nn.conv2d nn.relu" in drawn and drawn.count('class="edge"') == 1


def test_notebooks_show_the_picture():
    html = graph.trace(network, Spec((1, 3, 8, 8)))._repr_html_()
    assert "Graph main" in html and "<svg" in html
