"""Kernels in the simulator give the bits of the processor's build of the same formulas."""

import functools

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl import te, tir
from tests.like_devices import LIKE_DEVICES
from tests.simulate import programs

FLOATS = {
    "add": lambda a, b: a + b, "fma": lambda a, b: a * b + a, "div": lambda a, b: a / b, "max": lambda a, b: tir.max(a, b),
    "sqrt": lambda a, b: te.sqrt(te.abs(a)), "exp": lambda a, b: te.exp(a), "log": lambda a, b: te.log(te.abs(a)),
    "pow": lambda a, b: te.power(te.abs(a), b), "select": lambda a, b: tir.Select(a < b, a, b), "erf": lambda a, b: te.erf(a),
    "sigmoid": lambda a, b: te.sigmoid(a), "tanh": lambda a, b: te.tanh(a), "cos": lambda a, b: te.cos(a),
    "round": lambda a, b: te.round(a),
    "int32": lambda a, b: a.astype("int32"), "uint8": lambda a, b: te.abs(a).astype("uint8"), "isnan": lambda a, b: te.isnan(a),
    "bfloat16": lambda a, b: (a.astype("bfloat16") * b.astype("bfloat16")).astype("float32")}
INTEGERS = {
    "add": lambda a, b: a + b * a, "floordiv": lambda a, b: te.floordiv(a, b), "floormod": lambda a, b: te.floormod(a, b),
    "truncdiv": lambda a, b: tir.truncdiv(a, b), "shift": lambda a, b: (a << b) ^ (a >> b), "min": lambda a, b: tir.min(a, b),
    "float32": lambda a, b: a.astype("float32"), "float16": lambda a, b: a.astype("float16"), "less": lambda a, b: a < b,
    "popcount": lambda a, b: te.popcount(a)}
TYPES = ((FLOATS, ("float16", "float32", "float64")),
         (INTEGERS, ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")))
CASES = [(name, dtype, function) for table, dtypes in TYPES
         for name, function in table.items() for dtype in dtypes]


def drawn(dtype, count):
    rng = np.random.default_rng(0 if dtype[0] == "f" else 1)
    if dtype[0] == "f":
        edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
        return [np.concatenate([rng.standard_normal(count - 8) * 8, rng.permutation(edges)]).astype(dtype) for _ in range(2)]
    return [rng.integers(-100, 100, count).astype(dtype) for _ in range(2)]


def bound(C):
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 64)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    return s


@pytest.mark.parametrize("name, dtype, formula", CASES, ids=[f"{name}-{dtype}" for name, dtype, _ in CASES])
def test_formulas_give_the_bits_of_the_processor(monkeypatch, name, dtype, formula):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    A, B = (te.placeholder((300,), dtype, name=name) for name in "AB")
    C = te.compute((300,), lambda i: formula(A[i], B[i]), name="C")
    a, b = drawn(dtype, 300)
    expected = np.zeros(300, str(C.dtype))
    tedsl.build(te.create_schedule(C.op), [A, B, C], LIKE_DEVICES)(a, b, expected)
    arrays = [*[tedsl.nd.array(one, tedsl.cuda(0)) for one in (a, b)], tedsl.nd.empty((300,), str(C.dtype), tedsl.cuda(0))]
    with simulate.mode("checked"):
        tedsl.build(bound(C), [A, B, C], "cuda")(*arrays)
    got = arrays[-1].numpy()
    if got.dtype.kind == "f":
        nan = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(got), nan)
        got, expected = got[~nan], expected[~nan]
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), expected.view(f"u{got.itemsize}"))


def test_a_convolution_of_an_image_is_simulated(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    s, args, values = functools.partial(programs.convolution, 3, 224, 10, 5, 55)()
    function = tedsl.build(s, args, "cuda")
    given = programs.inputs(args)
    arrays = [*[tedsl.nd.array(one, tedsl.cuda(0)) for one in given], tedsl.nd.empty((10, 220, 220), "float32", tedsl.cuda(0))]
    function(*arrays)
    np.testing.assert_allclose(arrays[-1].numpy(), values(*given), rtol=1e-5)
    assert simulate.last_report().findings == ()
