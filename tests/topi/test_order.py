"""Running sums, sorting and searching, against numpy."""

import functools

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tedsl.ir.evaluate import run as interpret
from tests.topi.checking import check as check_schedules
from tests.topi.checking import plain, tensor
from topi.kinds import CumulativeOp, SortOp

pytestmark = pytest.mark.sampled(2)

check = functools.partial(check_schedules, schedule=plain)  # statements have no loops to schedule
n, m = te.size_var("n"), te.size_var("m")


@pytest.mark.parametrize("shape, axis", [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), -2), ((2, 3, 4), None), ((1, 1), 0),
                                         ((0, 3), 0), ((3, 0), 1), (((n, 3), (m, 4)), 0), (((n, 3), (m, 4)), 1),
                                         (((n, 3), 2), None)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_cumsum_and_cumprod(shape, axis, dtype):
    a, x = tensor(shape, dtype)
    check([topi.cumsum(a, axis), topi.cumprod(a, axis), topi.cumsum(a, axis, exclusive=True),
           topi.cumprod(a, axis, None, True)], {a: x},
          [np.cumsum(x, axis), np.cumprod(x, axis), shifted(np.cumsum(x, axis), axis, 0),
           shifted(np.cumprod(x, axis), axis, 1)], rtol=1e-5)


def test_scans_with_other_operations():
    a, x = tensor((3, 40))
    made = [topi.scanop(a, te.max, -1e9, "cummax", 1), topi.scanop(a, te.min, 1e9, "cummin", 0, exclusive=True)]
    least = np.vstack([np.full((1, 40), 1e9, "float32"), np.minimum.accumulate(x)[:-1]])
    check(made, {a: x}, [np.maximum.accumulate(x, 1), least])
    with pytest.raises(ArgumentTypeError, match="binop is 'max'"):
        topi.scanop(a, "max", 0, "cummax")


@pytest.mark.parametrize("shape", [(32,), (47,), (3, 160), (2, 0), ((n, 100),), ((n, 3), (m, 33)), ((n, 2), (m, 5))])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_sums_in_blocks(shape, dtype):
    a, x = tensor(shape, dtype)
    factors, f = tensor(shape, dtype, "factors")
    f = (f % 2 + 1).astype(dtype)
    check([topi.cumsum(a, -1), topi.cumsum(a, -1, exclusive=True), topi.cumprod(factors, -1)], {a: x, factors: f},
          [np.cumsum(x, -1, dtype), shifted(np.cumsum(x, -1, dtype), -1, 0), np.cumprod(f, -1, dtype)], rtol=1e-5)


def test_sums_in_blocks_have_the_same_bits_everywhere():
    a, x = tensor((5, 1000))
    x = np.random.default_rng(0).normal(size=x.shape).astype("float32")
    made = topi.cumsum(a, 1)
    results = [np.zeros_like(x) for _ in range(3)]
    s = te.create_schedule(made.op)
    for target, result in zip(("llvm", "llvm -mcpu=x86-64"), results):
        tedsl.build(s, [a, made], target=target)(x, result)
    interpret(tedsl.lower(s, [a, made])["main"], [x, results[2]])
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])
    exact = np.cumsum(x, 1, "float64")
    assert np.abs(results[0] - exact).max() < np.abs(np.cumsum(x, 1) - exact).max()


def shifted(values, axis, start):
    """The running values without the element itself."""
    moved = np.moveaxis(values, axis or 0, 0)
    result = np.full_like(moved, start)
    result[1:] = moved[:-1]
    return np.moveaxis(result, 0, axis or 0)


def test_dtypes_of_running_sums():
    a, x = tensor((40,), "bool")
    b, y = tensor((3, 500), "float16")
    y = np.full_like(y, 0.1)
    check([topi.cumsum(a), topi.cumsum(a, 0, "int8"), topi.cumsum(b, 1), topi.cumsum(b, 0), topi.cumsum(b, 1, "float32")],
          {a: x, b: y}, [np.cumsum(x, dtype="int32"), np.cumsum(x, dtype="int8"),
                         np.cumsum(y, 1, "float32").astype("float16"), np.cumsum(y, 0, "float32").astype("float16"),
                         np.cumsum(y, 1, "float32")], rtol=1e-5)
    made = topi.cumsum(b, -1)
    assert made.op.info == CumulativeOp("cumsum", b, 1) and made.op.tag == "cumsum_generic"


def test_running_sums_of_a_formula_in_a_schedule():
    a, x = tensor((5, 3000))
    x = np.ones_like(x)
    check(topi.cumsum(topi.exp(a) * 0.5, 1) + 1.0, {a: x}, np.cumsum(np.exp(x) / 2, 1) + 1, rtol=1e-4, schedule=None)


SORTS = [((7,), 0), ((3, 9), 1), ((9, 2), 0), ((2, 5, 3), 1), ((1, 1), -1), ((4, 1), 1), ((0, 3), 1), ((2, 0), 1),
         (((n, 4), (m, 6)), -1), ((2, 3), None)]


@pytest.mark.parametrize("shape, axis, dtype", [(*case, dtype) for case, dtype in zip(SORTS, 4 * ["float32", "int8", "uint8"])])
def test_sort_and_argsort(shape, axis, dtype):
    a, x = tensor(shape, dtype)
    x = (x % 5).astype(dtype)  # equal elements: the order is stable
    ascending = np.argsort(x, axis, kind="stable")
    descending = np.argsort(-x.astype("float64"), axis, kind="stable")
    reverse = np.take_along_axis(x, descending, axis) if axis is not None else x.ravel()[descending]
    check([topi.sort(a, axis), topi.sort(a, axis, False), topi.argsort(a, None, axis),
           topi.argsort(a, axis=axis, is_ascend=0, dtype="int32")], {a: x},
          [np.sort(x, axis), reverse, ascending.astype("float32"), descending.astype("int32")])


def test_long_rows_and_nan():
    a, x = tensor((3, 1001))
    x = np.random.default_rng(0).normal(size=x.shape).astype("float32")
    x[1, ::7] = np.nan
    x[2, :3] = [np.inf, -np.inf, np.nan]
    check([topi.sort(a), topi.argsort(a, dtype="int64"), topi.sort(a, is_ascend=0)], {a: x},
          [np.sort(x), np.argsort(x, kind="stable"), np.sort(x)[:, ::-1]])
    places = np.argsort(-np.nan_to_num(x, nan=np.inf), kind="stable")[:2, :5]  # the last row has inf beside NaN
    first = topi.strided_slice(a, [0], [2])
    check([topi.topk(first, 5, ret_type="indices"), topi.topk(first, 30, ret_type="indices")], {a: x},
          [places, np.argsort(-np.nan_to_num(x, nan=np.inf), kind="stable")[:2, :30]])
    assert topi.sort(a).op.info == SortOp("sort", a, 1) and topi.sort(a).op.tag == "sort_cpu"


def test_argsort_of_valid_elements():
    a, x = tensor((3, 6))
    count = te.placeholder((3,), "int32", name="count")
    c = np.array([0, 4, 9], "int32")
    expected = np.tile(np.arange(6, dtype="int32"), (3, 1))
    for row in range(3):
        expected[row, :c[row]] = np.argsort(-x[row, :c[row]], kind="stable")
    check(topi.argsort(a, count, -1, False), {a: x, count: c}, expected)


@pytest.mark.parametrize("shape, k, axis", [((9,), 3, 0), ((3, 7), 1, -1), ((7, 3), 7, 0), ((2, 5, 3), 2, 1), ((3, 4), 0, 1),
                                            ((2, 40), 20, 1),
                                            (((n, 4), (m, 6)), 2, -1)])
@pytest.mark.parametrize("ascending", [False, True])
def test_topk(shape, k, axis, ascending):
    a, x = tensor(shape)
    x = x % 4
    places = np.argsort(x if ascending else -x, axis, kind="stable")
    places = np.take(places, range(k or x.shape[axis]), axis)
    values = np.take_along_axis(x, places, axis)
    check([*topi.topk(a, k, axis, is_ascend=ascending), topi.topk(a, k, axis, "values", ascending),
           topi.topk(a, k, axis, "indices", ascending, "int32")], {a: x}, [values, places, values, places.astype("int32")])


def test_topk_of_a_variable():
    k = te.size_var("k")
    a, x = tensor((3, 7))
    check(topi.topk(a, k, 1, "values"), {a: x}, -np.sort(-x)[:, :4])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_searchsorted(right, dtype):
    side = "right" if right else "left"
    sequence, s = tensor((9,), dtype, "sequence")
    values, v = tensor((3, 8), dtype, "values")
    s, v = np.sort(s // 2), v // 3
    check([topi.searchsorted(sequence, values, right), topi.searchsorted(sequence, values, right, "int32")],
          {sequence: s, values: v}, [np.searchsorted(s, v, side), np.searchsorted(s, v, side).astype("int32")])
    rows, r = te.placeholder((3, m), dtype, name="rows"), np.stack([s, s + 1, s * 2])
    check(topi.searchsorted(rows, values, right), {rows: r, values: v},
          topi.testing.searchsorted_ref(r, v, right, "int64"))
    none = te.placeholder((0,), dtype, name="none")
    check(topi.searchsorted(none, values, right), {none: s[:0], values: v}, np.zeros((3, 8), "int64"))


@pytest.mark.parametrize(("dtype", "right"), [("float32", False), ("float64", True), ("int8", True), ("int64", False)])
def test_searchsorted_of_many_values_in_vectors(dtype, right):
    """Steps that all values take together, and a rest that fills no vector; n = 0, 1 and no power of two, NaN at the end."""
    n, values = te.var("n"), te.placeholder((2, 331), dtype, name="values")
    sequence = te.placeholder((n,), dtype, name="sequence")
    made = topi.searchsorted(sequence, values, right)
    kernel = tedsl.build(te.create_schedule(made.op), [sequence, values, made])
    rng = np.random.default_rng(4)
    v = rng.integers(-40, 40, (2, 331)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        v[0, ::5] = np.nan
    for length in (0, 1, 2, 3, 64, 77):
        s = np.sort(np.append(v[0, :length // 2], rng.integers(-40, 40, length - length // 2)).astype(dtype))
        result = np.full(v.shape, 99, "int64")
        kernel(s, v, result)
        np.testing.assert_array_equal(result, np.searchsorted(s, v, "right" if right else "left"))


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_unique(dtype):
    a = te.placeholder((n,), dtype, name="a")
    made = [*topi.unique(a, True, True), *topi.unique(a, False, True), *topi.unique(a)]
    kernel = tedsl.build(te.create_schedule([tensor.op for tensor in made]), [a, *made])
    for given in ([4, 5, 1, 2, 3, 3, 4, 5], [7], [2, 2, 2], [], list(range(9, 0, -1))):
        x = np.array(given, dtype)
        expected = [*unique(x, True), *unique(x, False), *unique(x, True)[:4]]
        results = [np.full(wanted.shape, 77, str(tensor.dtype)) for tensor, wanted in zip(made, expected)]
        kernel(x, *results)
        for result, wanted in zip(results, expected):
            np.testing.assert_array_equal(result, wanted)
            assert result.dtype == wanted.dtype


def unique(x, is_sorted):
    """numpy.unique in the form of topi: values, first places, inverse, number, counts."""
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    rank = np.argsort(first)
    label = np.argsort(rank)

    def padded(part, fill, of):
        return np.concatenate([part, np.full(len(x) - len(part), fill)]).astype(of)

    order, place = (slice(None), inverse) if is_sorted else (rank, label[inverse] if len(x) else inverse)
    return [padded(values[order], 0, x.dtype), padded(first[order], len(x), "int32"), place.astype("int32"),
            np.array([len(values)], "int32"), padded(counts[order], 0, "int32")]


@pytest.mark.parametrize("call, error, words", [
    (lambda a: topi.cumsum(a, 2), ShapeError, "cumsum of a: axis 2 of a tensor of rank 2"),
    (lambda a: topi.cumsum(a, 0, "bool"), DTypeError, "cumsum of a: a result of bool"),
    (lambda a: topi.sort(a, 4), ShapeError, "sort of a: axis 4"),
    (lambda a: topi.argsort(a, topi.full((4,), "int32", 0)), ShapeError, r"T_full has the shape \(4,\), the data \(2, 3\)"),
    (lambda a: topi.topk(a, 4), ShapeError, r"topk of a: k is 4, axis 1 of \(2, 3\) has 3 elements"),
    (lambda a: topi.topk(a, 1, ret_type="all"), ArgumentError, "there is no ret_type 'all'"),
    (lambda a: topi.searchsorted(a, topi.full((3, 2), "float32", 0)), ShapeError, r"the sequence a has the shape \(2, 3\)"),
    (lambda a: topi.searchsorted(a, topi.full((2, 2), "int32", 0)), DTypeError, "a holds float32 and T_full int32"),
    (lambda a: topi.unique(a), DTypeError, "data a holds float32, not integers"),
    (lambda a: topi.unique(topi.cast(a, "int32")), ShapeError, r"the shape is \(2, 3\), not that of a vector"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((2, 3), name="a"))


@pytest.mark.parametrize("valid", [False, True])
def test_argsort_of_cuda_gives_values_too(valid):
    a, x = tensor((2, 5), "float32")
    counts = te.placeholder((2,), "int32", name="counts")
    given = {a: x, counts: np.array([5, 2], "int32")} if valid else {a: x}
    made = topi.cuda.argsort(a, counts if valid else None, 1, 1, "int32", "both")
    places = np.argsort(x, 1).astype("int32")
    if valid:
        places[1] = [*np.argsort(x[1, :2]), 2, 3, 4]
    check(made, given, [np.take_along_axis(x, places, 1), places])
    with pytest.raises(ArgumentError, match="no ret_type 'values'"):
        topi.cuda.argsort(a, ret_type="values")


def test_places_are_integers():
    a, _ = tensor((5,), "float32")
    with pytest.raises(DTypeError, match="positions are integers, not float32"):
        topi.searchsorted(a, a, out_dtype="float32")
