"""The interface onnx.backend."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="models of ONNX need the extra: pip install 'tedsl[onnx]'")

import tedsl.graph.onnx_backend as backend
from tedsl.errors import ArgumentError
from tests.graph.onnx.models import model, node, random


def test_a_model_is_prepared_once_and_run_for_any_shape():
    prepared = backend.prepare(model(node("Softmax", "x", axis=-1), {"x": (["n", "m"], "float32")}))
    for shape in ((2, 3), (5, 4), (2, 3)):
        y, = prepared.run([random(*shape)])
        np.testing.assert_allclose(y.sum(1), np.ones(shape[0]), rtol=1e-5)
    assert len(prepared._graphs) == 2


def test_axes_that_are_inputs_are_read_when_run():
    proto = model(node("ReduceSum", "x a", keepdims=0), {"x": ((2, 3), "float32"), "a": ((1,), "int64")})
    prepared, x = backend.prepare(proto), random(2, 3)
    for axis in (0, 1):
        np.testing.assert_allclose(prepared.run({"x": x, "a": np.array([axis])})[0], x.sum(axis), rtol=1e-6)


def test_a_node_is_run_alone():
    x = random(2, 3)
    y, = backend.run_node(node("Gemm", "x w", transB=1), [x, random(4, 3, seed=1)])
    np.testing.assert_allclose(y, x @ random(4, 3, seed=1).T, rtol=1e-5)
    np.testing.assert_array_equal(backend.run_model(model(node("Neg", "x"), {"x": x}), [x])[0], -x)


def test_devices_and_inputs_are_checked():
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0") and not backend.supports_device("CUDA")
    proto = model(node("Neg", "x"), {"x": ((2,), "float32")})
    with pytest.raises(ArgumentError, match="there is no device 'CUDA'"):
        backend.prepare(proto, "CUDA")
    with pytest.raises(ArgumentError, match=r"takes 1 inputs \(x\), not 2"):
        backend.prepare(proto).run([random(2), random(2)])
