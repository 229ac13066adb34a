"""Operators in the versions that old operator sets have, against onnxruntime."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="models of ONNX need the extra: pip install 'tedsl[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="old operators are compared with onnxruntime: pip install onnxruntime")

from tedsl import graph
from tests.graph.onnx.models import model, node, random

X = random(2, 4, 6, 8)
FOUR = {name: random(4, seed=at) + 2 for at, name in enumerate("sbmv")}
CASES = [
    (7, node("BatchNormalization", "x s b m v", epsilon=1e-3), FOUR), (9, node("BatchNormalization", "x s b m v"), FOUR),
    (7, node("Dropout", "x", ratio=0.3), {}), (10, node("Dropout", "x", ratio=0.3), {}),
    (7, node("Upsample", "x", scales=[1.0, 1.0, 2.0, 3.0], mode="nearest"), {}),
    (9, node("Upsample", "x k", mode="linear"), {"k": np.array([1, 1, 2, 2], "float32")}),
    (10, node("Resize", "x k", mode="nearest"), {"k": np.array([1, 1, 2, 0.5], "float32")}),
    (11, node("Resize", "x r k", mode="linear", coordinate_transformation_mode="align_corners"),
     {"r": np.zeros(0, "float32"), "k": np.array([1, 1, 1.5, 2], "float32")}),
    (8, node("TopK", "x", "y i", k=3, axis=1), {}), (10, node("TopK", "x k", "y i", axis=-1), {"k": np.array([2])}),
    (7, node("LogSoftmax", "x", axis=2), {}), (11, node("Hardmax", "x", axis=1), {}),
    (8, node("Expand", "x e"), {"e": np.array([3, 1, 1, 1, 1])}),
    (7, node("ReduceMean", "x", axes=[1, -1], keepdims=0), {}), (11, node("ReduceMax", "x", axes=[2]), {}),
    (13, node("ReduceSum", "x a", keepdims=0), {"a": np.array([1])}), (17, node("ReduceMean", "x", axes=[1]), {}),
    (7, node("AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], count_include_pad=1), {}),
    (10, node("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), {}),
    (8, node("MaxPool", "x", kernel_shape=[2, 3], auto_pad="SAME_LOWER"), {}),
    (10, node("MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 3], ceil_mode=1, strides=[3, 3]), {}),
    (7, node("Gemm", "f w c", alpha=0.5, beta=2.0, transA=1), {"f": random(3, 2), "w": random(3, 5), "c": random(2, 1)}),
    (9, node("Flatten", "x", axis=2), {}), (9, node("ConstantOfShape", "n", "y"), {"n": np.array([2, 3])}),
    (9, node("Scatter", "d i u", axis=1), {"d": random(2, 5), "i": np.array([[1, 3], [0, 4]]), "u": random(2, 2)}),
    (9, node("OneHot", "i n o"), {"i": np.array([1, 0, 2]), "n": np.array(4), "o": np.array([0.5, 2], "float32")}),
    (7, node("LRN", "x", size=3), {}), (7, node("InstanceNormalization", "x s b"), FOUR),
    (7, node("DepthToSpace", "x", blocksize=2), {}),
    (9, node("Cast", "x", to=7), {}), (12, node("Clip", "x l h"), {"l": np.float32(-0.2), "h": np.float32(0.3)}),
    (7, node("PRelu", "x p"), {"p": random(4, 1, 1)}), (7, node("Mean", "x x x"), {}),
    (12, node("ArgMax", "x", axis=2, keepdims=0), {}),
    (16, node("GridSample", "x g", mode="bilinear", padding_mode="reflection"), {"g": random(2, 3, 3, 2)}),
    (13, node("QuantizeLinear", "x q z", axis=1), {"q": random(4) + 1.1, "z": np.array([1, 2, 3, 4], "uint8")}),
]


@pytest.mark.parametrize("opset, operator, constants", CASES, ids=lambda case: getattr(case, "op_type", None))
def test_an_old_operator_is_what_onnxruntime_computes(opset, operator, constants):
    inputs = {"x": X} if "x" in operator.input else {}
    constants = {name: np.asarray(array) for name, array in constants.items() if name in operator.input}
    proto = model(operator, inputs, constants=constants, opset=opset)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    theirs = session.run(["y"], {"x": X} if inputs else {})[0]
    ours = graph.evaluate(graph.from_onnx(proto), *inputs.values())[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
