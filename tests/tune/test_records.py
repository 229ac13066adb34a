"""Records are kept whole, found by what they are of, merged, pruned, and used by topi's schedules."""

import json
import multiprocessing
import os
import sqlite3
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.cache import place
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.target import Target
from tedsl.tune import Failure, Outcome, Record, Records, history, record_of, task_key
from tedsl.tune.records import append_line, fastest_records, fastest_records_of, machine_model, read_lines, write_lines

from .conftest import Doubled


@pytest.fixture(autouse=True)
def warned_anew(monkeypatch):
    monkeypatch.setattr(place, "_warned", set())


@pytest.fixture
def records(tmp_path):
    with Records(tmp_path / "trials.sqlite") as records:
        yield records


def trial(cost=1e-3, task="task", split=4, **changed):
    outcome = Outcome((cost, cost), None, 0.1, 0.2, 1e9 + split) if cost else Outcome((), Failure("crash", "aborted"), 0.1)
    return replace(record_of(task, Doubled(split), outcome, "llvm"), **changed)


def test_a_record_is_a_line_of_json_that_reads_back():
    for record in (trial(), trial(None), trial(task="Aufgabe ü\n2")):
        line = record.to_json()
        assert "\n" not in line and Record.from_json(line) == record
    assert json.loads(trial().to_json())["candidate"] == {"split": 4}


def test_a_record_says_on_what_it_was_measured():
    record = trial()
    assert record.target == str(Target("llvm")) and record.machine == machine_model(Target("llvm"))
    assert "processor" in record.machine and record.tools.startswith(f"tedsl {tedsl.__version__}, llvmlite ")


@pytest.mark.parametrize("change, words", [
    (lambda line: line[:-5], "it is not JSON"),
    (lambda line: "[]", '"format": "tedsl trial"'),
    (lambda line: line.replace('"version": 1', '"version": 2'), "version 2, and version 1 is read"),
    (lambda line: line.replace('"task"', '"job"'), "KeyError"),
    (lambda line: line.replace("[0.001, 0.001]", "[]"), "neither costs nor a failure"),
    (lambda line: line.replace("[0.001, 0.001]", "[-1]"), "-1 is not a time"),
    (lambda line: line.replace("[0.001, 0.001]", "[1e999]"), "inf is not a time"),
    (lambda line: line.replace('"failure": null', '"failure": ["tired", ""]'), "is not a failure"),
    (lambda line: line.replace('"target": "', '"target": 5, "x": "'), "are texts"),
])
def test_other_lines_are_refused(change, words):
    line = trial().to_json()
    assert change(line) != line
    with pytest.raises(ArgumentError, match=words):
        Record.from_json(change(line))


def test_a_candidate_that_json_does_not_have():
    for candidate in (object(), {"factor": float("nan")}, {1j: 2}):
        with pytest.raises(ArgumentTypeError, match="cannot be written as JSON"):
            replace(trial(), candidate=candidate).to_json()


def test_the_best_is_the_fastest_of_the_same_task_target_machine_and_tools(records):
    for number, record in enumerate([
            trial(3e-3), trial(2e-3, split=8), trial(None, split=1), trial(1e-3, task="other"), trial(1e-3, target="llvm -x"),
            trial(1e-3, machine="abacus"), trial(1e-3, tools="tedsl 0.0.1, llvmlite 0.1")]):
        assert records.add(record) and len(records) == number + 1
    assert records.best("task", "llvm") == trial(2e-3, split=8)
    assert [record.cost for record in records.ranked("task", "llvm")] == [2e-3, 3e-3]
    assert records.best("task", "llvm", machine="abacus").cost == 1e-3
    assert records.best("task", "llvm", tools="tedsl 0.0.1, llvmlite 0.1").cost == 1e-3
    assert records.best("task", "c") is None and records.best("nothing", "llvm") is None
    assert records.tasks() == ["other", "task"]


def again(cost, split, seconds):
    """A trial of `split` that ended at `seconds`."""
    one = trial(cost, split=split)
    return replace(one, outcome=replace(one.outcome, timestamp=seconds))


def test_the_last_trial_of_a_candidate_counts(records):
    """Once for each reader: a time that was too short by mistake, and a candidate that failed when it was tried again."""
    made = [again(1e-6, 1, 10.0), again(3e-3, 1, 12.0), again(2e-3, 2, 11.0), again(1e-6, 3, 10.0), again(None, 3, 13.0),
            again(2e-6, 1, 9.0)]
    for record in made:
        records.add(record)
    assert [(one.candidate["split"], one.cost) for one in records.ranked("task", "llvm")] == [(2, 2e-3), (1, 3e-3)]
    assert fastest_records(made) == records.ranked("task", "llvm") and records.best("task", "llvm") == made[2]
    elsewhere = replace(again(1e-9, 9, 20.0), machine="abacus")
    assert fastest_records_of([elsewhere, *made], "task", Target("llvm")) == [made[2], made[1], elsewhere]
    assert records.prune(5) == 4 and list(records) == [made[1], made[2]]


def test_records_are_there_for_the_next_program(tmp_path):
    with Records(tmp_path / "trials.sqlite") as first:
        first.add(trial())
        assert not first.add(trial()), "it is there already"
    with Records(tmp_path / "trials.sqlite") as second:
        assert list(second) == [trial()]


def test_a_search_that_was_ended_goes_on(records):
    for k in (2, 3):
        records.add(trial(split=k))
    records.add(trial(None, split=5))
    records.add(trial(split=1, machine="abacus"))
    records.add(trial(split=1, task="other"))
    assert [one.split for one in records.untried(map(Doubled, range(1, 7)), "task", "llvm")] == [1, 4, 6]


def test_records_of_several_machines_are_merged(records, tmp_path):
    here, there = [trial(split=k) for k in range(3)], [trial(split=k, machine="abacus") for k in range(3)]
    for record in here:
        records.add(record)
    write_lines(tmp_path / "lines.json", [*there, here[0]])
    with Records(tmp_path / "other.sqlite") as other:
        other.add(trial(split=9, machine="abacus"))
        assert records.merge(tmp_path / "lines.json", other) == 4
    assert records.merge(tmp_path / "other.sqlite", tmp_path / "lines.json") == 0
    assert len(records) == 7 and [record.machine for record in records][3:] == ["abacus"] * 4
    records.write_lines(tmp_path / "all.json")
    assert list(read_lines(tmp_path / "all.json")) == list(records)


def test_pruning_keeps_the_best(records):
    for task in ("a", "b"):
        for k, cost in enumerate([5e-3, 2e-3, None, 1e-3, 4e-3]):
            records.add(trial(cost, task, k))
    records.add(trial(1e-9, tools="tedsl 0.0.1, llvmlite 0.1"))
    assert records.prune(2, other_tools=True) == 6
    assert records.prune(2) == 1
    assert [(record.task, record.cost) for record in records] == [(t, c) for t in "ab" for c in (2e-3, 1e-3)]
    with pytest.raises(ArgumentError, match="keep is an int of at least 0, not -1"):
        records.prune(-1)


def test_a_line_that_was_left_unfinished_costs_that_line(tmp_path):
    path = tmp_path / "lines.json"
    append_line(path, trial())
    whole = path.read_bytes()
    append_line(path, trial(split=5))
    path.write_bytes(path.read_bytes()[:len(whole) + 30])
    append_line(path, trial(split=6))
    with pytest.warns(RuntimeWarning, match=r"line 2 of lines\.json is skipped: this is not a record"):
        assert list(read_lines(path)) == [trial(), trial(split=6)]


def test_forked_processes_and_threads_have_their_own_access(records):
    records.add(trial())
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=lambda k=k: [records.add(trial(split=10 * k + j)) for j in range(5)]) for k in (1, 2)]
    threads = [threading.Thread(target=lambda k=k: [records.add(trial(split=10 * k + j)) for j in range(5)]) for k in (3, 4)]
    for worker in (*processes, *threads):
        worker.start()
    for worker in (*processes, *threads):
        worker.join()
    assert len(records) == 21 and len(list(records)) == 21


def _add_for_ever(path, lines, ready):
    with Records(path) as records:
        for k in range(10**6):
            records.add(trial(split=k))
            append_line(lines, trial(split=k))
            if k == 2:
                ready.send(k)


@pytest.mark.parametrize("patience", [0.0, 0.013, 0.031])
def test_a_program_that_is_killed_loses_at_most_the_running_trial(tmp_path, patience):
    mine, theirs = multiprocessing.Pipe(duplex=False)
    paths = tmp_path / "trials.sqlite", tmp_path / "lines.json"
    program = multiprocessing.get_context("fork").Process(target=_add_for_ever, args=(*paths, theirs))
    program.start()
    mine.recv()
    time.sleep(patience)
    program.kill()
    program.join()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [record.candidate["split"] for record in read_lines(paths[1])]
    with Records(paths[0]) as records:
        kept = [record.candidate["split"] for record in records]
        assert kept == list(range(len(kept))) and lines == list(range(len(lines))) and 0 <= len(kept) - len(lines) <= 1
        assert records.add(trial(split=-1)), "the file is as good as before"


def test_files_that_hold_no_records(tmp_path):
    path = tmp_path / "text.sqlite"
    path.write_text("these are no records")
    with pytest.raises(ArgumentError, match="is not a file of SQLite"):
        Records(path)
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as connection:
        connection.execute("pragma user_version = 7")
    with pytest.raises(ArgumentError, match="has version 7"):
        Records(newer)
    with pytest.raises(TedslError, match="cannot be used: unable to open"):
        Records(tmp_path / "no folder" / "trials.sqlite")
    with pytest.raises(ArgumentError, match="cannot be read"):
        Records(":memory:").merge(tmp_path / "nothing.json")
    with pytest.raises(ArgumentTypeError, match=r"Records\.add: 'fast' is no Record"):
        Records(":memory:").add("fast")


@pytest.mark.parametrize("call, words", [
    (lambda: fastest_records(3), "fastest_records takes records"), (lambda: fastest_records([3]), "3 is no Record"),
    (lambda: append_line("/nowhere/x", 3), "append_line: 3 is no Record"),
    (lambda: write_lines("/nowhere/x", [3]), "write_lines: 3 is no Record"),
    (lambda: Records(":memory:").best(3), "task is the key of a task, not 3"),
    (lambda: Records(":memory:").untried([3], "task"), None), (lambda: Records(":memory:").untried(3, "task"), "untried takes"),
    (lambda: record_of("task", 3, Outcome((1.0,))), r"record_of: a candidate has the method to_json\(\)"),
    (lambda: record_of("task", Doubled(), 3), "takes the key of a task and an Outcome"),
    (lambda: record_of(3, Doubled(), Outcome((1.0,))), "takes the key of a task and an Outcome")])
def test_what_is_no_record_is_refused(call, words):
    with pytest.raises(ArgumentTypeError, match=words or "untried: a candidate has the method to_json"):
        list(call())


def test_the_place_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path / "folder"))
    with Records() as records:
        assert records.path == str(tmp_path / "folder" / "trials.sqlite") and os.path.isfile(records.path)
    monkeypatch.setenv("TEDSL_CACHE_DIR", "off")
    with pytest.raises(ArgumentError, match="there is no folder for caches"):
        Records()


# --- the best schedule of a task ----------------------------------------------------------------------------------------


def product(n=12, name="A"):
    A, B = te.placeholder((n, n), name=name), te.placeholder((n, n), name="B")
    return topi.matmul(A, B)


def test_the_key_of_a_task_is_that_of_its_formulas():
    key = task_key(product())
    assert key and key == task_key([product()])
    assert len({key, task_key(product(13)), task_key(product(name="X")), task_key(topi.nn.relu(product()))}) == 4
    for wrong in (5, [], [5], "C"):
        with pytest.raises(ArgumentTypeError, match="takes a tensor or a list"):
            task_key(wrong)


class Split:
    """The rows of a product split."""

    def __init__(self, factor, stage="T_matmul_NN"):
        C = product()
        s = te.create_schedule(C.op)
        s[C].split(C.op.axis[0], factor)
        self.journal = json.loads(s.journal.to_json().replace("T_matmul_NN", stage))

    def to_json(self):
        return {"journal": self.journal}


def record_of_split(cost, *split):
    return record_of(task_key(product()), Split(*split), Outcome((cost,)), "llvm")


@pytest.mark.parametrize("form", ["sqlite", "json", "records"])
def test_topi_takes_the_best_schedule_that_was_measured(tmp_path, form):
    with Records(tmp_path / "trials.sqlite") as records:
        for cost, factor in ((3e-3, 2), (1e-3, 3), (2e-3, 4)):
            records.add(record_of_split(cost, factor))
        records.write_lines(tmp_path / "trials.json")
        source = records if form == "records" else str(tmp_path / f"trials.{form}")
        C, default = product(), str(topi.schedules.schedule(product(), "llvm").journal)
        with history(source) as used:
            assert len(used) == 3
            s = topi.schedules.schedule(C, "llvm")
            other = topi.schedules.schedule(product(13), "llvm")
        assert "split(s[T_matmul_NN].op.axis[0], factor=3)" in str(s.journal) and len(s.journal) == 1
        assert "factor=3" not in str(other.journal)
        with history(source), Target("llvm"):
            assert str(topi.x86.schedule_matmul(product()).journal) == str(s.journal)
        assert str(topi.schedules.schedule(product(), "llvm").journal) == default
        a, b, c = (np.random.default_rng(0).random((12, 12), "float32") for _ in range(3))
        tedsl.build(s, [*C.op.input_tensors, C])(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_a_record_that_does_not_apply_is_skipped_with_a_line(records):
    records.add(record_of_split(1e-3, 3, "T_gone"))
    records.add(replace(record_of_split(2e-3, 3), candidate={"journal": "s.split"}))
    records.add(replace(record_of_split(3e-3, 3), candidate={"knob": 1}))
    records.add(record_of_split(4e-3, 6))
    with history(records), pytest.warns(RuntimeWarning) as told:
        assert "factor=6" in str(topi.schedules.schedule(product(), "llvm").journal)
        topi.schedules.schedule(product(), "llvm")
    lines = [str(warning.message) for warning in told]
    assert len(lines) == 2 and all(line.startswith("a record of T_matmul_NN is skipped, since it does not") for line in lines)
    assert "T_gone" in lines[0]


def test_records_of_another_machine_or_tedsl_are_not_used(records):
    records.add(replace(record_of_split(1e-3, 3), machine="abacus"))
    records.add(replace(record_of_split(1e-3, 3), tools="tedsl 0.0.1, llvmlite 0.1"))
    default = str(topi.schedules.schedule(product(), "llvm").journal)
    with history(records):
        assert str(topi.schedules.schedule(product(), "llvm").journal) == default


def test_the_default_schedule_of_a_check_is_that_of_the_rules(records):
    C = product()
    checker = tedsl.tune.Checker([*C.op.input_tensors, C], "llvm")
    records.add(record_of_split(1e-3, 3))
    with history(records):
        assert "factor=3)" in str(topi.schedules.schedule(product(), "llvm").journal)
        assert len(checker.default().journal) > 1


def test_a_history_that_is_not_there(tmp_path):
    with pytest.raises(ArgumentError, match="there is no file"), history(tmp_path / "nothing"):
        pass
