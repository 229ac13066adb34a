"""Templates of topi's operators: spaces of TVM v0.8, points that compute the same, contexts, packed arguments."""

import random

import numpy as np
import pytest

import tedsl
from tedsl import autotvm, te
from tedsl.autotvm.operators import OPERATORS
from tedsl.autotvm.task import SplitEntity
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.autotvm.test_tuners import Measured


def tensor(*shape, dtype="float32"):
    return ("TENSOR", shape, dtype)


CONV = ((1, 1), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32")
STRIDED = ((2, 2), (0, 1, 0, 1), (1, 1), "NCHW", "NCHW", "float32")
# The name of a task, arguments, the number of choices of each knob.
CASES = [
    ("dense_nopack.x86", (tensor(6, 96), tensor(20, 96), tensor(20), "float32"), [4, 6, 12]),
    ("dense_nopack.x86", (tensor(1, 7), tensor(1, 7), None, "float64"), [1, 1, 2]),
    ("dense_pack.x86", (tensor(12, 30), tensor(64, 30), tensor(64), "float32"), [18, 28, 8, 6]),
    ("dense_pack.x86", (tensor(5, 30), tensor(4, 30, 8), None, "float32"), [3, 21, 8, 2]),
    ("batch_matmul.x86", (tensor(3, 12, 32), tensor(3, 20, 32)), [6, 6, 6]),
    ("batch_matmul.x86", (tensor(2, 8, 5), tensor(2, 8, 9), None, None, True, False), [2, 3, 4]),
    ("conv2d_NCHWc.x86", (tensor(1, 8, 9, 9), tensor(12, 8, 3, 3), *CONV), [4, 6, 6, 2]),
    ("conv2d_NCHWc.x86", (tensor(2, 4, 8, 6), tensor(6, 4, 1, 1), *STRIDED), [3, 4, 3, 2]),
    ("conv2d_NCHWc.x86", (tensor(1, 2, 7, 7, 4), tensor(3, 2, 3, 3, 4, 8), *CONV), [4, 8, 4, 2]),
    ("depthwise_conv2d_NCHWc.x86", (tensor(1, 8, 9, 9), tensor(8, 1, 3, 3), *CONV), [4, 4, 3, 2]),
    ("depthwise_conv2d_NCHWc.x86", (tensor(1, 8, 9, 9), tensor(8, 1, 3, 3), *STRIDED), [4, 4, 2, 2]),
    ("conv2d_nchw.cuda", (tensor(1, 2, 5, 6), tensor(4, 2, 3, 3), *CONV[:3], "float32"), [10, 4, 16, 2, 2, 2, 3, 2]),
    ("conv2d_nchw.cuda", (tensor(2, 4, 7, 6), tensor(6, 4, 1, 1), *STRIDED[:3], "float32"), [16, 10, 10, 3, 1, 1, 3, 2]),
    ("depthwise_conv2d_nchw.cuda", (tensor(1, 4, 6, 6), tensor(4, 1, 3, 3), *STRIDED[:3], "float32"), [10, 4, 4, 3, 2]),
    ("dense_small_batch.gpu", (tensor(3, 40), tensor(7, 40), tensor(7), "float32"), [8]),
    ("dense_large_batch.gpu", (tensor(12, 30), tensor(20, 30), tensor(20), "float32"), [40, 40, 27]),
    ("dense_large_batch.gpu", (tensor(1, 7), tensor(1, 7), None, "float32"), [1, 1, 3]),
    ("batch_matmul.cuda", (tensor(3, 12, 8), tensor(3, 20, 8)), [18, 18, 4, 4, 2]),
    ("batch_matmul.cuda", (tensor(2, 8, 5), tensor(2, 8, 9), None, None, True, False), [3, 6, 4, 4, 2]),
]


def target_of(name):
    return "llvm" if name.endswith(".x86") else "cuda"


def in_channels(array):
    """(N, C, H, W) of (N, C, H, W, c)."""
    n, outer, h, w, inner = array.shape
    return array.transpose(0, 1, 4, 2, 3).reshape(n, outer * inner, h, w)


def weights_in_channels(array):
    o, i, h, w, u, v = array.shape
    return array.transpose(0, 5, 1, 4, 2, 3).reshape(o * v, i * u, h, w)


def expected(name, arrays, args):
    if name.startswith("dense"):
        data, weight, *bias = arrays
        if weight.ndim == 3:
            weight = weight.transpose(0, 2, 1).reshape(-1, weight.shape[1])
        return data @ weight.T + (bias[0] if bias else 0)
    if name.startswith("batch"):
        a, b = arrays
        return np.einsum("bki,bkj->bij" if len(args) > 2 else "bik,bjk->bij", a, b)
    data, kernel = arrays
    if data.ndim == 5:
        data, kernel = in_channels(data), weights_in_channels(kernel)
    (sh, sw), (top, left, bottom, right) = args[2:4]
    padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], (2, 3))[:, :, ::sh, ::sw]
    if name.startswith("depthwise"):
        return np.einsum("nchwyx,cyx->nchw", windows, kernel[:, 0])
    return np.einsum("nchwyx,ocyx->nohw", windows, kernel)


@pytest.mark.parametrize("name, args, dims", CASES)
def test_points_compute_the_same(name, args, dims):
    task = autotvm.task.create(name, args, target_of(name))
    assert task.config_space.dims == dims
    rng, draw = np.random.default_rng(0), random.Random(0)
    configs = [task.config_space.get(draw.randrange(len(task.config_space))) for _ in range(2)]
    for config in (*configs, autotvm.FallbackConfigEntity()):
        s, tensors = task.instantiate(config)
        arrays = [rng.random([int(extent) for extent in one.shape]).astype(one.dtype) for one in tensors]
        place = tedsl.sim(0) if task.target.is_device else tedsl.cpu()
        there = [tedsl.nd.array(array, place) for array in arrays]
        with tedsl.simulate.mode("checked"):
            tedsl.build(s, tensors, task.target)(*there)
        arrays[0] = there[0].numpy()
        result = in_channels(arrays[0]) if arrays[0].ndim == 5 else arrays[0]
        np.testing.assert_allclose(result, expected(name, arrays[1:], args), rtol=1e-4, atol=1e-4)


def test_spaces_are_those_of_tvm():
    """429 points are those of a record of TVM v0.8 for the first layer of AlexNet's classifier."""
    task = autotvm.task.create("dense_nopack.x86", (tensor(1, 9216), tensor(4096, 9216), None, "float32"), "llvm")
    assert len(task.config_space) == 429 and list(task.config_space) == ["tile_y", "tile_x", "tile_k"]
    space = autotvm.task.create("conv2d_NCHWc.x86", CASES[6][1], "llvm").config_space
    assert list(space) == ["tile_ic", "tile_oc", "tile_ow", "unroll_kw"]
    assert list(autotvm.task.create("conv2d_NCHWc.x86", CASES[7][1], "llvm").config_space)[-1] == "tile_oh"


def test_spaces_of_devices_are_those_of_tvm():
    """The convolution of ResNet's first blocks, and the layer of 1000 classes."""
    args = (tensor(1, 64, 56, 56), tensor(64, 64, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), "float32")
    space = autotvm.task.create("conv2d_nchw.cuda", args, "cuda").config_space
    assert list(space) == ["tile_f", "tile_y", "tile_x", "tile_rc", "tile_ry", "tile_rx", "auto_unroll_max_step",
                           "unroll_explicit"]
    assert space.dims == [84, 80, 80, 7, 2, 2, 3, 2]
    dense = ("dense_small_batch.gpu", (tensor(1, 512), tensor(1000, 512), None, "float32"))
    assert autotvm.task.create(*dense, "cuda").config_space.dims == [10]
    explicit = autotvm.task.create("batch_matmul.cuda", (tensor(1, 8, 8), tensor(1, 8, 8)), "nvptx").config_space
    assert explicit.dims[-1] == 1


@pytest.mark.parametrize("name, args, knob, size", [
    ("conv2d_nchw.cuda", (tensor(1, 4, 64, 64), tensor(4, 4, 1, 1), *CONV[:3], "float32"), "tile_x", (-1, 1, 64, 1)),
    ("dense_large_batch.gpu", (tensor(64, 4), tensor(64, 4), None, "float32"), "tile_y", (-1, 1, 64, 1)),
    ("dense_small_batch.gpu", (tensor(1, 4096), tensor(2, 4096), None, "float32"), "tile_k", (-1, 2048))])
def test_blocks_of_more_threads_than_a_device_has_are_refused(name, args, knob, size):
    task = autotvm.task.create(name, args, "cuda")
    chosen = {name: choices[0] for name, choices in task.config_space.space_map.items()} | {knob: SplitEntity(size)}
    if "small" not in name:
        chosen["tile_x" if knob == "tile_y" else "tile_y"] = SplitEntity(size)
    with pytest.raises(ArgumentError, match=r"threads(.|\n)*a block of the device has at most 1024"):
        task.instantiate(autotvm.ConfigEntity(0, None, chosen))


def test_points_that_are_refused_are_no_end_of_a_search():
    """The last point of the space has more threads than a device."""
    args = (tensor(1, 2048), tensor(2, 2048), None, "float32")
    task = autotvm.task.create("dense_small_batch.gpu", args, "cuda")
    with pytest.raises(ArgumentError, match="a block of the device has at most 1024"):
        task.instantiate(task.config_space.get(len(task.config_space) - 1))
    result = tedsl.tune(task, 120, trials=1, progress=False)
    assert result.trials[0].outcome.failure is None and result.build()


def test_operators_of_devices_are_tuned_on_the_simulator(tmp_path):
    """Times of a model, and said to be such; the best record is used for the same operator."""
    file, args = tmp_path / "best.json", (tensor(4, 24), tensor(16, 24), None, "float32")
    result = tedsl.tune("dense_large_batch.gpu", 120, args=args, trials=4, records=file, progress=False, target="cuda")
    assert [trial.outcome.failure for trial in result.trials] == [None] * 5
    assert "GFLOP/s (estimated)" in repr(result) and "of a call, estimated" in result.plot()
    dense, schedule_dense = autotvm.operator("dense_large_batch.gpu")
    with autotvm.apply_history_best(file), tedsl.Target("cuda"):
        s = schedule_dense([dense(te.placeholder((4, 24)), te.placeholder((16, 24)), None, "float32")])
    best = min(result.trials[1:], key=lambda trial: trial.cost)
    assert str(s.journal) == str(best.candidate.schedule()[0].journal)


def test_each_operator_has_a_case():
    assert {name for name, *_ in CASES} == OPERATORS.keys()


def test_the_best_record_is_used():
    task = autotvm.task.create("dense_pack.x86", CASES[2][1], "llvm")
    config = task.config_space.get(12345)
    pair = (autotvm.MeasureInput(task.target, task, config), autotvm.MeasureResult((1.0,), 0, 0.0, 0.0))
    dense, schedule_dense = autotvm.operator("dense_pack.x86")
    data, weight, bias = (te.placeholder(one[1], one[2]) for one in task.args[:3])
    with autotvm.ApplyHistoryBest([pair]), task.target:
        s = schedule_dense([dense(data, weight, bias, "float32")])
    assert str(s.journal) == str(task.instantiate(config)[0].journal)


def test_packed_operands_are_arguments_while_a_tuner_measures(monkeypatch):
    seen = []

    def measure_batch(task, option):
        def seconds(config):
            seen.append([str(arg.shape) for arg in task.instantiate(config)[1]])
            return 1.0
        return Measured(seconds)

    monkeypatch.setattr(autotvm.tuner.tuner, "create_measure_batch", measure_batch)
    task = autotvm.task.create("dense_pack.x86", CASES[2][1], "llvm")
    panel = task.config_space.get(0)["tile_x"].size[-1]
    for check, weight in ((False, f"[{64 // panel}, 30, {panel}]"), (True, "[64, 30]")):
        option = autotvm.measure_option("local", autotvm.LocalRunner(check_correctness=check))
        autotvm.tuner.GridSearchTuner(task).tune(1, option)
        assert weight in seen[-1] and not autotvm.GLOBAL_SCOPE.in_tuning


def test_missing_records_can_be_silent(recwarn, monkeypatch):
    monkeypatch.setattr(autotvm.GLOBAL_SCOPE, "silent", True)
    dense, _ = autotvm.operator("dense_nopack.x86")
    dense(te.placeholder((3, 5)), te.placeholder((7, 5)), None, "float32")
    assert not recwarn.list


def test_operators_are_tuned():
    for name, args, _ in (CASES[0], CASES[6]):  # in the second one knobs change the shape of the result
        result = tedsl.tune(name, 20, args=args, trials=1, progress=False, target="llvm")
        assert [trial.outcome.failure for trial in result.trials] == [None] * 2 and result.build()


def test_a_customized_task_takes_the_place_of_an_operator(monkeypatch):
    monkeypatch.setattr("tedsl.autotvm.task.templates.TEMPLATES", made := {})

    @autotvm.register_customized_task("dense_nopack.x86")
    def mine(n):
        return n

    assert made == {"dense_nopack.x86": mine} and mine(3) == 3


@pytest.mark.parametrize("call, error, words", [
    (lambda: autotvm.task.create("depthwise_conv2d_nchw.cuda", (tensor(2, 3), tensor(2, 3), *CONV[:3], "float32"), "cuda"),
     ShapeError, "the layout NCHW has 4"),
    (lambda: autotvm.task.create("dense_small_batch.gpu", (tensor(2, 3), tensor(2, 3), None, "float32"), "llvm"), ArgumentError,
     "this operator is for devices, and llvm -keys=cpu is a processor"),
    (lambda: autotvm.operator("dense.cuda"), ArgumentError, "there is none called 'dense.cuda'"),
    (lambda: autotvm.operator([]), ArgumentError, "there is none called"),
    (lambda: autotvm.register_customized_task(3), ArgumentTypeError, "the name of a task is a str"),
    (lambda: autotvm.task.create("dense_pack.x86", (tensor(2, 3), tensor(2), None, "float32"), "llvm"), ShapeError,
     "weight"),
    (lambda: autotvm.task.create("conv2d_NCHWc.x86", (tensor(2, 3), tensor(2, 3), *CONV), "llvm"), ShapeError, "data")])
def test_misuse(call, error, words):
    with pytest.raises(error, match=words):
        call()
