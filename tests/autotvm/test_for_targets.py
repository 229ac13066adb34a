"""Halves of templates that are registered for an operator of topi and keys of targets, as in TVM 0.6."""

import json

import numpy as np
import pytest

import tedsl
import tedsl.compat.v06 as tvm
import topi
from tedsl import autotvm
from tedsl.autotvm.record import encode
from tedsl.errors import ArgumentTypeError

TARGET = "llvm -keys=tuned_board,cpu"


@autotvm.register_topi_compute(topi.nn.dense, "tuned_board", ["direct"])
def dense_of_a_program(cfg, data, weight, bias=None, out_dtype=None):
    k = tvm.reduce_axis((0, data.shape[1]), "k")
    return tvm.compute((data.shape[0], weight.shape[0]), lambda i, j: tvm.sum(data[i, k] * weight[j, k], axis=k), name="D")


@autotvm.register_topi_schedule(topi.generic.schedule_dense, ["tuned_board"], ["direct"])
def schedule_of_a_program(cfg, outs):
    s = tvm.create_schedule([out.op for out in outs])
    rows = outs[0].op.axis[0]
    cfg.define_split("tile_y", rows, num_outputs=2)
    cfg["tile_y"].apply(s, outs[0], rows)
    return s


def task():
    return autotvm.task.create("topi_nn_dense", args=(("TENSOR", (8, 16), "float32"), ("TENSOR", (4, 16), "float32")),
                               target=TARGET, template_key="direct")


def scheduled(**options):
    A, B = tvm.placeholder((8, 16), name="A"), tvm.placeholder((4, 16), name="B")
    C = topi.nn.dense(A, B, **options)
    return [A, B, C], topi.generic.schedule_dense([C])


@pytest.mark.filterwarnings("ignore:there is no record")
def test_the_target_chooses_the_template():
    with tvm.target.create(TARGET):
        args, s = scheduled(bias=None)
        f = tvm.build(s, args, TARGET)
    assert args[-1].op.name == "D" and "split" in str(s.journal)
    a, b, c = (np.random.default_rng(0).random(shape, "float32") for shape in ((8, 16), (4, 16), (8, 4)))
    f(a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)
    args, s = scheduled()
    assert args[-1].op.name != "D" and "split" not in str(s.journal)


def test_the_best_record_is_applied():
    assert len(task().config_space) == 4 and task().workload[0] == "topi_nn_dense"
    inp = autotvm.MeasureInput(task().target, task(), task().config_space.get(2))
    result = autotvm.MeasureResult((1.0,), 0, 0.0, 0.0)
    with autotvm.ApplyHistoryBest([(inp, result)]), tedsl.target.Target(TARGET):
        _, s = scheduled()
    assert f"factor={inp.config['tile_y'].size[-1]}" in str(s.journal)
    assert json.loads(encode(inp, result))["input"][1] == "topi_nn_dense"


def test_arguments_that_the_half_does_not_take():
    with tedsl.target.Target(TARGET), pytest.raises((ArgumentTypeError, TypeError), match="units"):
        scheduled(units=3)


def test_names_of_topi_before_07():
    from tedsl.topi.x86.util import get_fp32_len

    a = tvm.placeholder((2, 3, 4, 4), name="a")
    for room in (topi.generic, topi.x86, topi.cuda):
        with tedsl.target.Target("cuda" if room is topi.cuda else "llvm"):
            for made, schedule in ((topi.nn.l2_normalize(a, 1e-3), room.schedule_l2_normalize),
                                   (topi.nn.global_pool(a, "avg"), room.schedule_global_pool)):
                assert tedsl.lower(schedule([made]), [a, made])
    assert get_fp32_len() in (4, 8, 16) and tvm.ext_dev(0).device_type and tvm.register_extension
    assert str(tvm.cosh(tvm.var("x", "float32"))).startswith("@tir.cosh(x")
