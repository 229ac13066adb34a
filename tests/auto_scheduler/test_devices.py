"""Sketches for devices: what they compute, their limits, what is counted of their loops, and searches by the simulator."""

import random

import pytest

import tedsl
import topi
from tedsl import auto_scheduler, simulate, te, tune
from tedsl.auto_scheduler.cost.device import device_features, launches_of
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.auto_scheduler.search.proposal import DEFAULT, SKETCH, proposed
from tedsl.auto_scheduler.sketch.choices import Choices
from tedsl.target import Target
from tedsl.tir.analysis import verify_gpu_code
from tedsl.tune import Checker
from tedsl.tune.measure.inputs import placed
from tests.auto_scheduler.programs import PROGRAMS, matmul, of_one

CUDA = Target("cuda")
SMALL = Target("cuda -max_threads_per_block=64 -max_shared_memory_per_block=512")
QUICK = auto_scheduler.LocalRunner(timeout=100)
FEW = auto_scheduler.LocalBuilder(timeout=100)  # a machine may be busy


def drawn(problem, seed, sketch=SKETCH, **given):
    return proposed(problem, sketch, Choices(random.Random(seed), given))


def of_kind(problem, kind, seed=0):
    """A proposal all of whose kernels have this sketch, where they may have it."""
    names = {name for at in range(8) for name in drawn(problem, at).decisions if name.endswith(" sketch")}
    return drawn(problem, seed, **dict.fromkeys(names, kind))


def difference(proposal, problem, inputs, expected):
    sch, args = proposal.schedule()
    arrays = placed(inputs, CUDA)
    with simulate.mode("fast"):
        tedsl.build(sch, args, CUDA)(*arrays)
    return expected.difference(arrays)


@pytest.mark.parametrize("name", ["matmul of int8", "fused end", "argmax", "rows", "columns", "sum of both axes", "transposed",
                                  "convolution", "gradients", "no elements", "no terms", "rank 0", "bool", "batch"])
def test_what_sketches_for_devices_write_is_right(name):
    problem = Problem(PROGRAMS[name](), CUDA)
    checker = Checker(problem.args, problem.target)
    for number, kind in enumerate(("block", "shared", "element")):
        one = of_kind(problem, kind, number)
        assert one is not None and one.compiles
        assert difference(one, problem, checker.inputs, checker.expected()) == "", f"{one.decisions}\n{one.text}"


def test_each_directive_of_a_device_is_used():
    problem = Problem(matmul(64, 48, 80), CUDA)
    texts = "".join(one.text for seed in range(25) for one in [drawn(problem, seed)] if one is not None)
    for word in ("blockIdx.x", "threadIdx.x", "vthread", "'shared'", "'local'", "rfactor", "vectorize", "auto_unroll_max_step",
                 "set_store_predicate"):
        assert word in texts, word


@pytest.mark.parametrize("name", ["matmul", "convolution"])
def test_blocks_keep_to_the_limits_of_the_device(name):
    problem = Problem(PROGRAMS[name](), SMALL)
    limits = {"max_threads_per_block": 64, "max_shared_memory_per_block": 512}
    kept = refused = 0
    for seed in range(12):
        one = drawn(problem, seed)
        if one is None:
            continue
        sch, args = one.schedule()
        inside = all(verify_gpu_code(func, limits) for func in tedsl.lower(sch, args, simple_mode=True).functions.values())
        assert one.compiles == inside
        kept, refused = kept + inside, refused + (not inside)
    assert kept and refused


def counted(function, threads=32):
    """What is counted of a kernel whose element i is computed by thread i % threads of a block."""
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: function(A, i, j), name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(s[B].fuse(*B.op.axis), factor=threads)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    (launch,) = launches_of(s, [A, B])
    return launch


def test_sectors_of_a_warp_are_counted():
    along, across, one = (counted(of) for of in (lambda A, i, j: A[i, j], lambda A, i, j: A[j, i], lambda A, i, j: A[i, 0]))
    assert (along.blocks, along.threads) == (128, 32)
    assert (along.sectors, across.sectors, one.sectors) == (128 * (4 + 4), 128 * (32 + 4), 128 * (1 + 4))
    assert device_features([along])[-1] < device_features([across])[-1]


def test_what_stays_in_registers_is_not_counted_again():
    A = te.placeholder((64, 128), name="A")
    B = te.compute((64, 128), lambda i, j: A[i, 0] + A[i, j], name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    (launch,) = launches_of(s, [A, B])
    assert launch.accesses == 2 * (1 + 128 + 128)  # two warps: A[i, 0] once, A[i, j] and B[i, j] for each j


def tuned(capsys, target="cuda", trials=6, **named):
    seen = []
    task = auto_scheduler.SearchTask(lambda: matmul(64, 64, 64), (), target=target)
    task.tune(auto_scheduler.TuningOptions(trials, num_measures_per_round=3, builder=FEW, runner=QUICK,
                                           measure_callbacks=[seen.append, *named.pop("callbacks", ())], **named))
    return task, seen, capsys.readouterr().out


def test_a_search_for_a_device_is_by_estimates_and_never_below_the_default(capsys, tmp_path):
    log = tmp_path / "log.json"
    task, seen, said = tuned(capsys, callbacks=[auto_scheduler.RecordToFile(log)])
    assert all("GFLOP/s (estimated)" in line for line in said.splitlines()) and len(said.splitlines()) == 2
    assert seen[0].record.candidate["sketch"] == DEFAULT and not any(trial.final for trial in seen)
    costs = [trial.record.cost for trial in seen if trial.record.outcome.failure is None]
    assert min(costs) < costs[0]  # topi has no tiles for formulas of programs
    sch, args = task.apply_best(log)
    best = min(seen, key=lambda trial: trial.record.cost)
    assert str(sch.journal) == task.print_best(log)
    with tune.history(log), CUDA:
        assert str(topi.schedules.schedule(args[-1], CUDA).journal) == str(sch.journal)
    assert best.record.machine.startswith("simulated device")
    # the same candidates have the same times: nothing is measured
    _, again, _ = tuned(capsys)
    assert [trial.record.outcome.costs for trial in again] == [trial.record.outcome.costs for trial in seen]


def test_a_result_for_a_device_says_that_its_times_are_estimated():
    result = tedsl.tune(lambda: of_one(topi.exp, 64), seconds=5, trials=2, target="cuda", progress=False)
    assert "estimated" in repr(result) and "estimated by the simulator" in result.plot() and "measured<" not in result.plot()
