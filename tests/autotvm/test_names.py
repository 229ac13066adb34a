"""Names of TVM's autotvm in the places where programs look for them, and what is said of those that are not here."""

import importlib

import numpy as np
import pytest

import tedsl
from tedsl import auto_scheduler, autotvm, te
from tedsl.autotvm.record import decode, encode, load_from_file
from tedsl.autotvm.task.dispatcher import DispatchContext
from tedsl.autotvm.tuner import metric
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError
from tests.autotvm.templates import matmul, scaled
from tests.autotvm.test_tasks import LINE, task_of
from tests.refusing import absent


@pytest.mark.parametrize("path, same", [
    ("task.ApplyHistoryBest", "ApplyHistoryBest"), ("task.dispatcher.ApplyHistoryBest", "ApplyHistoryBest"),
    ("create", "task.create"), ("task.task.template", "template"), ("task.task.get_config", "get_config"),
    ("task.task.register_customized_task", "register_customized_task"),
    ("tuner.model_based_tuner.point2knob", "tuner.genetic.genes_of"), ("tuner.ga_tuner.knob2point", "tuner.genetic.number_of"),
    ("task.topi_integration.get_workload", "task.get_workload"),
    ("task.dispatcher.clear_fallback_cache", "task.clear_fallback_cache")])
def test_names_are_in_their_old_places(path, same):
    home, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(f"tedsl.autotvm.{home}".rstrip(".")), name)
    here = autotvm
    for part in same.split("."):
        here = getattr(here, part)
    assert found is here


@pytest.mark.parametrize("path", [
    "apply_fixed_config", "task.ApplyFixedConfig", "task.dispatcher.ApplyGraphBest", "task.dispatcher.ApplyFixedConfig",
    "task.task.TaskTemplate", "task.task.MissingTask", "task.space.SplitSpace", "task.space.ReorderSpace",
    "task.space.AnnotateSpace", "task.space.OtherOptionSpace", "task.space.TransformSpace", "utils.pool_map",
    "measure.default_module_loader", "measure.measure_methods.set_cuda_target_arch", "tuner.model_based_tuner.CostModel",
    "tuner.sa_model_optimizer.SimulatedAnnealingOptimizer", "tuner.xgboost_cost_model.XGBoostCostModel"])
def test_names_that_are_not_here_say_what_to_use(path):
    absent(f"tedsl.autotvm.{path}")


@pytest.mark.parametrize("path, near", [
    ("task.task.serialise_args", "serialize_args"), ("task.space.ConfigSpce", "ConfigSpace"),
    ("task.dispatcher.ApplyConfg", "ApplyConfig")])
def test_misspelt_names_say_which_is_near(path, near):
    """These modules gave Python's AttributeError, or functions of other modules."""
    home, _, name = path.rpartition(".")
    with pytest.raises(OptionError, match=f"did you mean {near}"):
        getattr(importlib.import_module(f"tedsl.autotvm.{home}"), name)


def test_a_default_configuration_is_forgotten():
    target, workload = tedsl.target.Target("llvm"), ("tests/matmul", 20, 20, "float32")
    with autotvm.task.dispatcher.FallbackContext(), autotvm.ApplyHistoryBest(None), target:
        for _ in range(2):
            with pytest.warns(UserWarning, match="there is no record of"):
                matmul(20, 20, "float32")
            first = DispatchContext.current.query(target, workload)
            assert DispatchContext.current.query(target, workload) is first
            autotvm.task.clear_fallback_cache(target, workload)
            autotvm.task.clear_fallback_cache(target, ("never", "asked"))


def test_the_workload_of_a_tensor():
    x = te.placeholder((24,), name="x")
    with autotvm.ApplyConfig(autotvm.task.create("tests/scaled.x86", (x, 5.0), "llvm").config_space.get(0)):
        y = scaled(x, 5.0)
    twice = te.compute((24,), lambda i: y[i] * 2.0)
    workload = ("tests/scaled.x86", ("TENSOR", (24,), "float32"), 5.0)
    assert autotvm.task.get_workload([twice]) == autotvm.task.get_workload(y, "tests/scaled.x86") == workload
    assert autotvm.task.get_workload([twice], "another") is None and autotvm.task.get_workload([x]) is None
    with pytest.raises(ArgumentTypeError, match="get_workload takes tensors"):
        autotvm.task.get_workload(3)


def test_operations_that_are_not_known_are_an_error_of_their_own():
    """Statements alone counted as one operation."""
    out = te.extern((8,), [], lambda ins, outs: tedsl.tir.Evaluate(0), dtype="float32")
    with pytest.raises(autotvm.task.task.FlopCalculationError, match=r"not known from statements(.|\n)*add_flop"):
        autotvm.task.compute_flop(te.create_schedule(out.op))
    assert auto_scheduler.ComputeDAG([out]).flop_ct == -1
    assert issubclass(autotvm.task.task.FlopCalculationError, (RuntimeError, ArgumentError))


def test_choices_of_a_point_and_back():
    dims = task_of().config_space.dims
    point2knob, knob2point = autotvm.tuner.model_based_tuner.point2knob, autotvm.tuner.model_based_tuner.knob2point
    assert list(point2knob(11, dims)) == [4, 1, 0] and all(knob2point(point2knob(p, dims), dims) == p for p in range(98))


def test_curves_of_a_search():
    assert metric.max_curve([1, 3, 2, 5.5]).tolist() == [1, 3, 3, 5.5] and metric.max_curve([]).tolist() == []
    assert metric.mean_curve([1, 3, 2]).tolist() == [1, 2, 2]
    assert metric.recall_curve([0, 5, 1, 2], top=2).tolist() == [0, 0.5, 0.5, 1]
    assert metric.recall_curve([0, 2, 1]).tolist() == [0, 0.5, 2 / 3]
    assert metric.cover_curve([1, 0, 3, 2]).tolist() == [0, 0.5, 0.5, 1]
    assert metric.average_recall([0.9, 0.1, 0.5], np.array([3.0, 1.0, 2.0]), 3) == pytest.approx((0 + 0.5 + 2 / 3) / 3)
    for wrong in (lambda: metric.max_curve("ab"), lambda: metric.max_curve([[1]]), lambda: metric.recall_curve([0], top=0),
                  lambda: metric.average_recall([1], [1, 2], 1)):
        with pytest.raises(ArgumentError):
            wrong()


def test_a_file_is_split_by_workloads(tmp_path):
    log, later = tmp_path / "all.log", LINE.replace("1600000000.25", "1600000009.0")
    other = LINE.replace("64, 64", "24, 24")
    log.write_text(f"{LINE}\n{other}\n{later}\n")
    autotvm.record.split_workload(log)
    assert (tmp_path / "all.log.000.wkl").read_text() == f"{later}\n" and decode(other)
    assert [encode(*pair) for pair in load_from_file(tmp_path / "all.log.001.wkl")] == [other]
    autotvm.record.split_workload(str(log), clean=False)
    assert (tmp_path / "all.log.000.wkl").read_text() == f"{LINE}\n{later}\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.log", "all.log.000.wkl", "all.log.001.wkl"]


def test_a_context_that_does_nothing():
    with autotvm.utils.EmptyContext():
        assert DispatchContext.current.query(None, None) is not None
