"""Steps of a register tile that are written into one iteration of its loop."""

import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te

AVX2 = "llvm -mcpu=x86-64-v3"


def product(terms, rows=6, columns=16, dtype="float32"):
    """The product of (rows, terms) and (terms, columns), one tile in registers."""
    a, b = te.placeholder((rows, terms), dtype, name="a"), te.placeholder((terms, columns), dtype, name="b")
    k = te.reduce_axis((0, terms), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    s[c].reorder(k, i, j)
    s[c].unroll(i)
    s[c].vectorize(j)
    return s, [a, b, c]


def windows(size, places=6):
    """Sums of `size` neighbours of each of some vectors in a row: what one reads, others read too."""
    a, w = te.placeholder((places - 1 + size, 8), name="a"), te.placeholder((size,), name="w")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((places, 8), lambda i, j: te.sum(a[i + k, j] * w[k], axis=k), name="c")
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    s[c].reorder(k, i, j)
    s[c].unroll(i)
    s[c].vectorize(j)
    return s, [a, w, c]


def counted(program, target):
    """The multiply-adds that the code of `program` has, and what its counters grow by."""
    s, arguments = program
    text = tedsl.build(s, arguments, target).get_source("ll")
    steps = {int(step) for step in re.findall(r"%k\S* = phi i64 .*(?:\n.*)*?add nsw i64 %k\S*, (\d+)", text)}
    return len(re.findall(r"= call <\d+ x \w+> @llvm\.fma", text)), steps


@pytest.mark.parametrize("terms, steps", [(64, 8), (63, 7), (10, 5), (6, 6), (2, 2), (13, 1)])
def test_a_divisor_of_the_terms_is_written_at_once(terms, steps):
    assert counted(product(terms), AVX2)[0] == 6 * steps


def test_a_counter_grows_by_the_steps():
    assert counted(product(64), AVX2) == (48, {8})
    assert counted(product(13), AVX2) == (6, {1})


def test_steps_that_read_the_same_elements_stay_apart():
    assert counted(windows(8), AVX2) == (6, {1})


def test_steps_whose_elements_do_not_meet_in_an_iteration_are_written_at_once():
    """Windows that begin three places apart have a step in common with the third one after it."""
    a, w = te.placeholder((40, 8), name="a"), te.placeholder((12,), name="w")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute((6, 8), lambda i, j: te.sum(a[i * 3 + k, j] * w[k], axis=k), name="c")
    s = te.create_schedule(c.op)
    s[c].reorder(k, *s[c].op.axis)
    s[c].unroll(s[c].op.axis[0])
    s[c].vectorize(s[c].op.axis[1])
    assert counted((s, [a, w, c]), AVX2) == (18, {3})


@pytest.mark.parametrize("rows, steps", [(4, 8), (12, 4), (24, 2)])
def test_large_tiles_have_few_steps(rows, steps):
    assert counted(product(64, rows), AVX2)[0] == rows * steps
    assert counted(product(64, 4, 8), AVX2)[0] == 4, "four vectors: LLVM's unroller takes these"


@pytest.mark.parametrize("rows, terms, steps", [(24, 64, 2), (16, 64, 2), (12, 64, 4), (8, 64, 4), (24, 63, 3), (18, 65, 1),
                                                (8, 6, 6), (40, 64, 2)])
def test_tiles_of_512_bits_have_the_fewest_steps_that_are_enough(rows, terms, steps):
    assert counted(product(terms, rows), "llvm -mcpu=x86-64-v4")[0] == rows * steps


@pytest.mark.parametrize("rows, steps_of_the_last", [(196, 1), (16, 8)])
def test_a_loop_that_does_little_has_one_step(rows, steps_of_the_last):
    """Four rows are left beside tiles of six: a 49th of the work, or a fourth."""
    a, b = te.placeholder((rows, 64), name="a"), te.placeholder((64, 16), name="b")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((rows, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    tile = s.cache_write(c, "local")
    outer, inner = s[c].split(c.op.axis[0], 6)
    s[c].unroll(inner)
    s[c].vectorize(c.op.axis[1])
    s[tile].compute_at(s[c], outer)
    i, j = s[tile].op.axis
    s[tile].reorder(*s[tile].op.reduce_axis, i, j)
    s[tile].unroll(i)
    s[tile].vectorize(j)
    assert counted((s, [a, b, c]), AVX2)[0] == 6 * 8 + 4 * steps_of_the_last


@pytest.mark.parametrize("cpu", ["x86-64-v4", "znver5"])
def test_a_tile_that_fills_the_registers_stays_in_them(cpu):
    """28 sums, 2 vectors of weights and 2 elements of the image are all 32 registers, in each of three steps."""
    image, weights = te.placeholder((1, 1, 33, 33, 3), name="image"), te.placeholder((2, 1, 7, 7, 3, 16), name="weights")
    with tedsl.target.Target(f"llvm -mcpu={cpu}"):
        out = topi.nn.conv2d_NCHWc(image, weights, 2, 0, 1)
        s = topi.schedules.schedule([out])
        blocks = re.split(r"(?m)^\S+:", str(tedsl.build(s, [image, weights, out]).get_source("asm")))
    loop = max(blocks, key=lambda block: block.count("vfmadd"))
    assert loop.count("vfmadd") == 28 * 3
    assert not [line for line in loop.splitlines() if re.search(r"vmov\w+\s+%zmm\d+, -?\d*\(%r[sb]p", line)]


@pytest.mark.parametrize("cpu, rows, columns", [
    ("znver5", 463, 39), ("znver5", 463, 24), ("x86-64-v4", 463, 40), ("znver3", 460, 18), ("znver3", 178, 36),
    ("znver3", 45, 11), ("znver3", 80, 15)])
@pytest.mark.parametrize("terms", [62, 64])
def test_sums_of_products_stay_in_registers(cpu, rows, columns, terms):
    """Of columns that end in a narrower vector, or in tiles of many rows of one vector, two steps together stored sums."""
    a, b = te.placeholder((rows, terms), name="a"), te.placeholder((terms, columns), name="b")
    with tedsl.target.Target(f"llvm -mcpu={cpu} -model={cpu if cpu != 'x86-64-v4' else 'icelake-server'}"):
        c = topi.matmul(a, b)
        s = topi.schedules.schedule([c])
        blocks = re.split(r"(?m)^\S+:", str(tedsl.build(s, [a, b, c]).get_source("asm")))
    loop = max(blocks, key=lambda block: block.count("vfmadd"))
    assert loop.count("vfmadd") >= 8
    assert not [line for line in loop.splitlines() if re.search(r"vmov\w+\s+%[xyz]mm\d+, -?\d*\(%r[sb]p", line)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "int8"])
@pytest.mark.parametrize("terms", [1, 8, 21, 24])
def test_values(dtype, terms):
    s, arguments = product(terms, dtype=dtype)
    rng = np.random.default_rng(terms)
    a, b = (rng.integers(-4, 5, [int(n) for n in t.shape]).astype(dtype) for t in arguments[:2])
    c = np.empty((6, 16), dtype)
    tedsl.build(s, arguments, "llvm")(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("size", [3, 8])
def test_values_of_windows(size):
    s, arguments = windows(size)
    rng = np.random.default_rng(size)
    a, w = (rng.integers(-4, 5, [int(n) for n in t.shape]).astype("float32") for t in arguments[:2])
    c = np.empty((6, 8), "float32")
    tedsl.build(s, arguments, "llvm")(a, w, c)
    np.testing.assert_array_equal(c, sum(a[k:k + 6] * w[k] for k in range(size)))


@pytest.mark.parametrize("place", [
    lambda k: k.astype("uint8").astype("int32"), lambda k: k.astype("int8").astype("int32") + 128,
    lambda k: (k.astype("uint8") * te.const(3, "uint8")).astype("int32"), lambda k: k.astype("bool").astype("int32"),
    lambda k: k.astype("float16").astype("int32"), lambda k: (k.astype("int64") * (2**32 + 1)).astype("int32")])
def test_places_that_come_round_or_are_rounded(place):
    a, k = te.placeholder((6, 2201), name="a"), te.reduce_axis((0, 2200), name="k")
    c = te.compute((6, 8), lambda i, j: te.sum(a[i, place(k.var)] * (j + 1), axis=k), name="c")
    s = te.create_schedule(c.op)
    s[c].reorder(k, *s[c].op.axis)
    s[c].unroll(s[c].op.axis[0])
    s[c].vectorize(s[c].op.axis[1])
    x = np.random.default_rng(1).integers(-2, 3, (6, 2201)).astype("float32")
    results = [np.empty((6, 8), "float32") for _ in range(2)]
    for schedule, result in zip((s, te.create_schedule(c.op)), results):
        tedsl.build(schedule, [a, c], "llvm")(x, result)
    np.testing.assert_array_equal(*results)
