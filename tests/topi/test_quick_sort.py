"""Rows of any length sorted by quick sort on processors with AVX-512, against numpy; and what decides that it is used."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.codegen.llvm.effort import PLAIN
from tedsl.ir.evaluate import run as interpret
from tedsl.ir.walk.visitor import statements
from tedsl.runtime.parallel import get_num_threads, set_num_threads
from tedsl.target import Target
from topi.ordering.keys import coding_of
from topi.ordering.quick_sort import quick_sorted

needs_avx512 = pytest.mark.skipif("avx512f" not in Target("llvm").features, reason="a processor with AVX-512")
NEAR, FAR = "llvm -model=znver5", "llvm -model=sapphirerapids"  # last caches; where it is far, long runs are parted in place
DTYPES = ["float32", "float64", "int32", "int64", "uint32", "uint64"]
SIZES = [0, 1, 2, 15, 17, 127, 128, 129, 255, 256, 257, 300, 511, 513, 1000, 2049, 5000, 40007, 70001]


def _by_size(target, dtype, operator):
    """The kernel of an operator on a row of any length."""
    a = te.placeholder((te.size_var("n"),), dtype, name="a")
    with Target(target):
        made = operator(a)
    return tedsl.build(te.create_schedule(made.op), [a, made], target=target)


def _rows(dtype, size):
    """Rows of different kinds: drawn, sorted, reversed, equal, of few values, of sorted pieces, with special values."""
    rng = np.random.default_rng(size)
    if dtype.startswith("float"):
        drawn = rng.standard_normal(size).astype(dtype)
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).smallest_subnormal], dtype)
        few = rng.choice(np.array([0.0, -0.0, 1.5], dtype), size)
    else:
        info = np.iinfo(dtype)
        drawn = rng.integers(info.min, info.max, size, dtype, endpoint=True)
        special = np.array([info.min, info.max, 0], dtype)
        few = rng.integers(0, 3, size).astype(dtype)
    yield drawn
    yield np.sort(drawn)
    yield np.sort(drawn)[::-1].copy()
    yield np.full(size, 7, dtype)
    yield few
    yield np.where(rng.random(size) < 0.999, np.array(5, dtype), drawn)
    yield (np.arange(size) % 100).astype(dtype)
    yield np.where(rng.random(size) < 0.3, rng.choice(special, size), drawn)
    for lanes in (8, 16):  # the vectors that are evenly spaced, from which the first pivot is found, have the least words
        at = np.arange(16)[:, None] * max(1, (size - lanes) // 15) + np.arange(lanes)
        misleading = drawn.copy()
        misleading[at[at < size]] = special.min() if drawn.dtype.kind != "f" else -np.inf
        yield misleading
    places = np.arange(size)  # words far from each other, so that the middle between the least and the greatest is no median
    yield (2.0 ** -(places % 120) if dtype.startswith("float") else np.left_shift(1, places % 31)).astype(dtype)


def _expected(x, ascending):
    in_order = np.sort(x) if x.dtype.kind != "f" else np.sort(x + 0.0)
    return in_order if ascending else in_order[::-1]


@needs_avx512
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", [NEAR, FAR])
def test_rows_of_any_length_and_kind(target, dtype, ascending):
    kernel = _by_size(target, dtype, lambda a: topi.sort(a, -1, ascending))
    for size in SIZES:
        for x in _rows(dtype, size):
            result = np.empty_like(x)
            kernel(x, result)
            if dtype.startswith("float"):
                zeros = np.signbit(result[result == 0])
                assert (zeros == np.sort(zeros)[::-1 if ascending else 1]).all(), "-0.0 comes before 0.0, or behind it"
                assert zeros.sum() == np.signbit(x[x == 0]).sum()
                numbers = x[~np.isnan(x)]
                part = result[:len(numbers)] if ascending else result[size - len(numbers):]
                assert np.isnan(result).sum() == size - len(numbers)
                np.testing.assert_array_equal(part, _expected(numbers, ascending))
            else:
                np.testing.assert_array_equal(result, _expected(x, ascending))


@needs_avx512
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("target", [NEAR, FAR])
def test_rows_that_threads_share(target, dtype, threads):
    kernel = _by_size(target, dtype, lambda a: topi.sort(a, -1))
    before = get_num_threads()
    set_num_threads(threads)
    try:
        for size in (1, 200, 70001, 300000):
            for x in _rows(dtype, size):
                result = np.empty_like(x)
                kernel(x, result)
                np.testing.assert_array_equal(result, np.sort(x))
    finally:
        set_num_threads(before)


@needs_avx512
@pytest.mark.parametrize("size", [4500, 9001])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_places_are_stable(dtype, size):
    a = te.placeholder((size,), dtype, name="a")
    made = topi.argsort(a, axis=-1, dtype="int32")
    kernel = tedsl.build(te.create_schedule(made.op), [a, made])
    for x in _rows(dtype, size):
        x = np.where(np.isnan(x), np.array(3, dtype), x) if dtype == "float32" else x
        places = np.empty(size, "int32")
        kernel(x, places)
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))


@needs_avx512
@pytest.mark.parametrize("shape, axis", [((3, 9000), 1), ((2, 3, 9001), 2), ((70000, 2), 0)])
def test_several_rows(shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    a = te.placeholder(shape, "float32", name="a")
    made = topi.sort(a, axis)
    result = np.empty_like(x)
    tedsl.build(te.create_schedule(made.op), [a, made])(x, result)
    np.testing.assert_array_equal(result, np.sort(x, axis))


@needs_avx512
def test_the_first_ranks_alone():
    x = np.random.default_rng(0).permutation(100000).astype("float32")
    a = te.placeholder(x.shape, "float32", name="a")
    values, places = topi.topk(a, 3000, -1)
    found, at = np.empty(3000, "float32"), np.empty(3000, "int64")
    tedsl.build(te.create_schedule([values.op]), [a, values, places])(x, found, at)
    np.testing.assert_array_equal(found, np.sort(x)[::-1][:3000])
    np.testing.assert_array_equal(x[at], found)


@pytest.mark.parametrize("model, size", [("znver5", 700), ("skylake-avx512", 5000)])  # longer than half of L1
def test_the_interpreter_gives_the_same(model, size):
    x = np.random.default_rng(0).integers(-50, 50, size).astype("int32")
    a = te.placeholder((te.size_var("n"),), "int32", name="a")
    with Target(f"llvm -mcpu=skylake-avx512 -model={model}"):
        made = topi.sort(a, -1)
        lowered = tedsl.lower(te.create_schedule(made.op), [a, made])["main"]
    result = np.empty_like(x)
    interpret(lowered, [x, result])
    np.testing.assert_array_equal(result, np.sort(x))


def _argsort(a):
    return topi.argsort(a, axis=-1, dtype="int32")


@pytest.mark.parametrize("operator, dtype, extent, packs", [
    (lambda a: topi.sort(a, -1), "int32", 100000, True), (lambda a: topi.topk(a, 3000, -1, "indices"), "int32", 100000, True),
    (_argsort, "int32", 100000, False), (_argsort, "int32", 20000, False), (_argsort, "int32", 9000, True),
    (_argsort, "float32", 100000, False), (_argsort, "float32", 20000, True), (_argsort, "int32", te.size_var("n"), False)])
def test_long_rows_with_places_are_sorted_by_digits_unless_few_are_wanted(operator, dtype, extent, packs):
    a = te.placeholder((extent,), dtype, name="a")
    with Target("llvm -mcpu=znver5"):
        made = operator(a)
        text = str(tedsl.lower(te.create_schedule(made.op), [a, made], simple_mode=True))
    assert ("compress_lanes" in text) == packs


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("model, most", [("znver5", 500), ("sapphirerapids", 650)])
def test_the_program_is_short(model, most, dtype):
    """Builds take 0.2 ms for each statement, and LLVM's own pipeline three times as long as the lean list of passes."""
    a = te.placeholder((1000000,), dtype, name="a")
    with Target(f"llvm -mcpu=znver5 -model={model}") as target:
        made = topi.sort(a, -1)
        s = te.create_schedule(made.op)
        lowered, module = tedsl.lower(s, [a, made])["main"], tedsl.build(s, [a, made], target=target)
    assert sum(isinstance(stmt, (tir.Store, tir.LetStmt)) for stmt in statements(lowered.body)) < most
    assert PLAIN not in module.get_source("ll")


@pytest.mark.parametrize("target, dtype, places, words", [
    ("llvm -mcpu=znver5", "float32", False, 256), ("llvm -mcpu=znver5", "float32", True, 128),
    ("llvm -mcpu=skylake-avx512", "int64", False, 128), ("llvm -mcpu=znver5", "int64", True, None),
    ("llvm -mcpu=znver5 -vector-width=256", "int32", False, 128), ("llvm -mcpu=znver5", "int8", False, None),
    ("llvm -mcpu=znver3", "float32", False, None),
    ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", "float32", False, None)])
def test_where_it_pays(target, dtype, places, words):
    with Target(target):
        assert quick_sorted(coding_of(te.const(0, dtype).dtype, True, places, None)) == words
