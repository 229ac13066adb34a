"""Names of TVM's auto_scheduler where programs look for them: methods of a ComputeDAG, workloads of tensors, ..."""

from dataclasses import replace

import pytest

from tedsl import auto_scheduler, autotvm, te
from tedsl.auto_scheduler.record import pair_of
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError, TedslError
from tedsl.schedule.journal import Journal
from tedsl.tune import Outcome, Record
from tedsl.tune.measure import Failure
from tedsl.tune.records import append_line
from tests.auto_scheduler.programs import fused_end, matmul
from tests.refusing import absent, refused


def task_of(n):
    return auto_scheduler.SearchTask(lambda: matmul(n, n, n), (), target="llvm")


def test_bounds_of_a_state():
    """Loops of a stage that is computed at one of another had no extents."""
    task = auto_scheduler.SearchTask(fused_end, (), target="llvm")
    dag, states = task.compute_dag, auto_scheduler.SketchPolicy(task).generate_sketches()
    assert any(" at most" in str(state) or "for j.c " in str(state) for state in states)
    for state in [*states, dag.init_state]:
        bounded = dag.infer_bound_from_state(state)
        loops = [line for line in str(bounded).splitlines() if line.lstrip().startswith("for ")]
        assert all(" in 0.." in line and " at most" not in line for line in loops)
        assert bounded.journal == state.journal and bounded.stages == state.stages
    wrong = auto_scheduler.State(dag.tensors, Journal(states[1].journal))
    with pytest.raises(TedslError):
        task_of(8).compute_dag.infer_bound_from_state(wrong)
    for method in (dag.infer_bound_from_state, dag.apply_steps_from_state, dag.print_python_code_from_state):
        with pytest.raises(ArgumentTypeError, match="a ComputeDAG takes states, not an int"):
            method(3)


def test_keys_and_initial_states_of_a_dag():
    task = task_of(16)
    assert task.compute_dag.workload_key() == task.workload_key and str(task.compute_dag.init_state.journal) == ""
    with pytest.raises(OptionError, match=r"a ComputeDAG has no rewrite_layout_from_state(.|\n)*apply_steps_from_state, whose"):
        _ = task.compute_dag.rewrite_layout_from_state
    with pytest.raises(OptionError, match="did you mean flop_ct"):
        _ = task.compute_dag.flop_count


def test_tensors_are_a_workload():
    tensors = matmul(8, 8, 24)
    key = auto_scheduler.ComputeDAG(tensors).workload_key()
    register = auto_scheduler.workload_registry.register_workload_tensors
    assert register(key, tensors) == register(key, tensors) == key
    assert auto_scheduler.workload_key_to_tensors(key) == tensors
    task = auto_scheduler.SearchTask(workload_key=key, target="llvm")
    assert task.workload_key == key and task.compute_dag.tensors == tensors
    with pytest.raises(ArgumentError, match="there is a workload"):
        register(key, tensors, override=False)
    with pytest.raises(ArgumentTypeError, match="takes a key and tensors, not a list first"):
        register(tensors, key)
    with pytest.raises(ArgumentTypeError, match="and not the tensors of a program"):
        register("mine", [3])


def test_layout_options():
    option = auto_scheduler.LayoutRewriteOption
    assert option is auto_scheduler.compute_dag.LayoutRewriteOption and option.get_target_default("llvm", True) == 1
    tensors = matmul(8, 8, 8)
    for one in (option.NO_REWRITE, option.INSERT_TRANSFORM_STAGE, None):
        task = auto_scheduler.SearchTask(lambda: tensors, (), target="llvm", layout_rewrite_option=one)
        _, args = task.compute_dag.apply_steps_from_state(task.compute_dag.init_state, one)
        assert args == tensors
    with pytest.raises(ArgumentError, match="arguments keep their layout"):
        task.compute_dag.apply_steps_from_state(task.compute_dag.init_state, option.REWRITE_FOR_PRE_TRANSFORMED)
    with pytest.raises(ArgumentError, match="arguments keep their layout"):
        task.apply_best("no.json", layout_rewrite_option=option.REWRITE_FOR_PRE_TRANSFORMED)
    with pytest.raises(ArgumentError, match="one of LayoutRewriteOption, not 'all'"):
        auto_scheduler.SearchTask(lambda: tensors, (), target="llvm", layout_rewrite_option="all")


@pytest.mark.parametrize("kind, name", [
    ("refused", "INSTANTIATION_ERROR"), ("compile", "COMPILE_HOST"), ("run", "RUNTIME_DEVICE"), ("wrong", "WRONG_ANSWER"),
    ("timeout", "RUN_TIMEOUT"), ("crash", "UNKNOWN_ERROR")])
def test_numbers_of_errors(kind, name):
    """Each failure was number 1."""
    failed = Record("task", "llvm", "machine", "versions", {}, Outcome((), Failure(kind, "why"), 0.5, 2.0, 3.0))
    _, result = pair_of(failed)
    assert result.error_no == getattr(auto_scheduler.measure.MeasureErrorNo, name) and result.error_msg == f"{kind}: why"
    _, result = pair_of(replace(failed, outcome=Outcome((1e-3,))))
    assert result.error_no == auto_scheduler.MeasureErrorNo.NO_ERROR == 0


@pytest.mark.parametrize("path", [
    "DispatchContext", "ApplyHistoryBestOrSample", "MeasureCallback", "get_shape_from_rewritten_layout", "rewrite_compute_body",
    "measure.ProgramMeasurer", "measure.local_builder_build", "measure.prepare_input_map",
    "feature.get_per_store_features_from_file", "compute_dag.get_shape_from_rewritten_layout"])
def test_names_that_are_not_here_say_what_to_use(path):
    absent(f"tedsl.auto_scheduler.{path}")


def test_the_task_of_a_record_has_a_workload_key(tmp_path):
    """It was a text alone: AttributeError, where programs group the records of a file."""
    file = tmp_path / "new" / "trials.json"
    auto_scheduler.RecordToFile(file)  # makes the folder
    for task, seconds in (("one", 3.0), ("one", 2.0), ("other", 1.0)):
        append_line(file, Record(task, "llvm", "machine", "versions", {"seconds": seconds}, Outcome((seconds,))))
    keys = [inp.task.workload_key for inp, _ in auto_scheduler.load_records(file)]
    assert keys == ["one", "one", "other"]
    assert [auto_scheduler.load_best_record(file, key)[1].costs for key in dict.fromkeys(keys)] == [(2.0,), (1.0,)]


def test_records_without_a_folder_are_refused_before_a_search(tmp_path):
    """A search ended with its first trial, which could not be written."""
    refused(lambda: autotvm.callback.log_to_file(tmp_path / "none" / "log"), "there is no folder", error=ArgumentError)
    (tmp_path / "file").touch()
    refused(lambda: auto_scheduler.RecordToFile(tmp_path / "file" / "log"), "cannot be made", error=ArgumentError)


def test_constants_of_shapes():
    assert auto_scheduler.utils.get_const_tuple(te.placeholder((3, 4)).shape) == (3, 4)
