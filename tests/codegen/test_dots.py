"""`tir.dot`, and the sums of products that become it: exact for every kind of processor."""

import itertools
import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.ir.evaluate import run as interpret
from tedsl.target import Target
from tests.topi.run import run

pytestmark = pytest.mark.sampled(2)

HOST = Target("llvm")
X86 = ["llvm", "llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell", "llvm -mtriple=x86_64-linux-gnu"]
HERE = [target for target in X86 if HOST.arch == "x86-64" and Target(target).runs_here] or ["llvm"]
ARM = "llvm -mtriple=aarch64-linux-gnu"
BYTES = list(itertools.product(["int8", "uint8"], repeat=2))
NARROW = [*BYTES, ("int16", "int16"), ("uint16", "int16")]


def numbers(dtype, *shape, seed=0):
    """Half of them the least and the largest of the dtype."""
    rng, ends = np.random.default_rng(seed), np.iinfo(dtype)
    some = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, some, rng.choice([ends.min, ends.max], shape)).astype(dtype)


def exact(a, b):
    """The product of matrices modulo 2**32."""
    return (a.astype("int64") @ b.astype("int64")).astype("int32")


def packed(m, n, k, left, right, rows, wide, unroll=False, after=False, of="int32"):
    """A product with a copy of its second matrix in groups of `step` terms, in tiles of rows and vectors."""
    step = 4 if "8" in left else 2
    a, b = te.placeholder((m, k), left, name="a"), te.placeholder((k, n), right, name="b")
    p = te.reduce_axis((0, k), name="p")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, p].astype(of) * b[p, j].astype(of), axis=p), name="c")
    s = te.create_schedule(c.op)
    copy, sums = s.cache_read(b, "global", [c]), s.cache_write(c, "local")
    s[copy].transform_layout(lambda p, j: [p // step, j, p % step])
    io, jo, ii, ji = s[c].tile(*c.op.axis, rows, wide)
    s[c].vectorize(ji)
    s[sums].compute_at(s[c], jo)
    po, pi = s[sums].split(sums.op.reduce_axis[0], step)
    i, j = sums.op.axis
    s[sums].reorder(po, *((pi, i) if after else (i, pi)), j)
    if unroll:
        s[sums].unroll(pi)
        s[sums].unroll(i)
    s[sums].vectorize(j)
    return s, [a, b, c]


@pytest.mark.parametrize("left, right", NARROW)
@pytest.mark.parametrize("target", HERE)
def test_products_are_exact(target, left, right):
    shapes = [(4, 16, 8, 4, 16), (5, 50, 13, 3, 48), (3, 12, 4, 3, 4), (2, 33, 30, 1, 32)]
    for at, (m, n, k, rows, wide) in list(enumerate(shapes))[NARROW.index((left, right)) % 2::2]:
        s, args = packed(m, n, k, left, right, rows, wide, unroll=at % 2 == 1, after=at % 3 == 0)
        a, b, c = numbers(left, m, k, seed=at), numbers(right, k, n, seed=at + 9), np.empty((m, n), "int32")
        tedsl.build(s, args, target)(a, b, c)
        np.testing.assert_array_equal(c, exact(a, b))


@pytest.mark.parametrize("left, right", BYTES)
def test_sums_wrap(left, right):
    """200000 terms of -128 * -128 or 255 * 255 leave 31 bits."""
    s, args = packed(1, 16, 200000, left, right, 1, 16)
    ends = [np.iinfo(d) for d in (left, right)]
    a, b = (np.full(shape, e.max if e.min == 0 else e.min, d) for shape, e, d in
            zip(((1, 200000), (200000, 16)), ends, (left, right)))
    c = np.empty((1, 16), "int32")
    tedsl.build(s, args)(a, b, c)
    np.testing.assert_array_equal(c, exact(a, b))


def test_unsigned_sums():
    s, args = packed(3, 16, 8, "uint8", "uint8", 3, 16, of="uint32")
    a, b, c = numbers("uint8", 3, 8), numbers("uint8", 8, 16), np.empty((3, 16), "uint32")
    tedsl.build(s, args)(a, b, c)
    np.testing.assert_array_equal(c.view("int32"), exact(a, b))


@pytest.mark.parametrize("target, left, right, instruction", [
    ("llvm -mcpu=icelake-server", "uint8", "int8", "vpdpbusd"), ("llvm -mcpu=icelake-server", "int8", "int8", "vpdpbusd"),
    ("llvm -mcpu=alderlake", "uint8", "int8", "vpdpbusd"), ("llvm -mcpu=icelake-server", "int16", "int16", "vpdpwssd"),
    ("llvm -mcpu=haswell", "uint8", "int8", "vpmaddwd"), ("llvm -mcpu=skylake-avx512", "int8", "int8", "vpmaddwd"),
    (f"{ARM} -mcpu=neoverse-n1", "int8", "int8", "sdot"), (f"{ARM} -mcpu=neoverse-n1", "uint8", "uint8", "udot"),
    (f"{ARM} -mcpu=neoverse-v1", "uint8", "int8", "usdot"), (f"{ARM} -mcpu=neoverse-n1", "uint8", "int8", "sdot")])
def test_instructions(target, left, right, instruction):
    if "mtriple" not in target:
        target += " -mtriple=x86_64-linux-gnu"
    s, args = packed(4, 32, 64, left, right, 4, 32, unroll=True)
    text = tedsl.build(s, args, target).get_source("asm")
    assert instruction in text
    assert not any(slow in text for slow in ("vpmulld", "\tmla\t", "vpmaddubsw"))  # the last one saturates


@pytest.mark.parametrize("target", ["llvm -mcpu=icelake-server -mtriple=x86_64-linux-gnu", f"{ARM} -mcpu=neoverse-n1"])
def test_a_word_of_the_first_matrix_serves_a_row_of_the_tile(target):
    s, args = packed(4, 32, 64, "uint8", "int8", 4, 32, unroll=True)
    text = tedsl.build(s, args, target).get_source("asm")
    lanes = 16 if "icelake" in target else 4
    vectors = 4 * 32 // lanes
    dots = text.count("vpdpbusd") if lanes == 16 else text.count("sdot\t")
    assert dots >= vectors and not dots % vectors


@pytest.mark.parametrize("left, right", NARROW)
def test_the_operator_itself(left, right):
    """Of every target that this machine runs, and of the interpreter."""
    lanes, group = 32, 4 if "8" in left else 2
    a, b = numbers(left, lanes * group), numbers(right, lanes * group, seed=3)
    start = numbers("int32", lanes)
    made = [te.placeholder(x.shape, str(x.dtype), name=name) for x, name in ((start, "s"), (a, "a"), (b, "b"))]

    def body(ins, outs):
        values = [x.vload([0], f"{x.dtype}x{x.shape[0]}") for x in ins]
        return outs[0].vstore([0], tir.call_intrin(f"int32x{lanes}", "tir.dot", *values))

    out = te.extern([(lanes,)], made, body, dtype="int32", name="out")
    s = te.create_schedule(out.op)
    products = (a.astype("int64") * b.astype("int64")).reshape(lanes, group).sum(axis=1)
    expected = (start + products).astype("int32")
    for target in HERE:
        result = np.empty(lanes, "int32")
        tedsl.build(s, [*made, out], target)(start, a, b, result)
        np.testing.assert_array_equal(result, expected)
    interpret(tedsl.lower(s, [*made, out])["main"], [start, a, b, result := np.empty(lanes, "int32")])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("of, left, right", [
    ("int32x16", "uint8x32", "int8x64"), ("int32x3", "uint8x12", "int8x12"), ("int64x4", "int8x32", "int8x32"),
    ("int32x16", "float16x32", "float16x32"), ("int32x4", "int8x16", "int16x8"), ("int32", "int8x4", "int8x4")])
def test_other_operands_are_refused(of, left, right):
    with pytest.raises(tedsl.errors.DTypeError, match="dot of"):
        tir.call_intrin(of, "tir.dot", te.var("t", of), te.var("a", left), te.var("b", right))


@pytest.mark.parametrize("seed", range(12))
def test_products_of_topi(seed):
    """Any shape, layout and pair of dtypes, with what follows."""
    rng = np.random.default_rng(seed)
    m, n, k = (int(rng.choice([1, 3, rng.integers(1, 70), 64])) for _ in range(3))
    left, right = NARROW[seed % len(NARROW)]
    turned_a, turned_b = bool(seed & 8), bool(seed & 4)
    x, w = numbers(left, m, k, seed=seed), numbers(right, k, n, seed=seed + 1)
    a = te.placeholder((k, m) if turned_a else (m, k), left, name="a")
    b = te.placeholder((n, k) if turned_b else (k, n), right, name="b")
    out = topi.nn.matmul(a, b, None, "int32", turned_a, turned_b)
    arrays = {a: np.ascontiguousarray(x.T) if turned_a else x, b: np.ascontiguousarray(w.T) if turned_b else w}
    np.testing.assert_array_equal(run(out, arrays), exact(x, w))
    np.testing.assert_array_equal(run(topi.nn.relu(out), arrays), np.maximum(exact(x, w), 0))


def test_batches_of_topi():
    x, w = numbers("uint8", 3, 20, 37), numbers("int8", 3, 41, 37, seed=1)
    a, b = te.placeholder(x.shape, "uint8", name="a"), te.placeholder(w.shape, "int8", name="b")
    out = topi.nn.batch_matmul(a, b, out_dtype="int32")
    np.testing.assert_array_equal(run(out, {a: x, b: w}), exact(x, w.transpose(0, 2, 1)))


def convolved(x, w, stride, padding, dilation=1):
    """NHWC by HWIO, modulo 2**32."""
    n, h, wide, c = x.shape
    kh, kw, _, o = w.shape
    data = np.zeros((n, h + 2 * padding, wide + 2 * padding, c), "int64")
    data[:, padding:padding + h, padding:padding + wide] = x
    rows, columns = ((size + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for size, k in ((h, kh), (wide, kw)))
    total = np.zeros((n, rows, columns, o), "int64")
    for y, z in itertools.product(range(kh), range(kw)):
        first, second = y * dilation, z * dilation
        seen = data[:, first:first + stride * rows:stride, second:second + stride * columns:stride]
        total += seen @ w[y, z].astype("int64")
    return total.astype("int32")


# batch, height, width, channels, results, kernel, stride, padding, dilation
IMAGES = [(1, 5, 5, 3, 1, 3, 1, 1, 1), (2, 9, 7, 5, 17, 3, 1, 1, 1), (1, 6, 15, 4, 33, 3, 1, 0, 1),
          (1, 7, 13, 6, 48, 1, 1, 0, 1), (1, 8, 8, 80, 32, 1, 2, 0, 1),
          (1, 9, 9, 16, 64, 3, 2, 1, 2), (1, 5, 5, 300, 130, 3, 1, 1, 1)]


@pytest.mark.parametrize("image", IMAGES, ids=str)
@pytest.mark.parametrize("left, right", [("uint8", "int8"), ("int8", "int8")])
def test_convolutions_of_topi(image, left, right):
    n, h, wide, c, o, k, stride, padding, dilation = image
    x, w = numbers(left, n, h, wide, c), numbers(right, k, k, c, o, seed=2)
    a, b = te.placeholder(x.shape, left, name="a"), te.placeholder(w.shape, right, name="b")
    out = topi.nn.conv2d(a, b, stride, padding, dilation, "NHWC", "int32")
    np.testing.assert_array_equal(run(topi.nn.relu(out), {a: x, b: w}), np.maximum(convolved(x, w, *image[6:]), 0))


@pytest.mark.parametrize("image", [i for i in IMAGES if i[3] % 4 == 0 and i[4] % 2 == 0], ids=str)
@pytest.mark.parametrize("block", [2, 4])
def test_blocked_convolutions_of_topi(image, block):
    """Channels in blocks that hold whole groups, or half of one."""
    n, h, wide, c, o, k, stride, padding, dilation = image
    x, w = numbers("uint8", n, h, wide, c), numbers("int8", k, k, c, o, seed=2)
    data = np.ascontiguousarray(x.reshape(n, h, wide, c // block, block).transpose(0, 3, 1, 2, 4))
    weights = np.ascontiguousarray(w.reshape(k, k, c // block, block, o // 2, 2).transpose(4, 2, 0, 1, 3, 5))
    a, b = te.placeholder(data.shape, "uint8", name="a"), te.placeholder(weights.shape, "int8", name="b")
    out = topi.nn.conv2d_NCHWc(a, b, stride, padding, dilation, "NCHWc", "NCHWc", "int32")
    expected = convolved(x, w, *image[6:])
    found = run(out, {a: data, b: weights}).transpose(0, 2, 3, 1, 4).reshape(expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_a_convolution_of_topi_uses_the_instruction():
    a, b = te.placeholder((1, 14, 14, 64), "uint8", name="a"), te.placeholder((3, 3, 64, 64), "int8", name="b")
    target = Target("llvm -mcpu=icelake-server -mtriple=x86_64-linux-gnu")
    with target:
        out = topi.nn.conv2d(a, b, 1, 1, 1, "NHWC", "int32")
        s = topi.schedules.schedule([out])
    assert "vpdpbusd" in tedsl.build(s, [a, b, out], target).get_source("asm")


def test_a_convolution_of_an_image_of_any_size_uses_the_instruction():
    """Its places are of 64 bits, in which the number of a term is widened."""
    target, h, w = Target("llvm -mcpu=icelake-server -mtriple=x86_64-linux-gnu"), te.var("h"), te.var("w")
    a, b = te.placeholder((2, h, w, 64), "uint8", name="a"), te.placeholder((3, 3, 64, 64), "int8", name="b")
    with target:
        out = topi.nn.conv2d(a, b, 1, 1, 1, "NHWC", "int32")
        text = tedsl.build(topi.schedules.schedule([out]), [a, b, out], target).get_source()
    assert "vpdpbusd" in text and len(text.splitlines()) < 6000


def test_sums_that_stand_beside_others():
    """17 columns: the last one is a sum of its own in the same loop."""
    s, args = packed(3, 17, 8, "uint8", "int8", 3, 17, unroll=True)
    a, b, c = numbers("uint8", 3, 8), numbers("int8", 8, 17), np.empty((3, 17), "int32")
    built = tedsl.build(s, args, "llvm")
    built(a, b, c)
    np.testing.assert_array_equal(c, exact(a, b))
    text = tedsl.build(s, args, "llvm -mcpu=icelake-server -mtriple=x86_64-linux-gnu").get_source("asm")
    assert "vpdpbusd" in text


@pytest.mark.parametrize("sizes", [("m", 40, 20), (9, "n", 20), (9, 40, "k")])
def test_symbolic_products_of_topi(sizes):
    m, n, k = (te.var(size) if isinstance(size, str) else size for size in sizes)
    a, b = te.placeholder((m, k), "uint8", name="a"), te.placeholder((n, k), "int8", name="b")
    out = topi.nn.dense(a, b, out_dtype="int32")
    x, w, result = numbers("uint8", 9, 20), numbers("int8", 40, 20, seed=1), np.empty((9, 40), "int32")
    tedsl.build(topi.schedules.schedule([out]), [a, b, out])(x, w, result)
    np.testing.assert_array_equal(result, exact(x, w.T))


@pytest.mark.parametrize("left, right, dtype", [("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")])
@pytest.mark.parametrize("shape", [(20, 64, 75), (9, 30, 40), (12, 33, 77)], ids=str)
def test_the_last_columns_are_added_up_by_groups_too(left, right, dtype, shape):
    """No product is computed by itself, and rows of whole groups are turned in registers."""
    m, k, n = shape
    a, b = te.placeholder((m, k), left, name="a"), te.placeholder((n, k), right, name="b")
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=cooperlake")
    with target:
        out = topi.nn.dense(a, b, out_dtype=dtype)
        asm = tedsl.build(topi.schedules.schedule(out), [a, b, out], target=target).get_source("asm")
    assert "vpdpbusd" in asm or "vdpbf16ps" in asm
    if k % (4 if left == "uint8" else 2) == 0:
        assert re.search(r"^\s*v(?:pmulld|fmadd\w+ps|mulps)|gather", asm, re.MULTILINE) is None and "vunpcklps" in asm


@pytest.mark.parametrize("shape", [
    (20, 64, 75), (9, 30, 40), (12, 33, 77), (3, 8, 1), (5, 4, 17), (40, 36, 100), (6, 12, 35), (6, 12, 66)], ids=str)
@pytest.mark.parametrize("left, right", NARROW)
def test_second_matrices_that_are_stored_transposed(shape, left, right):
    m, k, n = shape
    x, w = numbers(left, m, k), numbers(right, n, k, seed=1)
    a, b = te.placeholder((m, k), left, name="a"), te.placeholder((n, k), right, name="b")
    for target in HERE:
        with Target(target):
            np.testing.assert_array_equal(run(topi.nn.dense(a, b, out_dtype="int32"), {a: x, b: w}), exact(x, w.T))
