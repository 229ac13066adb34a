"""The ways in which rows are sorted, against numpy: networks over lanes of one row and over neighbouring rows, digits, and the
collection and insertion of the best few; for vectors of several widths.
"""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.ir.evaluate import run as interpret
from tedsl.runtime.parallel import get_num_threads, set_num_threads
from tedsl.target import Target
from tedsl.target.machine import MACHINES
from topi.ordering.radix_sort import digit_bits

pytestmark = pytest.mark.sampled(2)

TARGETS = ["llvm", "llvm -mcpu=x86-64"]  # 16 lanes of 32 bits where the host has them, 4
DTYPES = ["float32", "float64", "float16", "int32", "int64", "uint32", "uint64", "int16", "uint16", "int8", "uint8", "bool"]


def values(shape, dtype, seed=0):
    """Few different values, with the extreme ones of the dtype."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        tiny = float(np.finfo(dtype).smallest_subnormal)
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny])
        return np.where(rng.random(shape) < 0.3, rng.choice(special, shape), rng.integers(-20, 20, shape)).astype(dtype)
    info = np.iinfo(dtype)
    return np.where(rng.random(shape) < 0.2, rng.choice(np.array([info.min, info.max], dtype), shape),
                    rng.integers(max(info.min, -9), 50, shape).astype(dtype))


def order(x, axis, ascending):
    """The places of the elements in order: equal ones as they stand, NaN as greater than all."""
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    rank = np.unique(np.where(nan, 0, x), return_inverse=True)[1].reshape(x.shape)
    rank = np.where(nan, x.size, rank)
    return np.argsort(rank if ascending else -rank, axis, kind="stable")


def build(target, shape, dtype, operator):
    """The kernel of operator(placeholder), and arrays for its results."""
    a = te.placeholder(shape, dtype, name="a")
    with Target(target):
        made = operator(a)
    made = made if isinstance(made, list) else [made]
    kernel = tedsl.build(te.create_schedule([made[0].op]), [a, *made], target=target)
    return kernel, [np.zeros(topi.utils.get_const_tuple(tensor.shape), str(tensor.dtype)) for tensor in made]


def check(target, x, axis, ascending, k=None):
    """Compares sort and argsort with numpy, with k the first k elements and their places."""
    places = order(x, axis, ascending)
    if k is not None:
        places = np.take(places, range(k), axis)
        kernel, (first, at) = build(target, x.shape, str(x.dtype), lambda a: topi.topk(a, k, axis, is_ascend=ascending))
        kernel(x, first, at)
        wanted = np.take_along_axis(x, places, axis)
        np.testing.assert_array_equal(first, wanted)
        np.testing.assert_array_equal(np.signbit(first), np.signbit(wanted)) if x.dtype.kind == "f" else None
        np.testing.assert_array_equal(at, places)
        return
    for operator, wanted in ((lambda a: topi.sort(a, axis, ascending), np.take_along_axis(x, places, axis)),
                             (lambda a: topi.argsort(a, axis=axis, is_ascend=ascending, dtype="int32"), places)):
        kernel, (result,) = build(target, x.shape, str(x.dtype), operator)
        kernel(x, result)
        np.testing.assert_array_equal(result, wanted)


WAYS = [("llvm", (3, 100), 1), ("llvm -mcpu=haswell", (2, 300), 1), ("llvm -mcpu=x86-64", (2, 40), 1),
        ("llvm", (60, 20), 0), ("llvm -mcpu=haswell", (2, 37, 9), 1), ("llvm -mcpu=x86-64", (1500,), 0)]


@pytest.mark.parametrize("dtype, target, shape, axis", [  # each dtype on each target
    (dtype, *way) for i, dtype in enumerate(DTYPES) for j, way in enumerate(WAYS) if (i + j) % 2 == 0])
def test_every_dtype(dtype, target, shape, axis):
    check(target, values(shape, dtype), axis, ascending=shape[0] != 2)


@pytest.mark.parametrize("extent, target", [  # each extent on every other target
    (extent, target) for i, extent in enumerate([1, 2, 3, 16, 17, 31, 65, 127, 257, 1025])
    for j, target in enumerate(TARGETS) if (i + j) % 2 == 0])
def test_rows_of_every_length(extent, target):
    check(target, values((2, extent), "float32", extent), 1, ascending=extent % 2 == 0)
    check(target, values((extent, 5), "int32", extent), 0, ascending=extent % 2 == 1)


@pytest.mark.parametrize("shape, axis", [((0,), 0), ((0, 4), 1), ((4, 0), 1), ((0, 20), 0), ((3, 0, 17), 1), ((1, 1), 0)])
def test_no_elements(shape, axis):
    check("llvm", values(shape, "float32"), axis, ascending=True)


@pytest.mark.parametrize("target, dtype", [("llvm", "float32"), ("llvm -mcpu=x86-64", "int64")])
@pytest.mark.parametrize("given", [np.zeros(2000), np.arange(2000), -np.arange(2000), np.full(2000, -np.inf),
                                   np.where(np.arange(2000) % 3, 0.0, -0.0)])
def test_rows_in_order_and_of_one_value(given, target, dtype):
    x = np.nan_to_num(given, neginf=-2.0**63).astype(dtype) if dtype == "int64" else given.astype(dtype)
    check(target, x, 0, ascending=True)
    check(target, x, 0, ascending=False, k=7)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_in_parallel(dtype, threads, tmp_path):
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(asdict(replace(MACHINES["znver3"], cores=3))))
    before = get_num_threads()
    set_num_threads(threads)
    try:
        check(f"llvm -model={machine}", values((150_001,), dtype), 0, ascending=True)
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("dtype, mostly", [("float32", 1.5), ("float64", np.nan), ("int32", -7)])
def test_digits_that_are_long_or_nearly_all_the_same(dtype, mostly):
    x = values((16_385,), dtype)
    check("llvm -mcpu=haswell -model=znver3", np.where(np.arange(x.size) % 50, np.array(mostly, dtype), x), 0, ascending=True)
    rng = np.random.default_rng(3)
    drawn = rng.integers(0, 256, (16_400, np.dtype(dtype).itemsize), "uint8").view(dtype)[:, 0]  # any bits, also of NaN
    check("llvm -mcpu=haswell -model=znver3", drawn, 0, ascending=False)


@pytest.mark.parametrize("model, extent, bits", [
    ("znver3", 1 << 20, (8, 8, 11, 11)), ("znver5", 1 << 20, (8, 8, 11, 11)), ("apple-m1", 1 << 20, (8, 8, 11, 13)),
    ("znver3", 5000, (8, 8, 8, 8)), ("znver3", None, (8, 8, 8, 8))])
def test_digits_are_as_long_as_counters_fit_l1(model, extent, bits):
    with Target(f"llvm -model={model}"):
        assert tuple([digit_bits(key, extent) for key in (8, 16, 32, 64)]) == bits


FEW = [((3, 1000), 1, 5), ((2, 3000), 1, 100), ((5001,), 0, 1), ((2, 400, 19), 1, 6), ((70, 80), 0, 16), ((500, 3), 0, 2),
       ((2, 300), 1, 300)]


@pytest.mark.parametrize("dtype, shape, axis, k, ascending", [  # each dtype with each shape, both with each order
    (dtype, *few, (i + j) % 2 == 0) for i, dtype in enumerate(["float32", "float64", "int8", "uint64"])
    for j, few in enumerate(FEW)])
def test_the_first_few(dtype, shape, axis, k, ascending):
    check("llvm", values(shape, dtype), axis, ascending, k)
    if dtype == "float32":
        check("llvm -mcpu=haswell", values(shape, dtype, 1), axis, ascending, k)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 16, 17, 32, 33])
def test_the_first_few_with_a_bound_from_groups(k, target):
    check(target, values((3, 1203), "float32", k), 1, ascending=k % 2 == 0, k=k)
    rng = np.random.default_rng(k)
    rows = np.stack([np.arange(2000), -np.arange(2000), np.full(2000, 3), np.arange(2000) % 64, rng.permutation(2000) % 9])
    check(target, rows.astype("int32"), 1, ascending=k % 2 == 1, k=k)


@pytest.mark.parametrize("k", [3, 40])
@pytest.mark.parametrize("size", [1, 41, 300, 4000])
def test_the_first_few_of_rows_of_any_length(k, size):
    n = te.size_var("n")
    a = te.placeholder((2, n), name="a")
    first, at = topi.topk(a, k)
    kernel = tedsl.build(te.create_schedule(first.op), [a, first, at])
    x, k = values((2, size), "float32", size), min(k, size)
    if k < first.shape[1].value:
        return  # fewer elements than are asked for: the call has no array of that shape
    results = np.zeros((2, k), "float32"), np.zeros((2, k), "int64")
    kernel(x, *results)
    places = order(x, 1, ascending=False)[:, :k]
    np.testing.assert_array_equal(results[0], np.take_along_axis(x, places, 1))
    np.testing.assert_array_equal(results[1], places)


OPERATORS = {
    "network over the lanes of a row": ((2, 70), lambda a: topi.sort(a)),
    "network over neighbouring rows": ((9, 20), lambda a: topi.argsort(a, axis=0, dtype="int32")),
    "digits": ((1100,), lambda a: topi.sort(a)),
    "collection": ((1, 300), lambda a: topi.topk(a, 3)),
    "insertion": ((20, 9), lambda a: topi.topk(a, 3, 0)),
}


@pytest.mark.parametrize("way", OPERATORS)
def test_the_interpreter_gives_the_same(way):
    shape, operator = OPERATORS[way]
    a, x = te.placeholder(shape, name="a"), values(shape, "float32")
    with Target("llvm -mcpu=x86-64"):
        made = operator(a)
    made = made if isinstance(made, list) else [made]
    s = te.create_schedule([made[0].op])
    results = [[np.zeros(topi.utils.get_const_tuple(tensor.shape), str(tensor.dtype)) for tensor in made] for _ in range(2)]
    tedsl.build(s, [a, *made], target="llvm -mcpu=x86-64")(x, *results[0])
    interpret(tedsl.lower(s, [a, *made])["main"], [x, *results[1]])
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("way", ["network over neighbouring rows", "insertion", "digits"])
def test_no_access_is_wrong(way):
    shape, operator = OPERATORS[way]
    a, x = te.placeholder(shape, name="a"), values(shape, "float32")
    with Target("llvm -mcpu=x86-64"):
        made = operator(a)
    made = made if isinstance(made, list) else [made]
    kernel = tedsl.build(te.create_schedule([made[0].op]), [a, *made], checked=True)
    kernel(x, *[np.zeros(topi.utils.get_const_tuple(tensor.shape), str(tensor.dtype)) for tensor in made])
