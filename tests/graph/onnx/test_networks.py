"""Networks of ONNX against onnxruntime: small images, the architectures whole."""

import pytest

pytest.importorskip("onnx", reason="models of ONNX need the extra: pip install 'tedsl[onnx]'")
pytest.importorskip("onnxruntime", reason="networks are compared with onnxruntime: pip install onnxruntime")

import numpy as np

from tedsl import graph
from tests.graph.onnx.networks import NAMES, difference, expected, network


@pytest.mark.parametrize("name", NAMES)
def test_a_network_gives_what_onnxruntime_gives(name):
    proto, arrays = network(name, 64)
    g = graph.from_onnx(proto)
    assert str(g.outputs[0].spec).startswith("float32[batch")
    assert difference(graph.evaluate(g, *arrays)[0], expected(proto, arrays)) < 1e-4


def test_a_symbolic_batch_is_any_batch():
    proto, arrays = network("bert")
    g = graph.from_onnx(proto)
    assert not {node.operator for node in g.nodes} & {"shape", "concatenate", "strided_slice"}
    three = [np.concatenate([array, array[:, ::-1], array]) for array in arrays]
    assert difference(graph.evaluate(g, *three)[0], expected(proto, three)) < 1e-4
