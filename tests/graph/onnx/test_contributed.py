"""Operators that onnxruntime's tools for quantization write, beside what their integers stand for in numpy."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="models of ONNX need the extra: pip install 'tedsl[onnx]'")

from onnx import helper

from tedsl import graph
from tedsl.graph.onnx import ModelRefused, from_onnx
from tests.graph.onnx.models import model

DOMAIN = "com.microsoft"
RNG = np.random.default_rng(0)
A, B = RNG.integers(0, 256, (2, 3, 6, 5)).astype("uint8"), RNG.integers(0, 256, (2, 3, 6, 5)).astype("uint8")
SCALES = {"as": 0.1, "bs": 0.07, "ys": 0.1317}
POINTS = {"az": 120, "bz": 3, "yz": 100}


def constants(dtype="uint8"):
    return {**{name: np.asarray(value, "float32") for name, value in SCALES.items()},
            **{name: np.asarray(value, dtype) for name, value in POINTS.items()}}


def real(q, which, zero=True):
    return (q.astype("int32") - (POINTS[which + "z"] if zero else 0)) * np.float32(SCALES[which + "s"])


def whole(x, dtype="uint8", zero=True):
    limits = np.iinfo(dtype)
    rounded = np.rint(x.astype("float64") / np.float32(SCALES["ys"])) + (POINTS["yz"] if zero else 0)
    return np.clip(rounded, limits.min, limits.max).astype(dtype)


def contributed(operator, names, **attributes):
    inputs = ["" if name == "-" else name for name in names.split()]
    return helper.make_node(operator, inputs, ["y"], domain=DOMAIN, **attributes)


def check(made, inputs, expected, more=None):
    """At most one step off where a sum lies between two; floats within rounding."""
    proto = model([made], inputs, constants={**constants(), **(more or {})}, domains=[DOMAIN])
    g = from_onnx(proto)
    arrays = list(inputs.values())
    for got in (graph.evaluate(g, *arrays)[0], graph.compile(g)(*arrays)):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)
        else:
            apart = np.abs(got.astype(int) - expected.astype(int))
            assert apart.max() <= 1 and (apart > 0).mean() < 0.02


@pytest.mark.parametrize("operator, function", [("QLinearAdd", np.add), ("QLinearMul", np.multiply)])
def test_sums_and_products_of_elements(operator, function):
    check(contributed(operator, "a as az b bs bz ys yz"), {"a": A, "b": B}, whole(function(real(A, "a"), real(B, "b"))))
    check(contributed(operator, "a as - b bs - ys"), {"a": A, "b": B},
          whole(function(real(A, "a", False), real(B, "b", False)), zero=False))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("operator, function, attributes", [
    ("QLinearSigmoid", lambda x: 1 / (1 + np.exp(-x)), {}),
    ("QLinearLeakyRelu", lambda x: np.where(x < 0, x * np.float32(0.2), x), {"alpha": 0.2}),
    ("QLinearSoftmax", softmax, {"axis": -1, "opset": 13}),
    ("QLinearReduceMean", lambda x: x.mean((1, 2), keepdims=True), {"axes": [1, 2], "keepdims": 1}),
    ("QLinearGlobalAveragePool", lambda x: x.mean((2, 3), keepdims=True), {"channels_last": 0}),
    ("QLinearAveragePool", lambda x: x[:, :, :, :4].reshape(2, 3, 3, 2, 2, 2).mean((3, 5)),
     {"kernel_shape": [2, 2], "strides": [2, 2]}),
])
def test_functions_of_one_operand(operator, function, attributes):
    check(contributed(operator, "a as az ys yz", **attributes), {"a": A}, whole(function(real(A, "a"))))


def test_concatenation_and_choice():
    check(contributed("QLinearConcat", "ys yz a as az b bs bz", axis=1), {"a": A, "b": B},
          whole(np.concatenate([real(A, "a"), real(B, "b")], 1)))
    condition = A > B
    check(contributed("QLinearWhere", "c a as az b bs bz ys yz"), {"c": condition, "a": A, "b": B},
          whole(np.where(condition, real(A, "a"), real(B, "b"))))


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("result", ["float32", "uint8"])
def test_products_of_matrices(turned, each, result):
    """With a scale for each result or one for all, alpha, and a bias of int32."""
    q = RNG.integers(0, 256, (4, 9)).astype("uint8")
    w, bias = RNG.integers(-128, 128, (9, 7)).astype("int8"), RNG.integers(-500, 500, 7).astype("int32")
    scale = np.linspace(0.01, 0.02, 7, dtype="float32") if each else np.asarray(0.015, "float32")
    more = {"w": w.T.copy() if turned else w, "ws": scale, "wz": np.zeros(7 if each else (), "int8"), "bias": bias}
    product = 0.5 * real(q, "a") @ (w * scale) + bias * (np.float32(0.5) * np.float32(SCALES["as"]) * scale)
    names = "a as az w ws wz bias" + (" ys yz" if result == "uint8" else "")
    check(contributed("QGemm", names, alpha=0.5, transB=turned), {"a": q},
          whole(product) if result == "uint8" else product.astype("float32"), more)


def test_what_is_not_translated_is_refused():
    made = contributed("QLinearGlobalAveragePool", "a as az ys yz", channels_last=1)
    with pytest.raises(ModelRefused, match=r"com\.microsoft\.QLinearGlobalAveragePool .*: channels_last"):
        from_onnx(model([made], {"a": A}, constants=constants(), domains=[DOMAIN]))
    with pytest.raises(ModelRefused, match=r"com\.microsoft\.Unheard .*: there is no such operator here"):
        from_onnx(model([contributed("Unheard", "a")], {"a": A}, domains=[DOMAIN]))
