"""Operators of statements by blocks of threads, against numpy: on the simulator and on OpenCL, some with threads as loops.

Lengths are those of one tile, of several, of chunks that are merged or added up, and symbolic ones.
"""

import itertools

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from tests.devices.opencl_device import needs_opencl

pytestmark = pytest.mark.whole

N = te.var("n")
SIZE = 4100  # what n is: more than a chunk


def cases(names, values, places=("sim", "opencl")):
    """Parametrizes a test with `names` and `place`: the cases by turns on the simulator and on OpenCL."""
    listed = [pytest.param(*(case if "," in names else (case,)), place, marks=needs_opencl if place == "opencl" else ())
              for case, place in zip(values, itertools.cycle(places))]
    return pytest.mark.parametrize(f"{names}, place", listed, ids=str)



def concrete(shape):
    return [int(n) if hasattr(n, "value") or isinstance(n, int) else SIZE for n in shape]


def run(place, outs, inputs):
    """The values of `outs` by the schedule for devices. inputs: placeholders and their values."""
    target = "opencl" if place == "opencl" else "cuda"
    s = topi.schedules.schedule(outs, target)
    values = [*inputs.values(), *[np.full(concrete(out.shape), 77).astype(str(out.dtype)) for out in outs]]
    f = tedsl.build(s, [*inputs, *outs], target="llvm" if place == "loops" else target)
    device = {"sim": tedsl.sim(0), "opencl": tedsl.opencl(0), "loops": tedsl.cpu(0)}[place]
    arrays = [tedsl.nd.array(value, device) for value in values]
    f(*arrays)
    return [array.numpy() for array in arrays[len(inputs):]]


def data(shape, dtype="int32", low=-50, high=50, seed=0):
    values = np.random.default_rng(seed).integers(low, high, concrete(shape))
    return te.placeholder(shape, dtype, name=f"x{seed}"), values.astype(dtype)


ROWS = [((1,), 0), ((7, 33), 1), ((3, 5, 17), 1), ((2, 1000), 1), ((5000,), 0), ((2500, 2), 0), ((2, N), 1)]


@cases("shape, axis", ROWS)
def test_sorted_rows(shape, axis, place):
    x, values = data(shape)
    outs = [topi.sort(x, axis), topi.argsort(x, axis=axis, dtype="int32")]
    made = run(place, outs, {x: values})
    np.testing.assert_array_equal(made[0], np.sort(values, axis))
    np.testing.assert_array_equal(made[1], np.argsort(values, axis, kind="stable"))


@cases("dtype", ["float16", "float32", "float64", "uint8", "bool"])
def test_sorted_elements_of_any_dtype(dtype, place):
    x, values = data((3, 300), dtype)
    if dtype.startswith("float"):
        values[:, ::7], values[:, 1::9], values[:, 2::9] = np.nan, -0.0, -np.inf
    down = run(place, [topi.argsort(x, axis=1, is_ascend=0, dtype="int32"), topi.sort(x, 1)], {x: values})
    np.testing.assert_array_equal(down[1], np.sort(values, 1))
    keys = values.astype("float64")
    keys[np.isnan(keys)] = np.inf
    np.testing.assert_array_equal(down[0], np.argsort(-keys, 1, kind="stable"))


@cases("shape, axis, k", [((3, 40), 1, 5), ((40, 3), 0, 1), ((2, 5000), 1, 7), ((9000,), 0, 3000), ((N,), 0, 4),
                                            ((2, 6), 1, 0)])
def test_the_first_of_rows(shape, axis, k, place):
    x, values = data(shape, "float32")
    made = run(place, topi.topk(x, k, axis, dtype="int32"), {x: values})
    order = np.argsort(-values, axis, kind="stable").take(range(k or shape[axis]), axis)
    np.testing.assert_array_equal(made[1], order)
    np.testing.assert_array_equal(made[0], np.take_along_axis(values, order, axis))


@cases("extent", [30, 5000])
def test_sorted_parts_of_rows(extent, place):
    x, values = data((4, extent), "float32")
    count, counts = te.placeholder((4,), "int32", name="count"), np.array([0, extent, 7, extent + 9], "int32")
    (made,) = run(place, [topi.argsort(x, count, axis=1)], {x: values, count: counts})
    for row in range(4):
        last = min(counts[row], extent)
        np.testing.assert_array_equal(made[row, :last], np.argsort(values[row, :last], kind="stable"))
        np.testing.assert_array_equal(made[row, last:], np.arange(last, extent))


SCANS = [((1,), 0), ((7, 33), 1), ((7, 33), 0), ((70, 3), 0), ((3, 3000), 1), ((16000,), 0), ((2, 16000), 1), ((2, N), 1),
         ((3, 40, 50), 1)]


@cases("shape, axis", SCANS)
def test_running_sums(shape, axis, place):
    x, values = data(shape)
    made = run(place, [topi.cumsum(x, axis), topi.cumsum(x, axis, exclusive=True)], {x: values})
    expected = np.cumsum(values, axis, dtype="int32")
    np.testing.assert_array_equal(made[0], expected)
    np.testing.assert_array_equal(made[1], expected - values)


@cases("dtype, rtol", [("float16", 1e-3), ("float32", 1e-6), ("float64", 1e-14)])
def test_running_sums_and_products_of_floats(dtype, rtol, place):
    x, values = data((2, 2000), dtype, 0, 2)
    y, factors = data((2, 100), dtype, 1, 2, seed=1)
    made = run(place, [topi.cumsum(x, 1), topi.cumprod(y * te.const(0.995, dtype), 1)], {x: values, y: factors})
    np.testing.assert_allclose(made[0], np.cumsum(values, 1, dtype="float64"), rtol=rtol)
    factors = (factors * np.array(0.995, dtype)).astype("float64")
    np.testing.assert_allclose(made[1], np.cumprod(factors, 1), rtol=100 * rtol)


@cases("shape, count, axis", [((9,), 20, 0), ((900,), 2500, 0), ((6, 7), 40, 0), ((4, 6), 5, 1), ((9, 40), 64, 1),
                                                ((900,), N, 0)])
def test_scattered_elements_are_those_of_a_loop(shape, count, axis, place):
    """Of several updates of an element the last counts, and sums are added in order: the same bits."""
    counts = [*shape[:axis], count, *shape[axis + 1:]]
    (x, values), (u, updates) = data(shape, "float32"), data(counts, "float32", seed=1)
    updates = updates * np.float32(1.1)
    i, places = data(counts, "int32", -shape[axis] - 2, shape[axis] + 2, seed=2)
    made = run(place, [topi.scatter(x, i, u, axis), topi.scatter_add(x, i, u, axis)], {x: values, i: places, u: updates})
    stored, added = values.copy(), values.copy()
    for at in np.ndindex(*places.shape):
        where = places[at] + (shape[axis] if places[at] < 0 else 0)
        if 0 <= where < shape[axis]:
            goal = (*at[:axis], where, *at[axis + 1:])
            stored[goal] = updates[at]
            added[goal] += updates[at]
    np.testing.assert_array_equal(made[0], stored)
    np.testing.assert_array_equal(made[1], added)


@cases("shape, count, mode", [((5, 6, 7), (10,), "add"), ((25, 6, 3), (30, 20), "add"),
                                                ((25, 6, 3), (30, 20), "update"), ((50, 60), (N,), "update")])
def test_scattered_slices(shape, count, mode, place):
    (x, values), (u, updates) = data(shape, "float32"), data((*count, *shape[2:]), "float32", seed=1)
    i, places = data((2, *count), "int32", -shape[0] - 1, shape[0] + 1, seed=2)
    (made,) = run(place, [topi.scatter_nd(x, i, u, mode)], {x: values, i: places, u: updates})
    for at in np.ndindex(*places.shape[1:]):
        where = [p + n if p < 0 else p for p, n in zip(places[(slice(None), *at)], shape)]
        if all(0 <= p < n for p, n in zip(where, shape)):
            values[tuple(where)] = updates[at] + (values[tuple(where)] if mode == "add" else 0)
    np.testing.assert_array_equal(made, values)


@cases("count", [20, 3000])
def test_dense_from_sparse(count, place):
    i, places = data((count, 2), "int32", -2, 80)
    v, values = data((count,), "float32", seed=1)
    (made,) = run(place, [topi.sparse_to_dense(i, (70, 80), v, 5.0)], {i: places, v: values})
    expected = np.full((70, 80), 5, "float32")
    for (y, x), value in zip(places, values):
        if 0 <= y < 70 and 0 <= x < 80:
            expected[y, x] = value
    np.testing.assert_array_equal(made, expected)


@cases("shape, rows", [((40,), 40), ((30, 100), 500), ((30, 1000), 5), ((N,), 3000)])
def test_places_of_what_is_not_zero(shape, rows, place):
    x, values = data(shape, "int32", 0, 3)
    (made,) = run(place, [topi.argwhere((rows, len(shape)), x)], {x: values})
    found = np.argwhere(values)[:rows]
    np.testing.assert_array_equal(made[:len(found)], found)
    assert not made[len(found):].any()


@cases("n, is_sorted", [(1, True), (50, False), (3000, True), (3000, False), (N, True)], ("sim", "opencl", "loops"))
def test_distinct_values(n, is_sorted, place):
    x, values = data((n,))
    (made, indices, inverse, number, counts) = run(place, topi.unique(x, is_sorted, True), {x: values})
    expected, first, back, times = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(len(expected)) if is_sorted else np.argsort(first)
    count = len(expected)
    assert number[0] == count
    np.testing.assert_array_equal(made[:count], expected[order])
    np.testing.assert_array_equal(indices[:count], first[order])
    np.testing.assert_array_equal(counts[:count], times[order])
    np.testing.assert_array_equal(inverse, np.argsort(order)[back])
    assert not made[count:].any() and not counts[count:].any() and (indices[count:] == len(values)).all()


@cases("right", [False, True])
def test_places_in_sorted_rows(right, place):
    (x, values), (v, wanted) = data((3, 100)), data((3, 40), low=-60, high=60, seed=1)
    values.sort(1)
    (made,) = run(place, [topi.searchsorted(x, v, right, "int32")], {x: values, v: wanted})
    for row in range(3):
        np.testing.assert_array_equal(made[row], np.searchsorted(values[row], wanted[row], "right" if right else "left"))


@cases("count", [600] * 3, ("sim", "opencl", "loops"))
def test_what_surrounds_statements_is_computed_in_kernels_too(count, place):
    x, values = data((4, count), "float32")
    out = topi.nn.relu(topi.sort(x * 2.0, 1)) + topi.cumsum(topi.abs(x), 1)
    (made,) = run(place, [out], {x: values})
    np.testing.assert_array_equal(made, np.maximum(np.sort(values * 2, 1), 0) + np.cumsum(np.abs(values), 1))


@pytest.mark.parametrize("target", ["cuda -max_num_threads=100", "cuda -max_num_threads=1",
                                    "cuda -max_shared_memory_per_block=1024"])
def test_blocks_keep_the_limits_of_the_device(target):
    x, values = data((150,), "float32")
    outs = [topi.argsort(x, dtype="int32"), topi.cumsum(x)]
    with Target(target):
        f = tedsl.build(topi.schedules.schedule(outs), [x, *outs])
    arrays = [tedsl.nd.array(value, tedsl.sim(0)) for value in (values, np.zeros(150, "int32"), np.zeros(150, "float32"))]
    f(*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(arrays[2].numpy(), np.cumsum(values))


def test_a_sort_waits_once_for_each_step_of_its_network():
    x = te.placeholder((64,), "int32", name="x")
    out = topi.sort(x)
    kernels = tedsl.build(topi.schedules.schedule(out, "cuda"), [x, out], target="cuda").imported_modules[0]
    assert kernels.get_source("tir").count("tvm_storage_sync") == 6 * 7 // 2


@cases("shape, axis", [((70, 33), -1), ((3, 5, 4), -2), ((64, 7), -1), ((70, 33), -1)])
def test_all_gradients_of_layer_norm_made_where_no_device_is_named(shape, axis, place):
    random = np.random.default_rng(0)
    shapes = {"x": shape, "gamma": shape[axis:], "beta": shape[axis:], "head": shape}
    tensors = {name: te.placeholder(extents, "float32", name=name) for name, extents in shapes.items()}
    x, gamma, beta, head = tensors.values()
    axes = list(range(len(shape)))[axis:]
    y = topi.nn.layer_norm(x, gamma, beta, axes)
    found = te.gradient(y, [x, gamma, beta], head)
    assert found[0].op.tag == "normalization_adjoints"
    values = [random.standard_normal(extents).astype("float32") for extents in shapes.values()]
    expected = []
    for one in (x, gamma, beta):  # each alone: formulas
        alone, = te.gradient(y, [one], head)
        made = np.empty(shapes[one.name], "float32")
        tedsl.build(te.create_schedule(alone.op), [*tensors.values(), alone])(*values, made)
        expected.append(made)
    for made, wanted in zip(run(place, found, dict(zip(tensors.values(), values))), expected):
        np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-4)


@cases("shape, kernel, stride, padding", [
    ((2, 3, 9, 8), (3, 3), (2, 2), (1, 1, 1, 1)), ((1, 2, 7, 5), (2, 3), (1, 3), (0, 2, 1, 0)),
    ((3, 1, 1, 6), (1, 4), (1, 2), (0, 0, 0, 0)),
    ((2, 2, 4, 5, 6), (2, 2, 2), (2, 1, 2), (0, 0, 0, 1, 1, 1)), ((2, 3, 17), (5,), (3,), (2, 1))],
    ("sim", "sim", "opencl"))
def test_the_gradient_of_max_pool_made_where_no_device_is_named(shape, kernel, stride, padding, place):
    rank = len(kernel)
    x = te.placeholder(shape, "float32", name="x")
    y = [topi.nn.pool1d, topi.nn.pool2d, topi.nn.pool3d][rank - 1](x, kernel, stride, [1] * rank, padding, "max")
    head = te.placeholder(y.shape, "float32", name="head")
    found, = te.gradient(y, [x], head)
    assert found.op.tag == "pooled_maxima_adjoint"
    random = np.random.default_rng(0)
    data = random.integers(-2, 3, shape).astype("float32")  # many ties
    data[random.random(shape) < 0.05], data[random.random(shape) < 0.3] = np.nan, -np.inf
    heads = random.integers(1, 9, concrete(y.shape)).astype("float32")
    expected = np.empty(shape, "float32")
    tedsl.build(te.create_schedule(found.op), [x, head, found])(data, heads, expected)
    np.testing.assert_array_equal(run(place, [found], {x: data, head: heads})[0], expected)
