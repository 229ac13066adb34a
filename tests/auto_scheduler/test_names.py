"""What programs of TVM's auto_scheduler use beside a task: several tasks, records, limits of devices; and what is refused."""

import json
import math
import random

import numpy as np
import pytest

import tedsl
import topi
from tedsl import auto_scheduler, te, tune
from tedsl.auto_scheduler.search import search as searching
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError
from tedsl.target import Target
from tedsl.tune.measure.machine import machine_model, tool_versions
from tedsl.tune.records import append_line
from tests.auto_scheduler.programs import matmul, recurrence


def task_of(n, **named):
    return auto_scheduler.SearchTask(lambda: matmul(n, n, n), (), target="llvm", **named)


@pytest.fixture
def imagination(monkeypatch):
    """Times that are imagined: tasks of 16 gain with each directive, tasks of other sizes nothing."""
    class Imagined:
        def __init__(self, target, build, run, check):
            self.run, self.gains = run, int(check.args[0].shape[0]) == 16

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            pass

        def measure(self, candidates):
            for one in candidates:
                yield one, tune.Outcome((1.0 / (1 + len(one.journal)) if self.gains else 1.0,))

    monkeypatch.setattr(searching, "Measurer", Imagined)


def scheduled(sizes, trials=24, **named):
    seen = []
    scheduler = auto_scheduler.TaskScheduler([task_of(n) for n in sizes], **named)
    scheduler.tune(auto_scheduler.TuningOptions(trials, num_measures_per_round=4, measure_callbacks=[seen.append], verbose=0))
    return scheduler, seen


@pytest.mark.whole
def test_rounds_go_to_the_task_that_gains(imagination):
    scheduler, seen = scheduled((8, 16), task_weights=[0.001, 1], strategy="gradient")
    assert sum(scheduler.task_cts) * 4 == 24 and not any(trial.final for trial in seen[:8])
    assert scheduler.task_cts[1] > 2 * scheduler.task_cts[0] > 0
    assert scheduler.best_costs[0] == 1.0 > scheduler.best_costs[1]
    even, _ = scheduled((8, 16), strategy="round-robin", trials=16)
    assert even.task_cts == [2, 2]
    turned, _ = scheduled((8, 16), objective_func=lambda costs: costs[0])
    assert turned.task_cts[0] > turned.task_cts[1] > 0


@pytest.mark.whole
def test_tasks_that_end_leave_their_trials_to_others(imagination):
    scheduler = auto_scheduler.TaskScheduler([task_of(8), task_of(16)])
    scheduler.tune(auto_scheduler.TuningOptions(40, num_measures_per_round=4, verbose=0), per_task_early_stopping=6)
    assert scheduler.task_cts[0] <= 3


def test_several_tasks_are_tuned(tmp_path, capsys):
    log = tmp_path / "log.json"
    tasks = [task_of(8), auto_scheduler.SearchTask(lambda: matmul(16, 8, 4), (), target="cuda")]
    runner = auto_scheduler.LocalRunner(timeout=100, number=1, repeat=2)
    options = auto_scheduler.TuningOptions(4, builder=auto_scheduler.LocalBuilder(100), runner=runner,
                                           measure_callbacks=[auto_scheduler.RecordToFile(log)])
    auto_scheduler.TaskScheduler(tasks).tune(options)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and all("(estimated)" in line for line in said) and said[0].startswith("2 trials")
    for task in tasks:
        tedsl.build(*task.apply_best(log), target=task.target)
    again = auto_scheduler.TaskScheduler(tasks, load_log_file=log)
    again.tune(options, "sketch.random")
    texts = [str(inp.state(tasks[0]).journal) for inp, _ in auto_scheduler.RecordReader(log) if inp.target.startswith("llvm")]
    assert len(texts) == len(set(texts)) == 4


def test_what_a_task_scheduler_refuses():
    one = task_of(8)
    for wrong in (3, [3]):
        with pytest.raises(ArgumentTypeError, match="takes a list of SearchTasks"):
            auto_scheduler.TaskScheduler(wrong)
    for named, said in (({"strategy": "none"}, "strategy is"), ({"task_weights": [1, 2]}, "there are 1 tasks, and 2 weights"),
                        ({"objective_func": 3}, "objective_func is a function")):
        with pytest.raises(ArgumentError, match=said):
            auto_scheduler.TaskScheduler([one], **named)
    scheduler = auto_scheduler.TaskScheduler([one])
    with pytest.raises(ArgumentTypeError, match="tune takes TuningOptions"):
        scheduler.tune(3)
    for policy in ("none", [3], []):
        with pytest.raises(ArgumentError, match="policy"):
            scheduler.tune(auto_scheduler.TuningOptions(1), policy)


@pytest.mark.parametrize("make, words", [
    (lambda: auto_scheduler.TaskScheduler([]), "the list of tasks is empty"),
    (lambda: auto_scheduler.TaskScheduler([3]), "a list of SearchTasks, not an int in it"),
    (lambda: auto_scheduler.TaskScheduler(3), "a list of SearchTasks, not an int\\n"),
    (lambda: auto_scheduler.SketchPolicy(task_of(8), params={"nonsense": 1}), "there is no parameter 'nonsense'"),
    (lambda: auto_scheduler.SketchPolicy(task_of(8), params={"eps_greddy": 1}), "did you mean eps_greedy"),
    (lambda: auto_scheduler.SketchPolicy(task_of(8), params=3), "params is a dict of parameters by name, not 3"),
    (lambda: auto_scheduler.TaskScheduler([task_of(8)]).tune(
        auto_scheduler.TuningOptions(1), search_policy_params={"nonsense": 1}), "there is no parameter 'nonsense'"),
    (lambda: auto_scheduler.TuningOptions(1, verbose="x"), "verbose is an int of at least 0, not 'x'"),
    (lambda: auto_scheduler.TuningOptions(1, verbose=-1), "verbose is an int of at least 0, not -1"),
    (lambda: auto_scheduler.TuningOptions(1, measure_callbacks="/a/b"), "is a list of functions .* not '/a/b'"),
    (lambda: auto_scheduler.TuningOptions(1, measure_callbacks=["b"]), "is a list of functions .* not 'b'"),
    (lambda: auto_scheduler.TuningOptions(1, measure_callbacks=len), "is a list of functions .* not <built-in")])
def test_options_that_are_refused(make, words):
    """An empty list was "not a list", a path a list of letters; parameters and a verbosity without sense were taken."""
    with pytest.raises(ArgumentError, match=words):
        make()


def test_options_that_are_accepted():
    assert auto_scheduler.TuningOptions(1, verbose=True, measure_callbacks=(print,)).measure_callbacks == [print]
    assert auto_scheduler.TuningOptions(1, verbose=2).measure_callbacks == []
    assert auto_scheduler.SketchPolicy(task_of(8), params={"eps_greedy": 0.1}, seed=3).seed == 3


def records_in(path, costs):
    """A file of schedules of a product, which split by 2, 4, 8, ..., with these times."""
    task = task_of(8)
    for at, cost in enumerate(costs):
        sch, _ = task.compute_dag.apply_steps_from_state(task.compute_dag.get_init_state())
        stage = sch[task.compute_dag.tensors[-1]]
        stage.split(stage.op.axis[0], 2 << at)
        candidate = {"journal": json.loads(sch.journal.to_json())}
        append_line(path, tune.Record(task.problem.key, str(task.target), machine_model(task.target), tool_versions(),
                                      candidate, tune.Outcome((cost,))))
    return task


def test_records_are_read_and_written(tmp_path):
    log, copy = tmp_path / "log.json", tmp_path / "copy.json"
    task = records_in(log, (3.0, 1.0, 2.0))
    reader = auto_scheduler.RecordReader(str(log))
    assert [result.costs for _, result in reader] == [result.costs for _, result in reader] == [(3.0,), (1.0,), (2.0,)]
    inputs, results = reader.read_lines(max_lines=1, skip_lines=1)
    assert len(inputs) == 1 and results[0].costs == (1.0,)
    assert [list(part) for part in reader.read_lines()] == [list(part) for part in zip(*auto_scheduler.load_records(log))]
    auto_scheduler.save_records(copy, *reader.read_lines())
    assert copy.read_text() == log.read_text()
    failed = results[0]._replace(costs=(), error_no=1, error_msg="it crashed")
    auto_scheduler.save_records(copy, inputs, [failed])
    (_, last) = list(auto_scheduler.RecordReader(copy))[-1]
    assert last.error_no == 1 and "it crashed" in last.error_msg
    with auto_scheduler.ApplyHistoryBest(log), Target("llvm"):
        assert str(topi.schedules.schedule(task.compute_dag.outs).journal) == task.print_best(log)
    for wrong, said in (((inputs, []), "there are 1 inputs, and 0 results"), ((3, results), "inputs are a list"),
                        ((inputs, [3]), "results are a list")):
        with pytest.raises(ArgumentError, match=said):
            auto_scheduler.save_records(copy, *wrong)
    with pytest.raises(ArgumentError, match="max_lines is an int"):
        reader.read_lines(-1)


def test_hardware_params_are_limits_of_blocks():
    limits = auto_scheduler.HardwareParams(max_threads_per_block=32, max_vthread_extent=1)
    task = auto_scheduler.SearchTask(lambda: matmul(32, 32, 32), (), target="cuda", hardware_params=limits)
    found = searching.Breeder(task.problem, random.Random(0)).at_random(12)
    kept = [one for one in found if one.compiles]
    assert 0 < len(kept) < len(found)
    with pytest.raises(ArgumentError, match="max_threads_per_block is an int"):
        auto_scheduler.HardwareParams(max_threads_per_block=0)
    with pytest.raises(ArgumentTypeError, match="hardware_params is a HardwareParams"):
        task_of(8, hardware_params=3)


@pytest.mark.parametrize("name", ["RPCRunner", "register_task_input_buffer", "EmptyPolicy",
                                  "PreloadCustomSketchRule"])
def test_names_that_are_not_here_say_what_to_use(name):
    with pytest.raises((AttributeError, OptionError), match=r"hint: .{20}"):
        getattr(auto_scheduler, name)


def test_symbolic_shapes_are_refused_early_and_the_hint_works(tmp_path):
    def product(n):
        A, B, k = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B"), te.reduce_axis((0, n), name="k")
        return [A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]

    args = product(te.var("n"))
    with pytest.raises(ArgumentError, match=r"(?s)schedules are measured for constant shapes.*s\.replay\(task\.best_state"):
        auto_scheduler.SearchTask(lambda: args, ())
    records_in(tmp_path / "log.json", (1.0,))
    s = te.create_schedule(args[-1].op)
    s.replay(task_of(8).best_state(tmp_path / "log.json").journal)
    a, c = np.random.default_rng(0).random((37, 37), "float32"), np.zeros((37, 37), "float32")
    tedsl.build(s, args)(a, a, c)
    assert math.isclose(c[3, 5], float(a[3] @ a[:, 5]), rel_tol=1e-4)


def test_recurrences_are_tuned_with_the_placeholders_that_programs_pass():
    task = auto_scheduler.SearchTask(recurrence, (), target="llvm")  # the state of te.scan is no argument
    assert math.isfinite(auto_scheduler.search(task, trials=2).cost)
    X, out = recurrence()
    with pytest.raises(ArgumentError, match=r"(?s)without its placeholders: X is not in the list.*return \[X, out\]"):
        auto_scheduler.SearchTask(lambda: [out], ())


def test_callbacks_are_told_of_rounds_and_trials(imagination, tmp_path, capsys):
    rounds, trials = [], []

    class Mine(auto_scheduler.TaskSchedulerCallback):
        def post_tune(self, task_scheduler, task_id):
            rounds.append((task_id, task_scheduler.ct, task_scheduler.cur_score))

    class Costs(auto_scheduler.measure.PythonBasedMeasureCallback):
        def callback(self, policy, inputs, results):
            trials.extend(result.costs[0] for result in results)

    scheduler = auto_scheduler.TaskScheduler([task_of(16)], callbacks=[
        auto_scheduler.task_scheduler.PrintTableInfo(), auto_scheduler.LogEstimatedLatency(tmp_path / "log.tsv"), Mine()])
    scheduler.tune(auto_scheduler.TuningOptions(4, num_measures_per_round=2, measure_callbacks=[Costs()]))
    assert [(at, count) for at, count, _ in rounds] == [(0, 2), (0, 4)] and rounds[-1][2] == min(trials) and len(trials) == 4
    assert capsys.readouterr().out.count("|    0 |") == 2 and len((tmp_path / "log.tsv").read_text().splitlines()) == 2
    with pytest.raises(ArgumentTypeError, match="callbacks is a list of objects with pre_tune and post_tune"):
        auto_scheduler.TaskScheduler([task_of(16)], callbacks=[print])


def test_sketches_are_schedules_of_different_structure(capsys):
    task = task_of(16)
    sketches = auto_scheduler.SketchPolicy(task).generate_sketches(True)
    assert len({str(one.journal) for one in sketches}) == len(sketches) > 1
    assert capsys.readouterr().out.count("schedule of C") == len(sketches)
