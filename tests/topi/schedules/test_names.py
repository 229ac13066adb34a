"""The names of TVM: every schedule of generic, x86 and cuda takes results and gives a Schedule; utils."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError

NAMES = [(room, name) for room in (topi.generic, topi.x86, topi.cuda) for name in dir(room)
         if name.startswith("schedule_") and name not in ("schedule_with", "schedule_injective_from_existing")
         and not name.endswith("_cuda")]  # these take a configuration first


def test_names_are_functions_of_results():
    x = te.placeholder((4, 6), name="x")
    y = topi.exp(x)
    made = {}
    for room, name in NAMES:
        function = getattr(room, name)
        if (room, function) not in made:
            made[room, function] = function([y])
        assert isinstance(made[room, function], te.Schedule) and function.__doc__, name
    generic = {name for room, name in NAMES if room is topi.generic}
    assert {"schedule_pool", "schedule_conv2d_nchw", "schedule_softmax", "schedule_extern"} <= generic


@pytest.mark.parametrize("room", [topi.generic, topi.x86])
def test_a_schedule_that_exists_is_taken_further(room):
    x = te.placeholder((40, 60), name="x")
    y = topi.exp(x)
    s = room.schedule_injective_from_existing(te.create_schedule(y.op), y)
    data, result = np.random.default_rng(0).random((40, 60), "float32"), np.empty((40, 60), "float32")
    tedsl.build(s, [x, y])(data, result)
    np.testing.assert_allclose(result, np.exp(data), rtol=1e-6)
    assert len(s[y].leaf_iter_vars) < 3 or room is topi.x86


def test_default_schedule_inlines_on_request():
    x = te.placeholder((4, 6), name="x")
    y = topi.exp(topi.sum(topi.exp(x), 1))
    assert "inline" in str(topi.generic.default_schedule([y], True))
    assert isinstance(topi.generic.default_schedule(y), te.Schedule)


def test_operations_that_are_no_formulas_stay_at_the_root():
    x = te.placeholder((8,), name="x")
    doubled = x * 2.0
    sorted_ = te.extern((8,), [doubled], lambda ins, outs: tedsl.tir.call_packed("tests.sort", ins[0], outs[0]), name="sorted")
    y = sorted_ + 1.0

    def sort(a, b):
        b[:] = np.sort(a.numpy())

    tedsl.register_func("tests.sort", sort, override=True)
    data, result = np.random.default_rng(0).random(8, "float32"), np.empty(8, "float32")
    for room in (topi.generic, topi.x86):
        tedsl.build(room.schedule_extern(y), [x, y])(data, result)
        np.testing.assert_allclose(result, np.sort(data * 2) + 1)


@pytest.mark.parametrize("room", [topi.generic, topi.x86, topi.cuda])
def test_order_and_places_by_name(room):
    x, w = te.placeholder((6, 5), name="x"), te.placeholder((5, 4), name="w")
    place = te.placeholder((6, 5), "int32", name="place")
    data = np.random.default_rng(0).permutation(30).astype("float32").reshape(6, 5)
    weight, moved = np.random.default_rng(1).random((5, 4), "float32"), np.argsort(data, 0).astype("int32")
    feeds = {x: data, w: weight, place: moved}
    scattered = np.zeros_like(data)
    np.put_along_axis(scattered, moved, data, 0)
    for made, schedule, wanted in (
            (topi.sort(x), room.schedule_sort, np.sort(data)),
            (topi.argsort(x, dtype="int32"), room.schedule_argsort, np.argsort(data)),
            (topi.topk(x, 2, ret_type="values"), room.schedule_topk, -np.sort(-data)[:, :2]),
            (topi.cumsum(x, 1), room.schedule_scan, np.cumsum(data, 1)),
            (topi.scatter(x * 0.0, place, x), room.schedule_scatter, scattered),
            (topi.einsum("ij,jk->ik", x, w), room.schedule_einsum, data @ weight),
            (topi.matmul(x, w), room.schedule_matmul, data @ weight),
            (topi.searchsorted(topi.sort(x), x), room.schedule_searchsorted, np.argsort(np.argsort(data)))):
        result = np.empty(wanted.shape, str(made.dtype))
        tedsl.build(schedule([made]), [*feeds, made], "llvm")(*feeds.values(), result)
        np.testing.assert_allclose(result, wanted, rtol=1e-5, err_msg=made.op.name)


def test_constants_out_of_expressions():
    n = te.var("n")
    shape = te.placeholder((3, n, 4), name="x").shape
    assert topi.utils.get_const_tuple(shape) == (3, n, 4) and topi.utils.get_const_int(shape[2]) == 4
    assert topi.utils.get_const_float(te.const(0.5)) == 0.5
    with pytest.raises(ArgumentError, match="n is not a constant"):
        topi.utils.get_const_int(n)


@pytest.mark.parametrize("target, vector", [("llvm -mcpu=x86-64", "float32x4"), ("llvm -mcpu=haswell", "float32x8"),
                                            ("llvm -mcpu=skylake-avx512", "float32x16")])
def test_vectors_are_as_wide_as_those_of_the_target(target, vector):
    x, w = te.placeholder((64, 64), name="x"), te.placeholder((64, 64), name="w")
    with tedsl.target.Target(target):
        loops = str(tedsl.lower(topi.schedules.schedule(topi.nn.relu(x)), [x], simple_mode=True))
        assert f"({vector}*)" in loops
        tile = str(topi.schedules.schedule(topi.matmul(x, w)))
    assert "unrolled" in tile and "vectorized" in tile


def test_schedules_that_templates_call_with_a_configuration():
    cuda = topi.cuda.depthwise_conv2d
    x, w = te.placeholder((1, 4, 6, 6), name="x"), te.placeholder((4, 1, 3, 3), name="w")
    y = topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)
    s = cuda.schedule_depthwise_conv2d_nchw_cuda(tedsl.autotvm.get_config(), [y])
    assert "blockIdx.x" in str(tedsl.lower(s, [x, w, y]))
