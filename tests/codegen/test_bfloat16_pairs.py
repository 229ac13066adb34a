"""Sums of products of bfloat16 by pairs: where a pragma allows it, with the bits that `tir.dot` has in the interpreter."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.ir.evaluate import run as interpret
from tedsl.target import Target

COOPERLAKE = "llvm -mcpu=cooperlake -mtriple=x86_64-linux-gnu"
OTHERS = ["llvm -mcpu=haswell -mtriple=x86_64-linux-gnu", "llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu",
          "llvm -mtriple=aarch64-linux-gnu"]
here = pytest.mark.skipif(Target("llvm").dot_terms("bfloat16", "bfloat16") == 1, reason="this machine lacks avx512bf16")


def bits(*shape, seed=0, low=-3, high=3):
    """The patterns of bfloat16s of many sizes, and their values as float32."""
    rng = np.random.default_rng(seed)
    numbers = (rng.standard_normal(shape) * 2.0 ** rng.integers(low, high + 1, shape)).astype("float32")
    patterns = (numbers.view("uint32") >> 16).astype("uint16")
    return patterns, (patterns.astype("uint32") << 16).view("float32")


def products(m, n, k, pragma=True):
    """C = A B in tiles of 4 rows and 32 columns, with B packed by pairs of terms."""
    a, b = te.placeholder((m, k), "bfloat16", name="a"), te.placeholder((k, n), "bfloat16", name="b")
    p = te.reduce_axis((0, k), name="p")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, p].astype("float32") * b[p, j].astype("float32"), axis=p), name="c")
    s = te.create_schedule(c.op)
    copy, sums = s.cache_read(b, "global", [c]), s.cache_write(c, "local")
    s[copy].transform_layout(lambda p, j: [p // 2, j, p % 2])
    _, jo, _, ji = s[c].tile(*c.op.axis, 4, 32)
    s[c].vectorize(ji)
    s[sums].compute_at(s[c], jo)
    steps, inside = s[sums].split(sums.op.reduce_axis[0], 2)
    i, j = sums.op.axis
    s[sums].reorder(steps, i, inside, j)
    s[sums].vectorize(j)
    if pragma:
        s[sums].pragma(steps, "bfloat16_pairs")
    return s, [a, b, c]


def test_only_where_the_pragma_and_the_target_allow_it():
    def text(target, pragma):
        s, args = products(8, 32, 16, pragma)
        return tedsl.build(s, args, target).get_source("asm")

    assert "vdpbf16ps" in text(COOPERLAKE, True)
    assert "vdpbf16ps" not in text(COOPERLAKE, False)
    assert not any("bf16ps" in text(target, True) for target in OTHERS)


@here
@pytest.mark.parametrize("m, n, k", [(4, 32, 8), (5, 33, 7), (3, 20, 2), (1, 70, 65), (9, 16, 1)])
def test_values(m, n, k):
    (x, left), (y, right) = bits(m, k), bits(k, n, seed=1)
    s, args = products(m, n, k)
    out = np.empty((m, n), "float32")
    tedsl.build(s, args)(x, y, out)
    bound = np.abs(left).astype("float64") @ np.abs(right) * (k + 1) * 2.0**-23
    assert (np.abs(out - left.astype("float64") @ right) <= bound).all()


def dot(lanes=32):
    """tir.dot of whole vectors."""
    s, a, b = te.placeholder((lanes,), name="s"), *(te.placeholder((2 * lanes,), "bfloat16", name=name) for name in "ab")

    def body(ins, outs):
        values = [x.vload([0], f"{x.dtype}x{x.shape[0]}") for x in ins]
        return outs[0].vstore([0], tir.call_intrin(f"float32x{lanes}", "tir.dot", *values))

    out = te.extern([(lanes,)], [s, a, b], body, dtype="float32", name="out")
    return te.create_schedule(out.op), [s, a, b, out]


@here
@pytest.mark.parametrize("low, high", [(-1, 1), (-12, 12), (-70, 40), (-130, -100), (-75, -55)])
@pytest.mark.parametrize("lanes", [4, 8, 32])
def test_the_interpreter_has_the_bits_of_the_machine(lanes, low, high):
    """Ordinary numbers, those whose products are denormal, and denormal ones."""
    s, args = dot(lanes)
    kernel, loops = tedsl.build(s, args), tedsl.lower(s, args)["main"]
    for seed in range(20):
        start = bits(lanes, seed=seed, low=min(low, -20), high=high)[1] * np.float32(1.0001)
        a, b = bits(2 * lanes, seed=seed + 100, low=low, high=high)[0], bits(2 * lanes, seed=seed + 200, low=low, high=high)[0]
        found, known = np.empty(lanes, "float32"), np.empty(lanes, "float32")
        kernel(start, a, b, found)
        interpret(loops, [start, a, b, known])
        np.testing.assert_array_equal(found.view("uint32"), known.view("uint32"))


def test_the_operator_is_refused_where_there_is_no_instruction():
    s, args = dot()
    with pytest.raises(tedsl.errors.LoweringError, match=r"tir.dot of bfloat16: target .*haswell.* has no such instruction"):
        tedsl.build(s, args, OTHERS[0])


@here
@pytest.mark.parametrize("seed", range(8))
def test_products_of_topi(seed):
    rng = np.random.default_rng(seed)
    m, n, k = (int(v) for v in rng.integers(1, 80, 3))
    (x, left), (y, right) = bits(m, k, seed=seed), bits(n, k, seed=seed + 1)
    a, b = te.placeholder((m, k), "bfloat16", name="a"), te.placeholder((n, k), "bfloat16", name="b")
    out = topi.nn.dense(a, b, out_dtype="float32")
    result = np.empty((m, n), "float32")
    tedsl.build(topi.schedules.schedule([out]), [a, b, out])(x, y, result)
    bound = np.abs(left).astype("float64") @ np.abs(right).T * (k + 1) * 2.0**-23
    assert (np.abs(result - left.astype("float64") @ right.T) <= bound).all()


def test_a_convolution_of_topi_uses_the_instruction():
    a, b = te.placeholder((1, 14, 14, 64), "bfloat16", name="a"), te.placeholder((3, 3, 64, 64), "bfloat16", name="b")
    with Target(COOPERLAKE):
        out = topi.nn.conv2d(a, b, 1, 1, 1, "NHWC")
        s = topi.schedules.schedule([out])
    assert "vdpbf16ps" in tedsl.build(s, [a, b, out], COOPERLAKE).get_source("asm")
