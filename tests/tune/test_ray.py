"""Searches on a cluster of Ray, where the package is installed: this machine, with runners in processes of Ray."""

import os
import pathlib
import signal
import time

import numpy as np
import pytest

import tedsl
import topi
from tedsl import auto_scheduler, autotvm, te
from tedsl.tune import BuildOption, Checker, RunOption
from tedsl.tune.measure import RemoteMeasurer
from tedsl.tune.measure.machine import machine_model

from .conftest import Doubled

ray = pytest.importorskip("ray")
ROOT = pathlib.Path(__file__).parents[2]
BUILD, QUICK = BuildOption(timeout=60.0), RunOption(number=1, repeat=2, timeout=60.0, cooldown_interval=0)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False, logging_level="ERROR",
             runtime_env={"env_vars": {"PYTHONPATH": str(ROOT), "TEDSL_CACHE_DIR": "off"}})
    yield
    ray.shutdown()


def test_a_runner_that_is_killed_costs_one_trial(tmp_path):
    """The third candidate kills the runner that builds it: those around it have times, of another runner."""
    def deadly():
        (tmp_path / "killed").write_text("")
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

    candidates = [Doubled(split, before=deadly if split == 3 else lambda: None) for split in range(1, 8)]
    checker = Checker(candidates[0].formula(), "llvm")
    with RemoteMeasurer("llvm", BuildOption(timeout=60.0, n_parallel=1), QUICK, checker) as measurer:
        found = list(measurer.measure(iter(candidates)))
    assert (tmp_path / "killed").exists() and [candidate for candidate, _ in found] == candidates
    assert [split for split, (_, outcome) in enumerate(found, 1) if outcome.failure] == [3]
    assert found[2][1].failure.kind == "crash" and "the runner was lost" in found[2][1].failure.message
    assert {outcome.machine for _, outcome in found if not outcome.failure} == {machine_model(tedsl.Target("llvm"))}


def scaled(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", B.op.axis[0], num_outputs=2)
    cfg["tile"].apply(s, B, B.op.axis[0])
    return s, [A, B]


def test_templates_of_a_program_are_tuned(tmp_path):
    """The runner learns the template with the candidates."""
    task = autotvm.task.create(autotvm.template("tests/ray/scaled")(scaled), (64,), "llvm")
    option = autotvm.measure_option(autotvm.LocalBuilder(60), autotvm.RayRunner(60, 1, 2, cooldown_interval=0,
                                                                               check_correctness=True))
    file = tmp_path / "log.json"
    autotvm.tuner.RandomTuner(task).tune(5, option, callbacks=[autotvm.callback.log_to_file(file)])
    assert [result.error_no for _, result in autotvm.record.load_from_file(file)] == [0] * 5
    result = tedsl.tune(task, 60, trials=3, progress=False, build=BUILD, run=QUICK, cluster=True,
                        records=tmp_path / "best.json")
    assert len(result.trials) == 4 and not [trial for trial in result.trials if trial.outcome.failure]


def rows(n):
    A = te.placeholder((n, n), name="A")
    return [A, topi.sum(A, axis=1)]


def test_programs_without_templates_are_tuned(tmp_path):
    file = tmp_path / "best.json"
    task = auto_scheduler.SearchTask(rows, (40,), target="llvm")
    runner = auto_scheduler.RayRunner(60, 1, 2)
    task.tune(auto_scheduler.TuningOptions(3, verbose=0, builder=auto_scheduler.LocalBuilder(60), runner=runner,
                                           measure_callbacks=[auto_scheduler.RecordToFile(file)]))
    records = list(tedsl.tune.records.read_lines(file))
    assert len(records) == 3 and not [one for one in records if one.outcome.failure]
    assert {one.machine for one in records} == {machine_model(task.target)}
    result = tedsl.tune(rows, 4, args=(40,), trials=2, progress=False, build=BUILD, run=QUICK, cluster=True)
    a, b = np.ones((40, 40), "float32"), np.zeros(40, "float32")
    result.build()(a, b)
    assert (b == 40).all() and len(result.trials) == 2


def test_where_no_cluster_is(monkeypatch):
    ray.shutdown()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(tedsl.errors.TedslError, match="the cluster of Ray at 'auto' cannot be joined"):
        RemoteMeasurer("llvm", cluster="auto")
