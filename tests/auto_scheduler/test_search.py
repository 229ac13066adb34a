"""The search: its order, its end, what it learns; and its surface by TVM's names."""

import json
import math

import numpy as np
import pytest

import tedsl
import topi
from tedsl import auto_scheduler, te, tune
from tedsl.auto_scheduler.cost.footprint import span, touched
from tedsl.auto_scheduler.cost.model import Corrected
from tedsl.auto_scheduler.search import search as searching
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.auto_scheduler.search.search import Search
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.target import Target
from tedsl.tune.measure.machine import machine_model, tool_versions
from tedsl.tune.records import append_line
from tests.auto_scheduler.programs import matmul, of_one

BUILDER = auto_scheduler.LocalBuilder(timeout=100)
QUICK = auto_scheduler.LocalRunner(timeout=100, number=1, repeat=2)  # a machine may be busy


@auto_scheduler.register_workload
def product(n, m, terms, dtype):
    return matmul(n, m, terms, dtype)


def task_of(*sizes, target="llvm"):
    return auto_scheduler.SearchTask(func=product, args=(*sizes, "float32"), target=target)


@pytest.fixture
def imagination(monkeypatch):
    """Times that are imagined: a schedule is the faster, the fewer directives it has; the default takes 1 s."""
    class Imagined:
        def __init__(self, target, build, run, check):
            self.run = run

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            pass

        def measure(self, candidates):
            for one in candidates:
                assert one.compiles  # what is refused is never measured
                yield one, tune.Outcome((1.0 if one.sketch == "default" else len(one.journal) / 100,))

    monkeypatch.setattr(searching, "Measurer", Imagined)


def rows():
    return Problem(of_one(lambda A: topi.exp(topi.sum(A, axis=1)), 33, 70), Target("llvm"))


def trials_of(seed, trials=32, **named):
    seen = []
    Search(rows(), seed, rounds=8, on_trial=seen.append, **named).run(trials=trials)
    return seen


@pytest.mark.whole
def test_a_seed_gives_an_order(imagination):
    one, again, other = [[str(trial.record.candidate) for trial in trials_of(seed, 16)] for seed in (3, 3, 4)]
    assert one == again != other


def test_the_default_is_measured_first_and_again_each_schedule_once(imagination):
    seen = trials_of(0)
    texts = [json.dumps(trial.record.candidate["journal"]) for trial in seen if not trial.final]
    assert len(texts) == len(set(texts)) == 32
    assert seen[0].record.candidate["sketch"] == "default" and seen[0].record.candidate["decisions"] == {}
    finals = [trial.record for trial in seen if trial.final]
    assert len(finals) == 7 and finals[0].candidate == finals[5].candidate == seen[0].record.candidate


@pytest.mark.whole
def test_times_that_were_too_short_are_found_out(imagination, monkeypatch):
    seen, note = [], Search._note

    def lucky(self, proposal, outcome, final=False):
        if not final and 10 <= self.count < 16:
            outcome = tune.Outcome((1e-9,))
        return note(self, proposal, outcome, final)

    monkeypatch.setattr(Search, "_note", lucky)
    best = Search(rows(), 0, rounds=8, on_trial=seen.append).run(trials=32)
    finals = [trial.record for trial in seen if trial.final]
    assert len(finals) >= 8 and best.cost == min(one.cost for one in finals) > 1e-3
    assert any(one.record.candidate == best.candidate for one in seen[17:])


def test_trials_that_take_too_long_are_ended(imagination, monkeypatch):
    given = []
    monkeypatch.setattr(searching, "limited", lambda option, first: given.append(first) or option)
    trials_of(0, 8)
    assert [first.cost for first in given] == [1.0], "by what the default takes"


def test_the_default_stays_unless_another_is_surely_faster():
    def record(*costs):
        failure = None if costs else tune.Failure("run", "no")
        return tune.Record("", "", "", "", None, tune.Outcome(costs, failure))

    default, faster, unsure = record(1.9, 2.0, 2.1), record(1.7, 1.8, 1.9), record(1.0, 1.6, 2.2)

    def winner(*finals, then=()):
        later = iter(then)
        return searching.winner([(one, str(at)) for at, one in enumerate(finals)],
                                lambda proposal: [(next(later, finals[int(proposal)]), proposal)])

    assert winner(default, faster) is faster and winner(default, unsure) is default
    assert winner(default, record(1.96, 1.97, 1.98)) is default, "another place in memory makes as much"
    assert winner(record(), unsure) is unsure and winner(record(), record()) is None and winner() is None
    lucky, slower = record(1.5), record(2.2)
    assert winner(default, lucky, faster, then=[default, slower]) is default, "luck does not come twice"
    assert winner(default, faster, then=[record(), faster]) is faster
    assert winner(default, lucky, then=[default, record()]) is default


def test_later_rounds_are_faster(imagination):
    costs = [trial.record.cost for trial in trials_of(0) if not trial.final]
    assert sum(costs[16:]) < sum(costs[:16])


def test_ctrl_c_ends_a_search_with_what_it_has(imagination):
    seen = []

    def interrupted(trial):
        seen.append(trial)
        if trial.number == 5:
            raise KeyboardInterrupt

    best = Search(rows(), 0, rounds=8, on_trial=interrupted).run(trials=32)
    assert len(seen) == 5 and best.cost == min(trial.record.cost for trial in seen)


def test_a_search_stops_early_and_goes_on_from_records(imagination):
    seen = trials_of(0, 1000, early_stopping=5)
    assert len([trial for trial in seen if not trial.final]) < 200
    rest = []
    made = Search(rows(), 1, rounds=8, on_trial=rest.append)
    made.preload([trial.record for trial in seen])
    best = made.run(trials=8)
    assert best.cost <= min(trial.record.cost for trial in seen)
    known = {json.dumps(trial.record.candidate["journal"]) for trial in seen}
    assert all(json.dumps(trial.record.candidate["journal"]) not in known for trial in rest)


def test_the_model_learns_what_the_estimate_misses():
    model, rows = Corrected(), [[float(n), 7.0, 1e6] for n in (1, 4, 16, 64, 256, 1024)]
    assert model.predict(rows) == [math.log(1e-3)] * 6 and model.predict([]) == []
    model.learn(rows, [n * 1e-3 for n in (1, 2, 3, 4, 5)] + [math.inf])
    found = model.predict(rows)
    assert found == sorted(found) and abs(found[0] - math.log(1e-3)) < 0.5
    assert model.predict([[1e30, 7.0, 1e6]])[0] == pytest.approx(math.log(3e-3), abs=1)


def test_footprints():
    i, j = te.var("i"), te.var("j")
    extents = {i: 4, j: 8}
    assert span(i * 8 + j, extents) == (32, 32) and span(i * 2 + j, extents) == (14, 14) and span(j * 16, extents) == (8, 113)
    assert span((i * 8 + j) // 8, extents) == (4, 4) and span((i * 8 + j) % 8, extents) == (8, 8) and span(j * 16, {}) == (1, 1)
    assert touched((i, j), extents, 16) == (32, 4) and touched((j, i * 16), extents, 16) == (32, 32)


def test_a_task_is_tuned_and_its_best_applied(tmp_path, capsys):
    log, task = tmp_path / "log.json", task_of(32, 48, 40)
    assert str(task.compute_dag) == "A = PLACEHOLDER [32, 40]\nB = PLACEHOLDER [40, 48]\nC(i, j) += A[i, k]*B[k, j]"
    assert task.workload_key == '["product", 32, 48, 40, "float32"]' and task.compute_dag.flop_ct == 2 * 32 * 48 * 40
    write = [auto_scheduler.RecordToFile(log)]
    task.tune(auto_scheduler.TuningOptions(6, builder=BUILDER, runner=QUICK, measure_callbacks=write))
    assert "6 trials, 0 failed" in capsys.readouterr().out
    pairs = list(auto_scheduler.load_records(log))
    assert len(pairs) == 6 and all(result.error_no == 0 for _, result in pairs)
    best, result = auto_scheduler.load_best_record(log, task.workload_key, "llvm")
    assert np.median(result.costs) == min(np.median(one.costs) for _, one in pairs)
    sch, args = task.apply_best(log)
    assert str(sch.journal) == task.print_best(log) == str(best.state(task).journal)
    assert task.compute_dag.print_python_code_from_state(best.state) == str(sch.journal)
    assert str(task.compute_dag.apply_steps_from_state(best.state)[0].journal) == str(sch.journal)
    a, b, c = np.ones((32, 40), "float32"), np.ones((40, 48), "float32"), np.zeros((32, 48), "float32")
    tedsl.build(sch, args)(a, b, c)
    assert (c == 40).all()
    with tune.history(log):
        assert str(topi.schedules.schedule(matmul(32, 48, 40)[-1]).journal) == task.print_best(log)
    policy = auto_scheduler.SketchPolicy(task, auto_scheduler.XGBModel(), verbose=0, init_search_callbacks=[
        auto_scheduler.PreloadMeasuredStates(log)])
    task.tune(auto_scheduler.TuningOptions(2, builder=BUILDER, runner=QUICK, measure_callbacks=write), policy)
    texts = [str(pair.state(task).journal) for pair, _ in auto_scheduler.load_records(log)]
    assert len(texts) == len(set(texts)) == 8


def test_all_readers_of_records_name_one_schedule(tmp_path):
    """Of a schedule that was measured twice the last time counts: for apply_best, load_best_record and topi's schedules."""
    log, task = tmp_path / "log.json", task_of(8, 8, 8)
    found = []
    for split in (2, 4):
        sch, _ = task.compute_dag.apply_steps_from_state(task.compute_dag.get_init_state())
        stage = sch[task.compute_dag.tensors[-1]]
        stage.split(stage.op.axis[0], split)
        found.append({"journal": json.loads(sch.journal.to_json())})
    for cost, candidate in ((1e-6, found[0]), (2e-3, found[1]), (3e-3, found[0])):
        append_line(log, tune.Record(task.problem.key, str(task.target), machine_model(task.target), tool_versions(), candidate,
                                     tune.Outcome((cost,))))
    assert "factor=4" in task.print_best(log)
    assert auto_scheduler.load_best_record(log)[1].costs == (2e-3,)
    with tune.history(log):
        assert "factor=4" in str(topi.schedules.schedule(matmul(8, 8, 8)[-1], "llvm").journal)


def test_what_cannot_be_tuned_is_refused(tmp_path):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    doubled = te.compute((n,), lambda i: A[i] * 2, name="B")
    with pytest.raises(ArgumentError, match="schedules are measured for constant shapes"):
        auto_scheduler.SearchTask(lambda: [A, doubled], ())
    with pytest.raises(ArgumentError, match="a result without its placeholders: X is not in the list"):
        auto_scheduler.SearchTask(lambda: topi.exp(te.placeholder((3,), name="X")))
    with pytest.raises(ArgumentError, match="nothing is computed"):
        auto_scheduler.SearchTask(lambda: [te.placeholder((3,), name="X")])
    with pytest.raises(ArgumentTypeError, match="returned an int"):
        auto_scheduler.SearchTask(lambda: 3)
    with pytest.raises(ArgumentTypeError, match="the workload product is called with 1 arguments: missing a required argument"):
        auto_scheduler.SearchTask("product", (8,))
    with pytest.raises(ArgumentError, match="'nonsense' is no workload"):
        auto_scheduler.SearchTask("nonsense", ())
    with pytest.raises(ArgumentError, match="there is a workload 'product' already"):
        auto_scheduler.register_workload("product", matmul)
    for wrong in ({}, {"num_measure_trials": -1}, {"num_measure_trials": 3, "runner": 4},
                  {"num_measure_trials": 3, "measure_callbacks": [1]}):
        with pytest.raises(ArgumentError, match="TuningOptions"):
            auto_scheduler.TuningOptions(**wrong)
    (tmp_path / "empty.json").write_text("")
    with pytest.raises(TedslError, match="there is no schedule of this task"):
        task_of(8, 8, 8).apply_best(tmp_path / "empty.json")
    assert auto_scheduler.load_best_record(tmp_path / "empty.json") == (None, None)
    for wrong, said in (({}, "there is no end"), ({"seconds": "1"}, "seconds is a number"), ({"trials": 0}, "trials is an int"),
                        ({"trials": 1, "on_trial": 3}, "on_trial is called")):
        with pytest.raises(ArgumentError, match=said):
            auto_scheduler.search(task_of(8, 8, 8), **wrong)
    with pytest.raises(ArgumentTypeError, match="the workload of search returned an int"):
        auto_scheduler.search(3, trials=1)
    with pytest.raises(ArgumentTypeError, match="search_policy is a SketchPolicy"):
        task_of(8, 8, 8).tune(auto_scheduler.TuningOptions(1), 3)
    with pytest.raises(ArgumentTypeError, match="init_search_callbacks are"):
        auto_scheduler.SketchPolicy(task_of(8, 8, 8), init_search_callbacks=[3])
    with pytest.raises(ArgumentTypeError, match="auto_schedule takes a SearchTask"):
        auto_scheduler.auto_schedule(3)


def test_older_spellings(imagination):
    task = auto_scheduler.create_task(product, (8, 16, 4, "float32"), "llvm")
    sch, args = auto_scheduler.auto_schedule(task, tuning_options=auto_scheduler.TuningOptions(4, verbose=0))
    assert len(args) == 3 and len(sch.journal) > 0
    context = auto_scheduler.LocalRPCMeasureContext(min_repeat_ms=300, repeat=2)
    assert (context.runner.option.min_repeat_ms, context.runner.option.repeat, context.runner.option.precise) == (300, 2, False)
    orders = []
    for model in (auto_scheduler.RandomModel(), auto_scheduler.XGBModel()):
        orders.append([])
        options = auto_scheduler.TuningOptions(6, verbose=0, runner=context.runner, measure_callbacks=[
            lambda trial, seen=orders[-1]: seen.append(str(trial.record.candidate))])
        task.tune(options, auto_scheduler.SketchPolicy(task, model))
    assert orders[0] != orders[1]
    assert str(task.compute_dag.get_init_state()) == str(te.create_schedule(args[-1].op))
