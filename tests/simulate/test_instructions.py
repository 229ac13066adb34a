"""Each class of instructions against numpy, in kernels of 128 threads a block."""

import math

import numpy as np
import pytest

from tedsl.errors import DeviceError
from tests.simulate.kernels import compute, kernel, launch

RNG = np.random.default_rng(0)
NUMPY = {"s16": np.int16, "u16": np.uint16, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64,
         "f32": np.float32, "f64": np.float64, "f16": np.float16, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64}


def integers(form, count=600, small=False):
    kind = NUMPY[form]
    ends = np.iinfo(kind)
    if small:
        return RNG.integers(-20 if ends.min else 0, 20, count).astype(kind)
    edges = np.array([ends.min, ends.max, 0, 1, ends.max - 1, ends.min + 1, 2, 7], kind)
    drawn = RNG.integers(ends.min, ends.max, count - 64, dtype=kind, endpoint=True)
    return np.concatenate([drawn, RNG.choice(edges, 64)])


def floats(form, count=600):
    kind = NUMPY[form]
    drawn = (RNG.standard_normal(count - 60) * 10.0 ** RNG.integers(-3, 4, count - 60)).astype(kind)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(kind).tiny, np.finfo(kind).max, 0.5, 1.5, -2.5], kind)
    return np.concatenate([drawn, RNG.choice(edges, 60)])


def same(got, expected):
    """Bits, but for those of NaN."""
    expected = np.asarray(expected, got.dtype)
    if got.dtype.kind == "f":
        nan = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(got), nan)
        bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
        np.testing.assert_array_equal(got[~nan].view(bits), expected[~nan].view(bits))
    else:
        np.testing.assert_array_equal(got, expected)


def exact(function, form):
    """A function of Python integers, with its result wrapped to a type."""
    kind = NUMPY[form]
    bits = 8 * np.dtype(kind).itemsize

    def of(*arrays):
        made = [function(*numbers) & ((1 << bits) - 1) for numbers in zip(*[a.tolist() for a in arrays])]
        return np.array(made, f"u{bits // 8}").view(kind)

    return of


def divided(a, b):
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "min": min, "max": max, "div": divided,
           "rem": lambda a, b: a if b == 0 else a - divided(a, b) * b, "mul.lo": lambda a, b: a * b}


@pytest.mark.parametrize("form", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("name", INTEGER)
def test_arithmetic_of_integers(name, form):
    a, b = integers(form), integers(form, small=name in ("div", "rem"))
    same(compute(f"{name}.{form} R, X, Y", NUMPY[form], a, b), exact(INTEGER[name], form)(a, b))


@pytest.mark.parametrize("form", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_high_halves_of_products_and_multiply_add(form):
    a, b, c = (integers(form) for _ in range(3))
    bits = 8 * a.itemsize
    same(compute(f"mul.hi.{form} R, X, Y", NUMPY[form], a, b), exact(lambda x, y: (x * y) >> bits, form)(a, b))
    same(compute(f"mad.lo.{form} R, X, Y, Z", NUMPY[form], a, b, c), exact(lambda x, y, z: x * y + z, form)(a, b, c))


@pytest.mark.parametrize("form, wide", [("s16", "s32"), ("u16", "u32"), ("s32", "s64"), ("u32", "u64")])
def test_wide_products(form, wide):
    a, b, c = integers(form), integers(form), integers(wide)
    same(compute(f"mul.wide.{form} R, X, Y", NUMPY[wide], a, b), exact(lambda x, y: x * y, wide)(a, b))
    same(compute(f"mad.wide.{form} R, X, Y, Z", NUMPY[wide], a, b, c), exact(lambda x, y, z: x * y + z, wide)(a, b, c))


@pytest.mark.parametrize("form", ["s16", "s32", "s64"])
def test_signs_of_integers(form):
    a = integers(form)
    same(compute(f"abs.{form} R, X", NUMPY[form], a), exact(abs, form)(a))
    same(compute(f"neg.{form} R, X", NUMPY[form], a), exact(lambda x: -x, form)(a))


def test_products_of_bytes_and_of_24_bits():
    a, b, c = integers("s32"), integers("s32"), integers("s32")
    dots = (a.view(np.int8).astype(int) * b.view(np.int8).astype(int)).reshape(-1, 4).sum(axis=1)
    same(compute("dp4a.s32.s32 R, X, Y, Z", np.int32, a, b, c), exact(lambda x, y: x + y, "s32")(dots, c))
    same(compute("mul24.lo.s32 R, X, Y", np.int32, a, b), exact(lambda x, y: x * y, "s32")((a << 8) >> 8, (b << 8) >> 8))


@pytest.mark.parametrize("form", ["b16", "b32", "b64"])
def test_logic(form):
    a, b = integers(form), integers(form)
    for name, function in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        same(compute(f"{name}.{form} R, X, Y", NUMPY[form], a, b), function(a, b))
    same(compute(f"not.{form} R, X", NUMPY[form], a), ~a)


def test_logic_of_predicates():
    a, b = RNG.random(300) < 0.5, RNG.random(300) < 0.5
    same(compute("and.pred R, X, Y", bool, a, b), a & b)
    same(compute("xor.pred R, X, Y", bool, a, b), a ^ b)
    same(compute("not.pred R, X", bool, a), ~a)


@pytest.mark.parametrize("form", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_shifts(form):
    a, by = integers(form), RNG.integers(0, 80, 600).astype(np.uint32)
    bits = 8 * a.itemsize
    same(compute(f"shr.{form} R, X, Y", NUMPY[form], a, by), exact(lambda x, y: x >> min(y, bits), form)(a, by))
    same(compute(f"shl.b{bits} R, X, Y", NUMPY[form], a, by), exact(lambda x, y: x << y if y < bits else 0, form)(a, by))


def test_funnel_shifts():
    a, b, by = integers("u32"), integers("u32"), RNG.integers(0, 70, 600).astype(np.uint32)
    both = lambda x, y: y << 32 | x
    same(compute("shf.l.wrap.b32 R, X, Y, Z", np.uint32, a, b, by),
         exact(lambda x, y, s: (both(x, y) << (s & 31)) >> 32, "u32")(a, b, by))
    same(compute("shf.r.clamp.b32 R, X, Y, Z", np.uint32, a, b, by),
         exact(lambda x, y, s: both(x, y) >> min(s, 32), "u32")(a, b, by))


def field(value, start, length, bits, signed):
    """bfe as the manual of PTX writes it."""
    last = min(start + length - 1, bits - 1)
    sign = 0 if not signed or length == 0 else value >> last & 1
    made = 0
    for i in range(bits):
        made |= (value >> (start + i) & 1 if i < length and start + i <= bits - 1 else sign) << i
    return made


@pytest.mark.parametrize("form", ["s32", "u32", "s64", "u64"])
def test_fields_of_bits(form):
    a, b = integers(form), integers(form)
    bits = 8 * a.itemsize
    start, length = (RNG.integers(0, bits + 10, 600).astype(np.uint32) for _ in range(2))
    mask = (1 << bits) - 1
    got = compute(f"bfe.{form} R, X, Y, Z", NUMPY[form], a, start, length)
    same(got, exact(lambda x, s, n: field(x & mask, s, n, bits, form[0] == "s"), form)(a, start, length))

    def inserted(x, y, s, n):
        made = y & mask
        for i in range(n):
            if s + i < bits:
                made = made & ~(1 << (s + i)) | (x >> i & 1) << (s + i)
        return made

    same(compute(f"bfi.b{bits} R, X, Y, Z, W", NUMPY[form], a, b, start, length), exact(inserted, form)(a, b, start, length))


def test_counts_of_bits():
    for form in ("b32", "b64"):
        a = integers(form)
        bits = 8 * a.itemsize
        same(compute(f"popc.{form} R, X", np.uint32, a), [x.bit_count() for x in a.tolist()])
        same(compute(f"clz.{form} R, X", np.uint32, a), [bits - x.bit_length() for x in a.tolist()])
        same(compute(f"brev.{form} R, X", NUMPY[form], a), [int(f"{x:0{bits}b}"[::-1], 2) for x in a.tolist()])
    a = integers("s32")
    highest = [(~x if x < 0 else x).bit_length() - 1 & 0xFFFFFFFF for x in a.tolist()]
    same(compute("bfind.s32 R, X", np.uint32, a), highest)


def test_permutations_of_bytes_and_functions_of_three_bits():
    a, b, c = integers("u32"), integers("u32"), integers("u32")

    def permuted(x, y, s):
        whole, made = (y << 32 | x).to_bytes(8, "little"), 0
        for place in range(4):
            choice = s >> 4 * place & 15
            byte = whole[choice & 7]
            made |= (255 * (byte >> 7) if choice & 8 else byte) << 8 * place
        return made

    same(compute("prmt.b32 R, X, Y, Z", np.uint32, a, b, c), exact(permuted, "u32")(a, b, c))
    same(compute("lop3.b32 R, X, Y, Z, 0xE8", np.uint32, a, b, c), (a & b) | (a & c) | (b & c))
    same(compute("lop3.b32 R, X, Y, Z, 0x96", np.uint32, a, b, c), a ^ b ^ c)


@pytest.mark.parametrize("form", ["f32", "f64"])
def test_arithmetic_of_floats(form):
    a, b, c = floats(form), floats(form), floats(form)
    with np.errstate(all="ignore"):
        for name, function in (("add", np.add), ("sub", np.subtract), ("mul.rn", np.multiply), ("div.rn", np.divide)):
            same(compute(f"{name}.{form} R, X, Y", NUMPY[form], a, b), function(a, b))
        same(compute(f"sqrt.rn.{form} R, X", NUMPY[form], a), np.sqrt(a))
        same(compute(f"rcp.rn.{form} R, X", NUMPY[form], a), 1 / a)
        same(compute(f"neg.{form} R, X", NUMPY[form], a), -a)
        same(compute(f"abs.{form} R, X", NUMPY[form], a), np.abs(a))
        got = compute(f"fma.rn.{form} R, X, Y, Z", NUMPY[form], a, b, c)
    plain = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    assert np.isfinite(got[plain]).sum() > 400


@pytest.mark.parametrize("form", ["f16", "f32", "f64"])
def test_minima_and_maxima(form):
    a, b = floats(form), floats(form)
    number = lambda pick: [y if math.isnan(x) else x if math.isnan(y) else pick(x, y) for x, y in zip(a.tolist(), b.tolist())]
    zeros = lambda x, y: (math.copysign(1, x), x) if x == 0 == y else (0, x)
    smaller = lambda x, y: min(x, y, key=lambda v: zeros(v, x if x == y else v)) if x == y else min(x, y)
    larger = lambda x, y: max(x, y, key=lambda v: zeros(v, x if x == y else v)) if x == y else max(x, y)
    same(compute(f"min.{form} R, X, Y", NUMPY[form], a, b), number(smaller))
    same(compute(f"max.{form} R, X, Y", NUMPY[form], a, b), number(larger))
    if form != "f64":
        nan = np.isnan(a) | np.isnan(b)
        same(compute(f"max.NaN.{form} R, X, Y", NUMPY[form], a, b), np.where(nan, np.nan, number(larger)))


def test_small_floats_are_flushed_where_the_instruction_says_so():
    a = np.array([1e-39, -1e-39, 1e-30, 2.0], np.float32)
    b = np.array([1.0, 1.0, 1e-15, 3.0], np.float32)
    same(compute("mul.rn.ftz.f32 R, X, Y", np.float32, a, b), np.array([0.0, -0.0, 0.0, 6.0], np.float32))
    same(compute("add.rn.sat.f32 R, X, Y", np.float32, a, b), np.array([1.0, 1.0, 1e-15 + np.float32(1e-30), 1.0], np.float32))


@pytest.mark.parametrize("name, function", [("ex2", np.exp2), ("lg2", np.log2), ("sin", np.sin), ("cos", np.cos),
                                            ("tanh", np.tanh), ("rsqrt", lambda a: 1 / np.sqrt(a))])
def test_approximations_are_rounded_doubles(name, function):
    a = np.abs(floats("f32")) if name in ("lg2", "rsqrt") else floats("f32")
    with np.errstate(all="ignore"):
        same(compute(f"{name}.approx.f32 R, X", np.float32, a), function(a.astype(np.float64)).astype(np.float32))


ORDER = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("form", ["s16", "u32", "s64", "f32", "f64", "f16"])
@pytest.mark.parametrize("name", ORDER)
def test_comparisons(name, form):
    make = floats if form[0] == "f" else integers
    a, b = make(form), make(form)
    a[::3] = b[::3]
    ordered = ORDER[name](a, b)
    nan = (a != a) | (b != b)
    same(compute(f"setp.{name}.{form} R, X, Y", bool, a, b), ordered & ~nan)
    if form[0] == "f":
        same(compute(f"setp.{name}u.{form} R, X, Y", bool, a, b), ordered | nan)
        same(compute(f"setp.nan.{form} R, X, Y", bool, a, b), nan)
        same(compute(f"setp.num.{form} R, X, Y", bool, a, b), ~nan)
    p = RNG.random(a.size) < 0.5
    same(compute(f"setp.{name}.and.{form} R, X, Y, Z", bool, a, b, p), ordered & ~nan & p)


def test_selections():
    a, b, p, c = integers("b32"), integers("b32"), RNG.random(600) < 0.5, integers("s32")
    same(compute("selp.b32 R, X, Y, Z", np.uint32, a, b, p), np.where(p, a, b))
    same(compute("slct.b32.s32 R, X, Y, Z", np.uint32, a, b, c), np.where(c >= 0, a, b))
    same(compute("set.lt.u32.s32 R, X, X", np.uint32, c), np.zeros(600))
    same(compute("set.le.f32.s32 R, X, X", np.float32, c), np.ones(600))
    x = floats("f32")
    same(compute("testp.finite.f32 R, X", bool, x), np.isfinite(x))


@pytest.mark.parametrize("of", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("to", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_conversions_of_integers(to, of):
    a = integers(of)
    same(compute(f"cvt.{to}.{of} R, X", NUMPY[to], a), exact(lambda x: x, to)(a))
    ends = np.iinfo(NUMPY[to])
    same(compute(f"cvt.sat.{to}.{of} R, X", NUMPY[to], a), [max(int(ends.min), min(int(ends.max), x)) for x in a.tolist()])


def test_narrow_conversions_extend_signs():
    a = integers("s32")
    same(compute("cvt.s32.s8 R, X", np.int32, a), a.astype(np.int8).astype(np.int32))
    same(compute("cvt.s16.s8 R, X", np.int16, a.astype(np.int16)), a.astype(np.int8).astype(np.int16))
    same(compute("cvt.u32.u8 R, X", np.uint32, a), a.astype(np.uint8).astype(np.uint32))


@pytest.mark.parametrize("of", ["f16", "f32", "f64"])
@pytest.mark.parametrize("to", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_conversions_to_integers(to, of):
    a = floats(of)
    ends = np.iinfo(NUMPY[to])
    for mode, function in (("rzi", math.trunc), ("rni", round), ("rmi", math.floor), ("rpi", math.ceil)):
        bits = 8 * np.dtype(NUMPY[to]).itemsize
        least = 1 << bits - 1 if to[0] == "u" else -(1 << bits - 1)
        nan = 0 if of != "f64" and bits < 64 else least
        expected = [nan if math.isnan(x) else int(ends.max if x > 0 else ends.min) if math.isinf(x) else
                    max(int(ends.min), min(int(ends.max), function(x))) for x in a.tolist()]
        same(compute(f"cvt.{mode}.{to}.{of} R, X", NUMPY[to], a), np.array(expected, NUMPY[to]))


@pytest.mark.parametrize("of", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_conversions_from_integers(of):
    a = integers(of)
    same(compute(f"cvt.rn.f32.{of} R, X", np.float32, a), a.astype(np.float32))
    same(compute(f"cvt.rn.f64.{of} R, X", np.float64, a), a.astype(np.float64))


def test_conversions_of_floats():
    single, double = floats("f32"), floats("f64")
    with np.errstate(all="ignore"):
        same(compute("cvt.rn.f32.f64 R, X", np.float32, double), double.astype(np.float32))
        same(compute("cvt.f64.f32 R, X", np.float64, single), single.astype(np.float64))
        same(compute("cvt.rn.f16.f32 R, X", np.float16, single), single.astype(np.float16))
        same(compute("cvt.f32.f16 R, X", np.float32, single.astype(np.float16)),
             single.astype(np.float16).astype(np.float32))
        same(compute("cvt.rni.f32.f32 R, X", np.float32, single), np.rint(single))
        same(compute("cvt.rzi.f64.f64 R, X", np.float64, double), np.trunc(double))
        down = compute("cvt.rm.f32.f64 R, X", np.float32, double)
    finite = np.isfinite(double) & np.isfinite(down)
    assert (down[finite] <= double[finite]).all()


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = floats("f32")[:500], floats("f32")[:500]
    a, b = a[np.isfinite(a) & np.isfinite(b)], b[np.isfinite(a) & np.isfinite(b)]
    short = lambda values: values.astype(ml_dtypes.bfloat16)
    got = compute("cvt.rn.bf16.f32 R, X", np.uint16, a)
    np.testing.assert_array_equal(got, short(a).view(np.uint16))
    x, y = short(a).view(np.uint16), short(b).view(np.uint16)
    with np.errstate(all="ignore"):
        expected = short(short(a).astype(np.float64) * short(b).astype(np.float64)).view(np.uint16)
    got = compute("mul.rn.bf16 R, X, Y", np.uint16, x, y)
    np.testing.assert_array_equal(got, expected)


def test_pairs_of_halves():
    a, b = RNG.standard_normal(1200).astype(np.float16), RNG.standard_normal(1200).astype(np.float16)
    pair = lambda values: values.view(np.uint32)
    same(compute("add.rn.f16x2 R, X, Y", np.uint32, pair(a), pair(b)), pair(a + b))
    same(compute("fma.rn.f16x2 R, X, Y, X", np.uint32, pair(a), pair(b)),
         pair((a.astype(np.float64) * b + a).astype(np.float16)))
    x, y = RNG.standard_normal(600).astype(np.float32), RNG.standard_normal(600).astype(np.float32)
    both = np.stack([y.astype(np.float16), x.astype(np.float16)], axis=1).reshape(-1).view(np.uint32)
    same(compute("cvt.rn.f16x2.f32 R, X, Y", np.uint32, x, y), both)


@pytest.mark.parametrize("form", ["f16x2", "bf16x2"])
@pytest.mark.parametrize("name, compare", [("lt", np.less), ("ge", np.greater_equal), ("eq", np.equal)])
def test_comparisons_of_pairs_have_two_results(form, name, compare):
    values = np.array([[0.5, 2.0, -1.0, np.nan], [1.0, 2.0, -3.0, 0.0]], np.float32)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16) if form == "bf16x2" else values.astype(np.float16).view(np.uint16)
    out = np.zeros(2, np.uint32)
    text = kernel("mul.wide.u32 %rd8, %r0, 4; add.u64 %rd5, %rd0, %rd8; add.u64 %rd6, %rd1, %rd8; add.u64 %rd7, %rd2, %rd8; "
                  f"ld.global.b32 %r1, [%rd5]; ld.global.b32 %r2, [%rd6]; setp.{name}.{form} %p1|%p2, %r1, %r2; "
                  "selp.b32 %r3, 1, 0, %p1; selp.b32 %r4, 2, 0, %p2; add.u32 %r3, %r3, %r4; st.global.b32 [%rd7], %r3;",
                  ("A", "B", "C"))
    launch(text, bits[0].view(np.uint32), bits[1].view(np.uint32), out, block=(2, 1, 1))
    holds = compare(*values).reshape(2, 2)
    assert (out == holds[:, 0] + 2 * holds[:, 1]).all()


@pytest.mark.parametrize("text", ["tex.2d.v4.f32.s32 %f1, %r1;", "add.rn.f16.f16 %h1, %h1, %h1;", "frobnicate.b32 %r1, %r1;",
                                  "madc.lo.u32 %r1, %r1, %r1, %r1;", "mul.rz.f64 %d1, %d1, %d1;",
                                  "shfl.down.b32 %r1, %r1, 1, 31;"])
def test_an_instruction_that_is_not_known_is_refused_by_name(text):
    with pytest.raises(DeviceError, match=f"does not know the instruction {text.split()[0]}".replace(".", r"\.")):
        launch(kernel(text, ("A",)), np.zeros(32, np.float32))
