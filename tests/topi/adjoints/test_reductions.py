"""Adjoints of reductions, pooling, running sums and sorting against central differences; what counts where elements tie."""

import warnings

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from tests.topi.adjoints.differences import check_record, differences, distinct, shape_of, values
from topi import nn

pytestmark = pytest.mark.sampled(2)

AXES = [None, 0, 1, -1, (0, 2), (1, 2)]


def adjoint_of(out, feeds, head):
    tensor = te.placeholder(out.shape, out.dtype, name="head")
    wanted = [one for one in feeds if one.dtype.is_float]
    found = out.op.info.adjoint(out.op, tensor, wanted)
    return values([found[one] for one in wanted], {**feeds, tensor: np.asarray(head, str(out.dtype))})


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("operator", [topi.sum, topi.max, topi.min])
def test_reductions(operator, axis, keepdims):
    x = te.placeholder((3, 5, 4), "float64", name="x")
    check_record(operator(x, axis, keepdims), {x: distinct((3, 5, 4))})


def test_the_first_of_equal_elements_wins_in_row_major_order():
    x = te.placeholder((2, 3, 2), "float64", name="x")
    feeds = {x: np.array([[[1, 2], [2, 2], [0, 2]], [[3, 3], [3, 3], [3, 3]]], "float64")}
    made, = adjoint_of(topi.max(x, (1, 2)), feeds, [5, 7])
    assert np.array_equal(made, [[[0, 5], [0, 0], [0, 0]], [[7, 0], [0, 0], [0, 0]]])


def test_products_are_left_to_the_formula():
    x = te.placeholder((3, 4), "float64", name="x")
    product = topi.prod(x, 1)
    assert product.op.info.adjoint(product.op, te.placeholder((3,), "float64", name="head"), [x]) is None


@pytest.mark.parametrize("kernel, stride, padding, ceil", [
    ((2, 2), (2, 2), (0, 0, 0, 0), False), ((3, 2), (2, 1), (1, 0, 1, 1), False), ((3, 3), (2, 2), (1, 1, 1, 1), True),
    ((2, 3), (3, 2), (0, 1, 1, 0), True)])
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_pooling(layout, kind, kernel, stride, padding, ceil):
    shape = (2, 3, 7, 6) if layout == "NCHW" else (2, 7, 6, 3)
    x = te.placeholder(shape, "float64", name="x")
    pooled = nn.pool2d(x, kernel, stride, (1, 1), padding, kind, ceil, layout)
    sums = pooled if kind == "max" else pooled.op.input_tensors[0]
    check_record(sums, {x: distinct(shape)})


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_of_other_ranks(rank, kind):
    shape = (2, 2, 5, 4, 3)[:2 + rank]
    x = te.placeholder(shape, "float64", name="x")
    pooled = {1: nn.pool1d, 3: nn.pool3d}[rank](x, [2] * rank, [2] * rank, [1] * rank, [1] * 2 * rank, kind)
    check_record(pooled if kind == "max" else pooled.op.input_tensors[0], {x: distinct(shape)})


def test_the_first_element_of_a_window_wins():
    x = te.placeholder((1, 1, 2, 4), "float64", name="x")
    pooled = nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
    made, = adjoint_of(pooled, {x: np.zeros((1, 1, 2, 4))}, [[[[3, 4]]]])
    assert np.array_equal(made[0, 0], [[3, 0, 4, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("shape, axis", [((6,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1), ((2, 40), 1)])
@pytest.mark.parametrize("operator", [topi.cumsum, topi.cumprod])
def test_running(operator, shape, axis, exclusive):
    x = te.placeholder(shape, "float64", name="x")
    check_record(operator(x, axis, exclusive=exclusive), {x: distinct(shape, low=0.5, high=1.5)}, tolerance=1e-6)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("zeros", [(0,), (2,), (5,), (1, 3), (0, 5)])
def test_running_products_with_zeros(zeros, exclusive):
    x = te.placeholder((6,), "float64", name="x")
    row = distinct((6,), low=0.5, high=1.5)
    row[list(zeros)] = 0
    check_record(topi.cumprod(x, 0, exclusive=exclusive), {x: row})


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("shape, axis", [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1)])
def test_sorting(shape, axis, ascending):
    x = te.placeholder(shape, "float64", name="x")
    check_record(topi.sort(x, axis, ascending), {x: distinct(shape)})
    check_record(topi.topk(x, 2, axis, "values", ascending), {x: distinct(shape)})
    check_record(topi.topk(x, 2, axis, "both", ascending)[0], {x: distinct(shape)})


def test_places_have_no_derivative():
    x = te.placeholder((3, 5), "float64", name="x")
    places = topi.argsort(x, dtype="float64")
    assert places.op.info.adjoint(places.op, te.placeholder((3, 5), "float64", name="head"), [x]) is None


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "HWCN"])
def test_gradients_of_maxima_have_gradients(layout):
    size = {"N": 2, "C": 3, "H": 5, "W": 6}
    x = te.placeholder([size[letter] for letter in layout], "float64", name="x")
    pooled = nn.pool2d(x, (3, 2), (2, 1), (1, 2), (1, 1, 0, 1), "max", layout=layout)
    feeds = {x: distinct([size[letter] for letter in layout])}
    check_record(pooled, feeds)
    head = te.placeholder(pooled.shape, "float64", name="of_pooled")
    adjoint = pooled.op.info.adjoint(pooled.op, head, [x])[x]
    check_record(adjoint, {**feeds, head: distinct([n.value for n in pooled.shape], seed=5)}, inputs=[head])


def test_a_window_with_nan_gives_its_head_to_it():
    x = te.placeholder((1, 1, 2, 2), "float64", name="x")
    pooled = nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
    made, = adjoint_of(pooled, {x: np.array([[[[1, np.nan], [3, 2]]]])}, [[[[3]]]])
    assert np.array_equal(made[0, 0], [[0, 3], [0, 0]])


BY_PLANES = [
    ((2, 3, 9, 70), (3, 3), (2, 2), (1, 1, 1, 1), "float32"), ((5, 1, 6, 37), (2, 5), (1, 4), (0, 2, 1, 3), "float32"),
    ((3, 1, 7, 33), (2, 2), (3, 3), (0, 1, 0, 0), "float64"), ((1, 2, 6, 18), (3, 4), (5, 4), (2, 3, 2, 3), "float64"),
    ((2, 2, 5, 4, 21), (2, 1, 3), (2, 1, 1), (1, 0, 2, 0, 0, 0), "float64"), ((4, 3, 19), (3,), (2,), (1, 1), "float32"),
    ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0), "float32")]


def pooled_by_planes(shape, kernel, stride, padding, dtype):
    x, rank = te.placeholder(shape, dtype, name="x"), len(kernel)
    pooled = {1: nn.pool1d, 2: nn.pool2d, 3: nn.pool3d}[rank](x, kernel, stride, [1] * rank, padding, "max")
    return x, pooled, te.placeholder(pooled.shape, dtype, name="head")


@pytest.mark.parametrize("case", BY_PLANES, ids=str)
def test_maxima_by_planes_are_those_of_formulas(case):
    shape, *_, dtype = case
    x, pooled, head = pooled_by_planes(*case)
    found, = te.gradient(pooled, [x], head)
    assert found.op.tag == "pooled_maxima_adjoint"
    with Target("cuda"):  # as formulas and sums one after the other
        expected, = te.gradient(pooled, [x], head)
    assert expected.op.tag == "placed_sums"
    rng = np.random.default_rng(0)
    data = rng.integers(-2, 3, shape).astype(dtype)  # many ties
    data[rng.random(shape) < 0.05] = np.nan
    data[rng.random(shape) < 0.3] = -np.inf
    feeds = {x: data, head: rng.integers(1, 9, shape_of(head)).astype(dtype)}  # sums are exact in any order
    for made, wanted in zip(values([found], feeds), values([expected], feeds)):
        assert np.array_equal(made, wanted)


@pytest.mark.parametrize("kernel, stride, layout, dtype", [
    ((6, 6), (6, 6), "NCHW", "float32"), ((2, 2), (2, 5), "NCHW", "float32"), ((2, 2), (2, 2), "NHWC", "float32"),
    ((2, 2), (2, 2), "NCHW", "float16")], ids=["many taps", "far apart", "channels last", "narrow"])
def test_other_maxima_stay_formulas(kernel, stride, layout, dtype):
    x = te.placeholder((2, 12, 12, 12), dtype, name="x")
    pooled = nn.pool2d(x, kernel, stride, (1, 1), (0, 0, 0, 0), "max", layout=layout)
    assert te.gradient(pooled, [x], te.placeholder(pooled.shape, dtype, name="head"))[0].op.tag != "pooled_maxima_adjoint"


def test_gradients_of_maxima_by_planes_have_gradients():
    x, pooled, head = pooled_by_planes((2, 1, 5, 6), (3, 2), (2, 1), (1, 1, 0, 1), "float64")
    found, = te.gradient(pooled, [x], head)
    feeds = {x: distinct((2, 1, 5, 6)), head: distinct(shape_of(pooled), seed=5)}
    weights, given = te.placeholder(found.shape, "float64", name="weights"), distinct((2, 1, 5, 6), seed=7)
    made, = values(te.gradient(found, [head], weights), {**feeds, weights: given})
    np.testing.assert_allclose(made, differences(found, feeds, head, given), rtol=1e-7, atol=1e-7)
    tangent, = values([te.jvp(pooled, [x], [weights])], {x: feeds[x], weights: given})
    assert np.isclose(np.sum(values([found], feeds)[0] * given), np.sum(tangent * feeds[head]))


@pytest.mark.parametrize("shape", [(4, 64, 32, 32), (32, 16, 8, 8), (4, 64, 33, 31)])
def test_planes_are_computed_in_parallel(shape):
    x, pooled, head = pooled_by_planes(shape, (3, 3), (2, 2), (1, 1, 1, 1), "float32")
    found, = te.gradient(pooled, [x], head)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of races
        text = str(tedsl.lower(topi.schedules.schedule([found]), [x, head, found], simple_mode=True))
    assert '"parallel"' in text
