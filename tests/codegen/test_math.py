"""The accuracy of the vector math, in ulp, over stratified arguments: at most what is published, on every path."""

import pathlib

import numpy as np
import pytest

from tedsl.codegen.formulas.exponential import EXP_BOUND
from tedsl.codegen.formulas.table import DOUBLE, LIBM, MAX_ULP, TRIGONOMETRIC
from tedsl.codegen.formulas.trigonometric import NEAR
from tedsl.codegen.llvm.math import trigonometric
from tedsl.codegen.llvm.math.table import documentation
from tests.codegen.math_harness import HAS_AVX512, SPECIAL, compiled, floats32, floats64, reference, worst_ulp

pytestmark = pytest.mark.sampled(2)

UNARY = sorted({*DOUBLE, *TRIGONOMETRIC, "rsqrt"} - {"pow", "atan2", "hypot"})
# Arguments with the largest errors that searches of all float32 and of many float64 found: of log2, log10 (two), atan, sigmoid,
# sin (two), cos, tan (two);
# of acosh (two), atan, tanh, atanh, log2
HARD32 = np.array([0.7430392, 0.74992496, 2.9754467, 1.1204227, -1.1035409, 3.872335, 96.60627, 7.689487e+06, 1876.305,
                   2.3612592], "float32")
HARD64 = np.array([1.0000076168808694, 1.031330086129121, -0.41489757448228765, 0.34654314831781596, 0.12372138034547847,
                   1.3831248683461908])
# Functions with a formula for the tables of AVX-512, of float32 and of float64
BY_TABLES = {32: ("tanh", "erf"), 64: ("log", "log2", "log10", "log1p", "asinh", "acosh", "atanh")}
LONG_DOUBLE = np.finfo(np.longdouble).nmant >= 63  # elsewhere the reference is no better than what it measures


@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
@pytest.mark.parametrize("name", UNARY)
def test_float32_is_within_its_bound(name, fma):
    x = np.concatenate([floats32(100_000), HARD32])
    got = compiled(name, 32, 8 if fma else 4, fma)(x)
    with np.errstate(invalid="ignore"):  # signalling NaNs among the patterns
        error, at = worst_ulp(got, reference(name, x.astype("float64")))
    assert error <= MAX_ULP[name][0], f"{name}({x[at]!r}) = {got[at]!r} is {error} ulp off"


@pytest.mark.skipif(not LONG_DOUBLE, reason="needs a long double of 80 bits as reference")
@pytest.mark.parametrize("name, path", [(n, path) for n in UNARY if n != "erf" for path in (
    "host", "plain", *(["without tables"] if HAS_AVX512 and n in BY_TABLES[64] else []))])
def test_float64_is_within_its_bound(name, path):
    x = np.concatenate([floats64(200_000), HARD64])
    got = compiled(name, 64, 2 if path == "plain" else 4, path != "plain", None if path == "host" else False)(x)
    error, at = worst_ulp(got, reference(name, x.astype(np.longdouble)))
    assert error <= MAX_ULP[name][1], f"{name}({x[at]!r}) = {got[at]!r} is {error} ulp off"


def test_erf_of_float64_against_mpmath():
    import mpmath

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-6.5, 6.5, 1500), rng.uniform(-1e-3, 1e-3, 200), np.ldexp(rng.uniform(0.5, 1, 300),
                        rng.integers(-1000, 2, 300))])
    got = compiled("erf", 64, 4, True)(x)
    with mpmath.workprec(200):
        for xi, yi in zip(x, got):
            exact = mpmath.erf(mpmath.mpf(float(xi)))
            assert abs(mpmath.mpf(float(yi)) - exact) <= 2 * np.spacing(abs(float(exact))), xi


@pytest.mark.parametrize("bits, lanes", [(32, 1), (32, 8), (32, 16), (32, 48), (64, 1), (64, 8), (64, 32)])
@pytest.mark.parametrize("name", [*UNARY, "pow"])
def test_lanes_agree_bit_for_bit(name, bits, lanes):
    """A tail computed by scalars must not differ from the vector body, nor one with the instructions of AVX-512 from others,
    but for the functions that have a formula for its tables.
    """
    every = floats32(50_000) if bits == 32 else floats64(50_000)
    x = np.concatenate([np.random.default_rng(0).uniform(-3, 3, 4096).astype(f"float{bits}"), every])
    y = np.random.default_rng(1).permutation(x)
    expected = compiled(name, bits, 2, True, HAS_AVX512 and name in BY_TABLES[bits])(x, y)
    np.testing.assert_array_equal(compiled(name, bits, lanes, True)(x, y), expected)


@pytest.mark.parametrize("lanes", [1, 4, 16, 64])
@pytest.mark.parametrize("tables", [False, True] if HAS_AVX512 else [False])
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_odd_functions_that_end_at_1(name, tables, lanes):
    """The sign of x, of zeros too; at most 1, and 1 from where it rounds to that; x itself where it is small."""
    function = compiled(name, 32, lanes, True, tables)
    x = np.concatenate([np.geomspace(1e-45, 3e38, 20_000), np.linspace(0, 11, 20_000), [0, np.inf]]).astype("float32")
    got = function(x)
    np.testing.assert_array_equal(function(-x).view("uint32"), got.view("uint32") ^ 0x80000000)
    assert got.max() == 1 and (got[x > 9.1] == 1).all() and not np.signbit(got).any()
    if name == "tanh":
        np.testing.assert_array_equal(got[x < 1e-4], x[x < 1e-4])
    assert np.isnan(function(np.full(lanes, np.nan, "float32"))).all()


@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
@pytest.mark.parametrize("name", ["sinh", "asinh", "atanh", "log1p", "tanh"])
def test_small_arguments_are_their_own_results(name, fma):
    """Zeros of both signs and denormals, too."""
    x = np.concatenate([np.geomspace(1e-45, 2.0**-26, 4000), [0.0]]).astype("float32")
    x = np.concatenate([x, -x])
    np.testing.assert_array_equal(compiled(name, 32, 8 if fma else 4, fma)(x).view("uint32"), x.view("uint32"))


@pytest.mark.parametrize("bits, lanes, fma", [(32, 1, True), (32, 8, False), (32, 16, True), (64, 8, True), (64, 2, False)])
def test_exp_of_what_is_not_large_has_the_same_bits(bits, lanes, fma):
    every = floats32(20_000) if bits == 32 else floats64(20_000)
    near = np.random.default_rng(0).uniform(-110 if bits == 32 else -750, EXP_BOUND, 20_000).astype(every.dtype)
    payload = (np.array([np.nan], every.dtype).view(f"int{bits}") + 1).view(every.dtype)
    x = np.concatenate([near, every[~(every > EXP_BOUND)], payload])
    np.testing.assert_array_equal(compiled("exp_bounded", bits, lanes, fma)(x), compiled("exp", bits, lanes, fma)(x))


@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_that_are_nan_are_not_reduced_lane_by_lane(name, fma, monkeypatch):
    """What reduces large ones is exchanged for a constant."""
    monkeypatch.setattr(trigonometric, "_slow_path", lambda name, lanes, bits, fma, symbol: (
        f"define internal <4 x float> @{symbol}.slow(<4 x float> %x) noinline {{\n  ret <4 x float> splat (float 7.0)\n}}\n"))
    function, x = compiled.__wrapped__(name, 32, 4, fma), np.array([0.5, np.nan, 3, -np.nan] + [0, 1, 2, 1e9], "float32")
    np.testing.assert_allclose(function(x), [*getattr(np, name)(x[:4]), 7, 7, 7, 7], rtol=1e-6)


@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_float32_near_multiples_of_half_pi(name, fma):
    """The nearest floats to multiples of pi/2, on both sides of where another reduction begins: what is left of 252.89821 is
    4e-9. The float64 of the reference is enough for that.
    """
    multiples = (np.arange(1, 2400) * (np.pi / 2)).astype("float32")
    x = np.concatenate([multiples, np.nextafter(multiples, np.float32(0)), np.nextafter(multiples, np.float32(1e4)),
                        np.nextafter(np.float32(NEAR), np.float32([0, 0, 1e4, 1e4]))])
    error, at = worst_ulp(compiled(name, 32, 16 if fma else 4, fma)(x), reference(name, x.astype("float64")))
    assert error <= MAX_ULP[name][0], f"{name}({x[at]!r}) is {error} ulp off"


@pytest.mark.skipif(not LONG_DOUBLE, reason="needs a long double of 80 bits as reference")
@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_float64_near_multiples_of_half_pi(name, fma):
    """Up to the 2**20th, from where on arguments are reduced in integers."""
    drawn = np.random.default_rng(0).integers(3000, 2**20, 20_000)
    n = np.concatenate([np.arange(1, 3000), drawn, [2**20 - 1, 2**20, 2**20 + 1]])
    at = n * (np.pi / 2)
    x = np.concatenate([at, np.nextafter(at, 0), np.nextafter(at, 1e9), -at])
    error, at = worst_ulp(compiled(name, 64, 8 if fma else 2, fma)(x), reference(name, x.astype(np.longdouble)))
    assert error <= MAX_ULP[name][1], f"{name}({x[at]!r}) is {error} ulp off"


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_arguments_are_reduced_exactly(name):
    """6381956970095103 * 2**797 is the double closest to a multiple of pi/2 (Muller, Elementary Functions)."""
    import mpmath

    hard = np.array([6381956970095103.0 * 2.0**797, 1e22, 2.0**1000, 1647099.5, -1e300, 5.319372648326541e255])
    got = compiled(name, 64, 2, True)(hard)
    with mpmath.workprec(2000):
        for x, y in zip(hard, got):
            exact = getattr(mpmath, name)(mpmath.mpf(float(x)))
            assert abs(mpmath.mpf(float(y)) - exact) <= 2 * abs(exact) * mpmath.mpf(2)**-52, (name, x)


@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_binary_functions(name, fma):
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    got = compiled(name, 64, 4 if fma else 2, fma)(x, y)
    expected = reference(name, x, y)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(expected)[~np.isnan(got)])
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0)
    rng = np.random.default_rng(0)
    x = np.ldexp(rng.uniform(0.5, 1, 50_000), rng.integers(-20, 20, 50_000))
    x = np.concatenate([x, 1 + rng.uniform(-1e-3, 1e-3, 10_000)])
    y = rng.uniform(-1, 1, 60_000) * 700 / np.abs(np.log(x) + 1e-4)
    got = compiled(name, 64, 4 if fma else 2, fma)(x, y)
    if LONG_DOUBLE:
        # the power of long doubles near 1e300 is good to some 2**-54 only: compare where it is reliable
        error, at = worst_ulp(got, reference(name, x.astype(np.longdouble), y.astype(np.longdouble)))
        assert error <= 2.0, (name, x[at], y[at], got[at], error)


@pytest.mark.skipif(not LONG_DOUBLE, reason="needs a long double of 80 bits as reference")
@pytest.mark.parametrize("lanes, fma", [(1, True), (8, True), (2, False)])
def test_atan2_of_float64_is_within_its_bound(lanes, fma):
    """Points of all sizes, denormal ones and those whose sum overflows among them, most near the diagonals and at tan(pi/8)."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        sizes = rng.choice([*range(-1074, -1018), -899, -900, -1, 0, 999, 1000, 1022, 1023], 100_000)
        y = np.ldexp(rng.uniform(-2, 2, 100_000), sizes)
        ratios = np.ldexp(rng.uniform(0.3, 2.5, 100_000), rng.choice([-60, -1, 0, 0, 0, 30], 100_000))
        x = y * ratios * rng.choice([-1.0, 1.0], 100_000)
    y, x = np.append(y, 0.22152388505674137), np.append(x, 0.4826874065872012)
    got, exact = compiled("atan2", 64, lanes, fma)(y, x), reference("atan2", y.astype(np.longdouble), x.astype(np.longdouble))
    error, at = worst_ulp(got, exact)
    assert error <= MAX_ULP["atan2"][1], (y[at], x[at], got[at], exact[at])


@pytest.mark.parametrize("lanes, fma", [(1, True), (16, True), (4, False)])
def test_atan2_of_float32(lanes, fma):
    """Points of all sizes, near each other and near the axes; zeros of both signs, infinities and NaN as C has them."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2**32 - 1, 30_000, dtype="uint64").astype("uint32").view("float32") for _ in "xy")
    with np.errstate(all="ignore"):
        near = np.ldexp(np.nan_to_num(x), rng.integers(-3, 3, len(x))) * rng.uniform(0.5, 1, len(x)).astype("float32")
    normal = rng.normal(size=(2, 30_000)).astype("float32")
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38], "float32")
    for a, b in ((y, x), (near, x), normal, (v.ravel() for v in np.meshgrid(special, special))):
        with np.errstate(invalid="ignore"):
            exact = np.arctan2(a.astype("float64"), b.astype("float64"))
        got = compiled("atan2", 32, lanes, fma)(a, b)
        error, at = worst_ulp(got, exact)
        assert error <= MAX_ULP["atan2"][0], (a[at], b[at], got[at], exact[at])
        there = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(exact[there]))


@pytest.mark.parametrize("bits, lanes, fma", [(32, 1, True), (32, 16, True), (32, 4, False), (64, 8, True), (64, 2, False)])
def test_fmod_is_exact(bits, lanes, fma):
    """Quotients of all sizes, whole ones and their neighbours, denormals, infinities, zeros and NaN, with the sign of zeros."""
    rng = np.random.default_rng(0)
    t, unsigned = f"float{bits}", f"uint{bits}"
    x, y = (rng.integers(0, 2**bits - 1, 50_000, dtype=unsigned, endpoint=True).view(t) for _ in "xy")
    with np.errstate(invalid="ignore"):
        near = np.ldexp(x, -rng.integers(0, 60, len(x)))
    small = rng.integers(-50, 50, len(x)).astype(t)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 5e-324], t)
    with np.errstate(all="ignore"):
        near[np.isnan(near)] = 1
        whole = near * rng.integers(0, 2**24, len(x)).astype(t)
        for a, b in ((x, y), (x, near), (small, rng.integers(1, 9, len(x)).astype(t)), (whole, near), (x, x),
                     tuple(v.ravel() for v in np.meshgrid(special, special))):
            got, expected = compiled("fmod", bits, lanes, fma)(a, b), np.fmod(a, b)
            np.testing.assert_array_equal(got, expected)
            there = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(expected[there]))


@pytest.mark.parametrize("bits, lanes, fma", [(32, 1, True), (32, 8, True), (32, 4, False), (64, 8, True)])
def test_remainders_that_are_nan_need_no_call(bits, lanes, fma, monkeypatch):
    """Lanes under a mask are 0 / 0. The function that is called for large quotients is exchanged for one that gives no NaN."""
    monkeypatch.setitem(LIBM, ("fmod", bits), {32: "fmaxf", 64: "fmax"}[bits])
    fmod = compiled.__wrapped__("fmod", bits, lanes, fma)
    a, b = np.transpose([[0, 0], [-1, 0], [np.inf, 2], [-np.inf, np.inf], [np.nan, 1], [np.inf, np.nan], [7, 4], [0, 3]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(fmod(a, b), np.fmod(a, b))
    np.testing.assert_array_equal(fmod(np.full(lanes, 3e30), np.full(lanes, 1.5)), np.full(lanes, 3e30, f"float{bits}"))


@pytest.mark.skipif(not LONG_DOUBLE, reason="needs a long double of 80 bits as reference")
@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
def test_hypot_of_float64_is_within_its_bound(fma):
    """Pairs whose squares overflow or vanish, results that overflow or are denormal, and components of one size."""
    rng = np.random.default_rng(0)
    exponents = rng.integers(-1074, 1025, 100_000), rng.integers(-60, 60, 100_000)
    x, y = (np.ldexp(rng.uniform(-1, 1, 100_000), at) for at in exponents)
    with np.errstate(over="ignore"):
        y[::2] = np.ldexp(x[::2], rng.integers(-30, 30, 50_000))  # else one of them decides the result
    pairs = [(x, y), (x, x), (x, 0 * x), (y, y[::-1])]
    x, y = (np.concatenate([np.concatenate([pair[k], pair[1 - k]]) for pair in pairs]) for k in (0, 1))
    with np.errstate(over="ignore"):
        got = compiled("hypot", 64, 4 if fma else 2, fma)(x, y)
        exact = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(exact.astype("float64")))
    finite = np.isfinite(got)
    error, at = worst_ulp(got[finite], exact[finite])
    assert error <= MAX_ULP["hypot"][1], (x[finite][at], y[finite][at], error)


@pytest.mark.parametrize("fma", [True, False], ids=["host", "plain"])
def test_pow_of_float32(fma):
    pow32 = compiled("pow", 32, 16 if fma else 4, fma)
    special = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2**24 + 2, 2**31, -2**31, 3e38,
                        1e-45, np.inf, -np.inf, np.nan, 0.1], "float32")
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    got = pow32(x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype("float64"), y.astype("float64")).astype("float32")
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(expected)[~np.isnan(got)])
    np.testing.assert_allclose(got, expected, rtol=2e-7, atol=2e-45)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.integers(1, 0x7F800000, 400_000).astype("uint32").view("float32"),
                        (1 + rng.uniform(-0.1, 0.1, 400_000)).astype("float32")])
    with np.errstate(all="ignore"):
        y = (rng.uniform(-106, 90, len(x)) / np.log(x.astype("float64"))).astype("float32")
        error, at = worst_ulp(pow32(x, y), np.power(x.astype("float64"), y.astype("float64")))
    assert error <= MAX_ULP["pow"][0], (x[at], y[at], error)


def test_the_published_table_is_the_one_of_the_code():
    assert max(max(bounds) for bounds in MAX_ULP.values()) <= 2.0
    page = pathlib.Path(__file__).parents[2] / "docs" / "math.md"
    assert page.read_text() == documentation()
