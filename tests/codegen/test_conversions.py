"""Casts in machine code: float16 and bfloat16 for all 65536 values, saturation, rounding once."""

import functools
import itertools

import ml_dtypes
import numpy as np
import pytest

from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import Broadcast, Call, Cast, Max, Min, Var
from tedsl.ir.ops import Op
from tests.codegen.kernels import AVX2, PLAIN, RUNNABLE, Kernel, elementwise

pytestmark = [pytest.mark.sampled(2),
              pytest.mark.filterwarnings("ignore:.*encountered in cast")]  # values out of range are meant
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "bool": np.bool_}


def numpy_type(of):
    return np.dtype(NUMPY.get(of, of))


def cast_to(of):
    return lambda v: Cast(dtype(of).with_lanes(v.dtype.lanes), v)


def convert(a, of, lanes, target):
    got = np.zeros(len(a), numpy_type(of))
    kernel = Kernel(elementwise(cast_to(of), [a.dtype.name], of, lanes, len(a)), target)
    assert kernel(a, got) == 0
    return got


def same_floats(got, expected):
    """Equal bits, any NaN for a NaN."""
    nan = np.isnan(expected.astype("float64"))
    np.testing.assert_array_equal(np.isnan(got.astype("float64")), nan)
    bits = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~nan], expected.view(bits)[~nan])


ALL16 = np.arange(65536, dtype=np.uint16)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("of", ["float16", "bfloat16"])
def test_every_16_bit_float_widens_and_comes_back(of, lanes, target):
    a = ALL16.view(numpy_type(of))
    wide = convert(a, "float32", lanes, target)
    same_floats(wide, a.astype("float32"))
    same_floats(convert(wide, of, lanes, target), a)
    same_floats(convert(a, "float64", lanes, target), a.astype("float64"))


def near_halves(of):
    """Floats at, just below and just above the middles between neighbours of the 16-bit type, and the range's ends."""
    a = ALL16.view(numpy_type(of)).astype("float64")
    a = np.unique(a[np.isfinite(a)])
    middle = (a[1:] + a[:-1]) / 2
    ends = [a[-1], a[-1] + (a[-1] - a[-2]) / 2, 1e39 if of == "bfloat16" else 7e4, 5e-324, 1e-50, np.inf, np.nan, 0.0, -0.0]
    return np.concatenate([middle, np.array(ends), -np.array(ends)])


@functools.cache
def around_halves(of, source):
    """Values of `source` at and beside the middles between neighbours of the 16-bit type, and what they round to."""
    middle = near_halves(of).astype(source)
    with np.errstate(over="ignore"):
        a = np.concatenate([middle, np.nextafter(middle, middle.dtype.type(np.inf)),
                            np.nextafter(middle, middle.dtype.type(-np.inf))])
    a = np.concatenate([a, np.zeros(-len(a) % 16, source)])
    rounded = np.array([build.FloatImm(dtype(of), float(v)).value for v in a], "float64")
    return a, rounded.astype(numpy_type(of))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("of", ["float16", "bfloat16"])
def test_rounding_to_16_bits_is_to_nearest_even_and_happens_once(of, lanes, target):
    for source in ("float32", "float64"):
        a, rounded = around_halves(of, source)
        same_floats(convert(a, of, lanes, target), rounded)


@pytest.mark.parametrize("target", [PLAIN, AVX2], ids=str)
@pytest.mark.parametrize("of", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64", "int16", "uint8"])
def test_integers_become_floats_rounded_once(source, of, target):
    info = np.iinfo(source)
    base = [k for e in range(info.bits) for k in (
        2**e - 1, 2**e, 2**e + 1, 2**e + 2**(e - 9 if e > 9 else 0), 3 * 2**e // 2 + 1, 2**e + 2**max(e - 8, 0) + 1,
        2**e + 2**max(e - 24, 0) + 1)]
    values = [v for k in base for v in (k, -k) if info.min <= v <= info.max]
    a = np.array(values + [0] * (-len(values) % 8), source)
    x = Var("x", source)
    expected = np.array([evaluate(Cast(dtype(of), x), {x: int(v)}) for v in a], "float64").astype(numpy_type(of))
    for lanes in (1, 8):
        same_floats(convert(a, of, lanes, target), expected)


EDGES = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, 126.9, 127.0, 127.5, 128.0, -128.0, -128.9, -129.0, 255.0, 256.0,
         32767.0, 32768.0, -32768.0, 65535.0, 65536.0, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0, 4294967295.0,
         4294967296.0, 9.223372036854775e18, 9.223372036854776e18, -9.223372036854776e18, 1.8446744073709552e19, 1e30, -1e30,
         np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("target", [PLAIN, AVX2, RUNNABLE[-1]], ids=str)
@pytest.mark.parametrize("source, of", list(itertools.product(
    ["float16", "float32", "float64"], ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool"])))
def test_floats_become_integers_saturating(source, of, target):
    with np.errstate(over="ignore"):
        a = np.array(EDGES + [0.0] * (-len(EDGES) % 8)).astype(source)
    x = Var("x", source)
    expected = np.array([evaluate(Cast(dtype(of), x), {x: float(v)}) for v in a], numpy_type(of))
    for lanes in (1, 8):
        np.testing.assert_array_equal(convert(a, of, lanes, target), expected)


@pytest.mark.parametrize("source, of", list(itertools.product(["int8", "uint8", "int32", "uint64", "bool"],
                                                         ["int8", "uint16", "int64", "bool", "float32", "bfloat16"])))
def test_integers_wrap_and_bool_is_one_byte(source, of):
    if source == "bool":
        a = np.array([0, 1, 1, 0, 0, 0, 1, 1], np.bool_)
    else:
        info = np.iinfo(source)
        a = np.array([0, 1, 2, 127, info.max, info.min, info.max - 1, 100], source)
    x = Var("x", source)
    values = [evaluate(Cast(dtype(of), x), {x: a.dtype.type(v).item()}) for v in a]
    expected = np.array(values, "float64" if "float" in of else of).astype(numpy_type(of))
    seen = np.uint8 if of == "bool" else numpy_type(of)  # the bytes of a bool
    for lanes in (1, 4):
        np.testing.assert_array_equal(convert(a, of, lanes, PLAIN).view(seen), expected.view(seen))


def test_any_byte_but_zero_is_true():
    a = np.array([0, 1, 2, 255, 0, 128, 0, 7], np.uint8)
    got = np.full(8, 9, np.uint8)
    for lanes in (1, 8):
        assert Kernel(elementwise(lambda v: v, ["bool"], "bool", lanes, 8))(a, got) == 0
        assert got.tolist() == [0, 1, 1, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("source, of", [("float32", "int32"), ("int64", "float64"), ("float16", "uint16"),
                                        ("uint16", "bfloat16")])
def test_reinterpret_keeps_the_bits(source, of):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2**15, 64).astype(f"int{dtype(source).bits}").view(numpy_type(source))
    make = lambda v: Call(dtype(of).with_lanes(v.dtype.lanes), Op.get("tir.reinterpret"), (v,))
    for lanes in (1, 8):
        got = np.zeros(64, numpy_type(of))
        assert Kernel(elementwise(make, [source], of, lanes, 64), PLAIN)(a, got) == 0
        keep = ~np.isnan(a.astype("float64")) & ~np.isnan(got.astype("float64"))
        np.testing.assert_array_equal(got.view(f"u{got.itemsize}")[keep], a.view(f"u{a.itemsize}")[keep])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("source", ["float32", "float64", "float16"])
@pytest.mark.parametrize("of, low, high, checks", [
    ("uint8", 0.0, 255.0, False), ("int8", -128.0, 127.0, False), ("int8", -3.0, 128.0, True), ("uint8", -1.0, 9.0, True),
    ("int16", -5.0, 6.5, False), ("int32", -1e9, 1e9, False), ("uint8", float("nan"), 255.0, True)])
def test_clipped_floats_need_no_limits(of, low, high, checks, source, lanes, target):
    """Floats between constants fit the integers, or are NaN, which becomes 0: only others are compared with both ends."""
    if source == "float16" and of == "int32":
        low, high = -6e4, 6e4
    ends = np.array([0, -0.0, 0.5, -0.5, 1, 126.9, 127, 127.5, 128, 254.9, 255, 255.5, 256, -1, -128, -128.9, -129, 300, -300,
                     6e4, -6e4, np.inf, -np.inf, np.nan, 2.5, 3.5, 7, 8, 9, 10, -2, -3], dtype=source)

    def clipped(v):
        first, last = [number if lanes == 1 else Broadcast(number, lanes) for number in limits]
        return Cast(dtype(of).with_lanes(lanes), Max(Min(v, last), first))

    limits = [build.const(end, source) for end in (low, high)]
    kernel = Kernel(elementwise(clipped, [source], of, lanes, len(ends)), target)
    assert lanes == 1 or ("fcmp oge" in kernel.text) == checks
    got = np.zeros(len(ends), of)
    assert kernel(ends, got) == 0
    v = Var("v", dtype(source))
    scalar = Cast(dtype(of), Max(Min(v, limits[1]), limits[0]))
    np.testing.assert_array_equal(got, [evaluate(scalar, {v: x}) for x in ends])
