"""A program for an environment in which tedsl-torch is installed from its wheel: parts of a network are torch's."""

import sys
import tempfile
from pathlib import Path

import numpy as np

from tedsl import graph
from tedsl.graph import Spec, ops


def program(x, w):
    hidden = ops.nn.relu(ops.nn.conv2d(x, w, 1, 1, 1))
    return ops.nn.softmax(hidden), hidden * np.full((1, 4, 8, 8), 2, "float32") + hidden


def check():
    """Raises AssertionError unless a network with parts of torch, and the one loaded from its file, are right."""
    g = graph.trace(program, Spec((1, 3, 8, 8)), Spec((4, 3, 3, 3)))
    network = graph.compile(graph.partition(graph.merge_regions(graph.annotate(g, "torch"))))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(tuple(value.shape)).astype("float32") for value in g.inputs]
    with tempfile.TemporaryDirectory() as folder:
        network.save(Path(folder, "net.tedsl"))
        for runs in (network, graph.Network.load(Path(folder, "net.tedsl"))):
            assert "torch" in [module.type_key for module in runs.modules.values()]
            for got, want in zip(runs(*arrays), graph.evaluate(g, *arrays)):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    assert "torch" in graph.codegen_names(), "tedsl-torch is not installed"
    check()
    print("parts of a network ran in torch", sys.modules["tedsl_torch"].__file__)
