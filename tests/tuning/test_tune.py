"""tedsl.tune: budgets, orders, records that are gone on with, what is returned, and what the best have in common."""

import functools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import tedsl
import topi
from tedsl import auto_scheduler, autotvm, te, tune
from tedsl.auto_scheduler import scheduler as scheduler_module
from tedsl.auto_scheduler.search import search
from tedsl.auto_scheduler.search.proposal import default_proposal, proposal_of
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.graph.network.limits import Limits
from tedsl.shell.table import main
from tedsl.tune import Failure, Outcome, Record, RunOption
from tedsl.tune.measure.check import Checker
from tedsl.tune.measure.interrupts import Interrupts
from tedsl.tune.measure.machine import machine_model, tool_versions
from tedsl.tune.records import append_line, read_lines
from tedsl.tuning import Trial
from tedsl.tuning import searching as tuning
from tedsl.tuning.explain import explained
from tedsl.tuning.result import Picture
from tedsl.tuning.templates import Default
from tests.autotvm.templates import matmul, refusing
from tests.autotvm.test_tuners import imagined


class Imagined:
    """A measurer whose times are imagined. default: seconds of the default schedule; ends: trials before Ctrl-C."""

    default, ends, seen, failing, run = 1.0, None, [], False, None

    def __init__(self, *options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def measure(self, candidates):
        for candidate in candidates:
            if self.ends is not None and len(self.seen) >= self.ends:
                raise KeyboardInterrupt
            is_default = isinstance(candidate, Default)
            self.seen.append(None if is_default else candidate.config.index)
            if self.failing:
                yield candidate, Outcome((), Failure("compile", "it does not compile"))
            else:
                yield candidate, Outcome((self.default if is_default else imagined(candidate.config),))


@pytest.fixture
def imagination(monkeypatch):
    made = type("Fresh", (Imagined,), {"seen": []})
    monkeypatch.setattr(tuning, "Measurer", made)
    monkeypatch.setattr(tuning, "Checker", lambda *args, **options: None)
    return made


def searched(**options):
    return tedsl.tune(matmul, 60, args=(512, 512, "float32"), progress=False, **options)


def test_all_points_are_tried_and_the_best_is_returned(imagination):
    result = searched()
    assert len(result.trials) == 1 + 200 and imagination.seen[0] is None
    assert sorted(imagination.seen[1:201]) == list(range(200)), "each point once, before the best are measured again"
    assert result.seconds == 1e-3 and result.speedup == pytest.approx(1000)
    assert result.config["entity"][0] == ["tile_y", "sp", [-1, 16]]
    assert "split(" in str(result.schedule.journal) and [arg.op.name for arg in result.args] == ["A", "B", "C"]


def test_the_package_is_called_and_names_its_search():
    assert callable(tedsl.tune) and tedsl.tune.search.__name__ == "tune"
    assert tedsl.tune.Records is not None, "it is still a package"


def test_a_seed_gives_an_order(imagination):
    orders = []
    for _ in range(2):
        imagination.seen.clear()
        searched(trials=40, seed=3)
        orders.append(list(imagination.seen))
    imagination.seen.clear()
    searched(trials=40, seed=4)
    assert orders[0] == orders[1] != imagination.seen


def test_trials_are_a_budget(imagination):
    assert len(searched(trials=11).trials) == 12


def test_a_budget_that_is_longer_than_a_lifetime(monkeypatch):
    monkeypatch.setattr(tuning, "MOST_PRECISE", 0.2)
    monkeypatch.setattr(search, "MOST_PRECISE", 0.2)
    for program, args in ((rows, (8,)), (matmul, (8, 8, "float32"))):
        assert tedsl.tune(program, 1e20, args=args, trials=1, progress=False).seconds > 0


def test_a_default_that_does_not_end_is_said_within_the_budgets_order(monkeypatch):
    monkeypatch.setattr("tedsl.tune.measure.check._LEAST_PATIENCE", 2.0)
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 1 << 50), name="k")
    B = te.compute((8,), lambda i: te.sum(te.sqrt(A[i] + A[(i + k) % 8]), axis=k), name="B")
    begun = time.monotonic()
    with pytest.raises(TedslError, match=r"took longer than 2 s\n  hint: .*or does not end: try smaller sizes"):
        tedsl.tune([A, B], 1, progress=False)
    assert time.monotonic() - begun < 60


def test_what_is_compared_with_is_a_part_of_the_budget(monkeypatch):
    def slow(self):
        time.sleep(3.0)
        return results(self)

    results = Checker._results
    monkeypatch.setattr(Checker, "_results", slow)
    assert len(tedsl.tune(rows, 2, args=(8,), progress=False).trials) == 1, "the default alone"


def test_no_time_is_left_after_the_budget(imagination, monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(tuning.time, "monotonic", lambda: float(next(clock)))
    assert len(searched().trials) < 60


def test_a_search_goes_on_where_it_was_ended(imagination, tmp_path):
    file = tmp_path / "best.json"
    first = searched(trials=50, records=file)
    assert len(file.read_text().splitlines()) == 50 + 3 + 1, "the best three once more, and the best of them again"
    imagination.seen.clear()
    result = searched(records=file)
    assert len(result.trials) == 50 + 1 + 150 and result.seconds == 1e-3
    assert not {trial.candidate.config.index for trial in first.trials[1:]} & set(imagination.seen[1:151])
    with autotvm.apply_history_best(str(file)), tedsl.Target("llvm"):
        assert str(matmul(512, 512, "float32")[0].journal) == str(result.schedule.journal)


def test_the_records_name_the_schedule_that_was_returned(imagination, tmp_path, monkeypatch):
    """Points whose first times were by mistake too short are measured again, and what is found then counts in the file."""
    file, seen, right = tmp_path / "best.json", [], imagined

    def lucky(config):
        seen.append(config.index)
        return 1e-9 * config.index if seen.count(config.index) == 1 and config.index in (7, 8, 9, 11) else right(config)

    monkeypatch.setattr(sys.modules[__name__], "imagined", lucky)
    result = searched(records=file)
    assert result.seconds == 1e-3 and [seen.count(index) for index in (7, 8, 9, 11)] == [2] * 4
    with autotvm.apply_history_best(str(file)), tedsl.Target("llvm"):
        assert str(matmul(512, 512, "float32")[0].journal) == str(result.schedule.journal)


def test_records_of_another_space_are_skipped(imagination, tmp_path):
    file = tmp_path / "best.json"
    searched(trials=2, records=file)
    file.write_text(file.read_text().replace('"tile_y"', '"tile_z"'))
    with pytest.warns(RuntimeWarning, match="a record of .* is skipped: it holds .*, which the space of the template"):
        assert len(searched(trials=2, records=file).trials) == 3  # and the default


def test_ctrl_c_keeps_what_there_is(imagination, tmp_path):
    imagination.ends = 21
    result = searched(records=tmp_path / "best.json")
    assert len(result.trials) == 21 and result.seconds < 1
    assert len((tmp_path / "best.json").read_text().splitlines()) == 20


def test_the_default_schedule_is_returned_where_nothing_is_better(imagination):
    imagination.default = 1e-9
    result = searched(trials=5)
    assert result.config == {"default": True} and result.speedup == 1


def test_the_default_stays_unless_another_is_surely_faster(imagination, monkeypatch):
    """Where the interval of the fastest reaches the default's time, as noise does."""
    imagination.default = 1.05e-3

    def measure(self, candidates, of=imagination.measure):
        for candidate, outcome in of(self, candidates):
            yield candidate, Outcome(tuple(outcome.cost * part for part in (0.9, 1.0, 1.1)))

    monkeypatch.setattr(imagination, "measure", measure)
    assert searched().config == {"default": True}
    imagination.default = 1.2e-3
    assert searched().seconds == 1e-3


def test_searches_without_any_time_say_why(imagination):
    imagination.failing = True
    with pytest.raises(ArgumentError, match="no candidate of tests/matmul ran: compile: it does not compile"):
        searched(trials=5)


def test_points_are_built_and_run(capfd, monkeypatch):
    """Of a template, of which one configuration refuses, one raises and one computes wrong."""
    monkeypatch.setattr("tedsl.tuning.progress.current_limits", lambda target: Limits(1e11, ((1 << 30, 1e10),)))
    result = tedsl.tune(refusing, 12, args=(1000,), trials=4)
    kinds = [trial.outcome.failure and trial.outcome.failure.kind for trial in result.trials]
    assert kinds[0] is None and sorted(map(str, kinds[1:])) == ["None", "refused", "refused", "wrong"]
    a, b = np.ones(1000, "float32"), np.zeros(1000, "float32")
    result.build()(a, b)
    assert (b == 2).all() and "best" in capfd.readouterr().err
    assert "3 failed" in repr(result) and "tests/refusing" in repr(result)


def test_functions_are_templates_and_names_too(imagination):
    def plain(n):
        return matmul.__wrapped__(n, n, "float32")

    task = autotvm.task.create(matmul, (512, 512, "float32"), "llvm")
    names = [tedsl.tune(what, 60, args=args, trials=2, progress=False).name
             for what, args in ((plain, (64,)), (task, ()), ("tests/matmul", (64, 64, "float32")))]
    assert names == [f"{__name__}.test_functions_are_templates_and_names_too.<locals>.plain", "tests/matmul", "tests/matmul"]


def rows(n):
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    return [A, te.compute((n,), lambda i: te.sum(A[i, k] * 2.0, axis=k), name="B")]


def test_programs_need_no_template(tmp_path):
    file, quick = tmp_path / "best.json", RunOption(number=1, repeat=2, cooldown_interval=0)
    result = tedsl.tune(rows, 12, args=(64,), trials=3, records=file, progress=False, run=quick)
    assert len(result.trials) == 3 and result.name == "rows" and result.speedup > 0
    a, b = np.ones((64, 64), "float32"), np.zeros(64, "float32")
    result.build()(a, b)
    assert (b == 128).all() and "<svg" in result.plot()
    known = len({json.dumps(one.candidate) for one in read_lines(file)})  # the best are measured once more
    again = tedsl.tune(auto_scheduler.SearchTask(rows, (64,)), 12, trials=1, records=file, progress=False, run=quick)
    assert len(again.trials) == known + 1 and known >= 3
    with tedsl.tune.history(file):
        assert topi.schedules.schedule(rows(64)[-1]) is not None


def test_the_default_is_the_schedule_of_the_rules_and_no_relative_of_it(tmp_path, monkeypatch):
    """A record of the default of other rules, or of one with other factors, is not what the best is compared with."""
    file, quick = tmp_path / "best.json", RunOption(number=1, repeat=2, cooldown_interval=0)
    task = auto_scheduler.SearchTask(rows, (64,))
    rules = default_proposal(task.problem)
    journal = json.loads(rules.journal.to_json())
    older = {"sketch": "default", "decisions": {}, "journal": journal | {"directives": journal["directives"][:1]}}
    varied = {"sketch": "default", "decisions": {"split0 factor": 2}, "journal": journal}
    for at, candidate in enumerate((older, varied)):
        append_line(file, Record(task.problem.key, str(task.target), machine_model(task.target), tool_versions(), candidate,
                                 Outcome((1e-9 * (at + 1),))))
    assert proposal_of(task.problem, older) is None and proposal_of(task.problem, rules.to_json()).text == rules.text
    result = tedsl.tune(task, 12, trials=1, records=file, progress=False, run=quick)
    assert result.default.candidate.to_json() == rules.to_json() and result.default.cost > 1e-8


def test_records_of_another_machine_are_no_times_of_this_one(tmp_path):
    file, quick = tmp_path / "best.json", RunOption(number=1, repeat=2, cooldown_interval=0)
    task = auto_scheduler.SearchTask(rows, (64,))
    append_line(file, Record(task.problem.key, str(task.target), "another machine", tool_versions(),
                             default_proposal(task.problem).to_json(), Outcome((1e-12,))))
    result = tedsl.tune(task, 12, trials=1, records=file, progress=False, run=quick)
    assert result.seconds > 1e-9 and len(result.trials) == 1


def test_tensors_and_whatever_can_be_called_are_programs():
    quick = RunOption(number=1, repeat=2, cooldown_interval=0)
    for program in (rows(32), functools.partial(rows, 32)):
        result = tedsl.tune(program, 0.5, trials=1, progress=False, run=quick)
        assert [arg.op.name for arg in result.args] == ["A", "B"] and result.name


def raising(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s, cfg = te.create_schedule(B.op), autotvm.get_config()
    cfg.define_knob("divisor", [1, 0, 2, 0])
    s[B].split(B.op.axis[0], 8 // cfg["divisor"].val)
    return s, [A, B]


def test_a_schedule_that_raises_costs_one_trial():
    result = tedsl.tune(raising, 12, args=(64,), progress=False)
    failures = [str(trial.outcome.failure) for trial in result.trials if trial.outcome.failure]
    assert len(failures) == 2 and all("ZeroDivisionError" in one for one in failures)


def planted(good, others):
    """Trials of which those with unroll=yes are fast."""
    def trial(cost, choice, at):
        return Trial(None, Outcome((cost,)), {"unroll": choice, "tile": str(at % 3)}, at)

    return [trial(1.0, "yes", at) for at in range(good)] + [trial(2.0, "no", at) for at in range(others)]


def test_the_decision_that_matters_is_named():
    found = explained(planted(10, 30))
    assert [(one.decision, one.value, one.best, one.rest) for one in found.differences] == [("unroll", "yes", 1.0, 0.0)]
    assert str(found).splitlines() == ["decision      best 10  other 30", "unroll = yes    100 %       0 %"]
    assert "unroll = yes" in found._repr_html_()


@pytest.mark.parametrize("count, words", [
    (0, "no decision is known to matter: nothing but the default schedule has a time"),
    (1, "no decision distinguishes the best 1 of 1 trials from the rest")])
def test_few_trials_say_nothing(count, words):
    assert str(explained(planted(count, 0))) == words


def test_the_picture_has_each_trial(imagination, tmp_path):
    result = searched(trials=60)
    picture = result.plot()
    picture.save(tmp_path / "search.svg")
    root = ElementTree.parse(tmp_path / "search.svg").getroot()
    circles = [node for node in root.iter() if node.tag.endswith("circle")]
    predicted = [trial for trial in result.trials if trial.predicted is not None]
    assert len(circles) == 61 + len(predicted) and predicted
    assert picture._repr_svg_() == str(picture) and "<svg" in result._repr_html_()


@pytest.mark.parametrize("file, error, words", [
    ("none/search.svg", ArgumentError, "there is no folder .*none"), ("search.png", ArgumentError, "is written as SVG"),
    ("search.html", ArgumentError, "is written as SVG"), ("", ArgumentError, "is written as SVG"),
    ("folder.svg", ArgumentError, "it is a folder"), ("\0.svg", ArgumentError, "cannot be written"),
    (None, ArgumentTypeError, "the path of a file, not a NoneType")])
def test_pictures_that_cannot_be_written_say_why(tmp_path, monkeypatch, file, error, words):
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder.svg")
    with pytest.raises(error, match=words):
        Picture("<svg/>").save(file)
    assert os.listdir(tmp_path) == ["folder.svg"]


@pytest.mark.parametrize("call, error, words", [
    (lambda: tedsl.tune(rows(8)[-1]), ArgumentTypeError, "the tensor B alone\n  hint: tedsl.tune\\(\\[A, B\\]\\)"),
    (lambda: tedsl.tune(te.create_schedule(rows(8)[-1].op)), ArgumentTypeError, "a Schedule, which is what a search.*\n.*A, B"),
    (lambda: tedsl.tune(tedsl.build(te.create_schedule((made := rows(8))[-1].op), made)), ArgumentTypeError, "and no Module"),
    (lambda: searched(trial=2), ArgumentTypeError, "tune: there is no argument named 'trial'\n  hint: did you mean trials"),
    (lambda: tedsl.tune(), ArgumentTypeError, "tune: the argument 'task' is missing"),
    (lambda: tedsl.tune(3), ArgumentTypeError, "tune takes a task, a template, the tensors of a program, or a function"),
    (lambda: searched(trials=0), ArgumentError, "trials is an int of at least 1"),
    (lambda: tedsl.tune(rows, args=(8,), build="local"), ArgumentTypeError, "tune: build is a BuildOption, not 'local'"),
    (lambda: tedsl.tune(rows, args=(8,), run=autotvm.LocalRunner()), ArgumentTypeError, "tune: run is a RunOption, not"),
    (lambda: tedsl.tune(matmul, 0, args=(4, 4, "float32")), ArgumentError, "seconds is a number above 0"),
    (lambda: tedsl.tune(matmul, float("nan")), ArgumentError, "seconds is a number above 0"),
    (lambda: searched(check="no"), ArgumentTypeError, "check is True or False"),
    (lambda: tedsl.tune(lambda: [te.var("n"), *rows(8)], 1), ArgumentTypeError, "returned a list with a Var, and neither"),
    (lambda: tedsl.tune(rows, 1, args=(8,), records="/dev/zero"), ArgumentError, "it is no file"),
    (lambda: searched(seed="3"), ArgumentTypeError, "seed is an int"),
    (lambda: searched(records=3), ArgumentTypeError, "records is the path of a file"),
    (lambda: tedsl.tune(matmul, 1, args=3), ArgumentTypeError, "args is a list or tuple"),
    (lambda: searched(run=3), ArgumentTypeError, "run is a RunOption"),
    (lambda: tedsl.tune("tests/no such template", 1), ArgumentError, "there is no template"),
    (lambda: tedsl.tune(matmul, 1, args=(4,)), ArgumentTypeError, "tests/matmul"),
    (lambda: tedsl.tune(lambda: 3, 1), ArgumentError, "and neither tensors nor a schedule and its arguments"),
    (lambda: tedsl.tune(autotvm.task.create(matmul, (8, 8, "float32"), "llvm"), args=(3,)), ArgumentError,
     "a task has its arguments already")])
def test_misuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


PROGRAM = """
from tedsl import autotvm, te

def scaled(n=256):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", B.op.axis[0], num_outputs=2)
    cfg.define_knob("spare", list(range(99)))  # so that no test comes to the end of the space
    cfg["tile"].apply(s, B, B.op.axis[0])
    return s, [A, B]
"""


def test_the_command_searches_and_goes_on(tmp_path, capsys):
    file, out, plot = tmp_path / "program.py", tmp_path / "best.json", tmp_path / "search.svg"
    file.write_text(PROGRAM)
    command = ["tune", f"{file}:scaled", "--args", "[64]", "--seconds", "4.9", "--out", str(out), "--quiet"]
    assert main([*command, "--trials", "2", "--plot", str(plot)]) == 0
    assert capsys.readouterr().out.startswith("<program.scaled: ") and plot.read_text().startswith("<svg")
    assert len(tried(out)) == 2
    assert main([*command, "--trials", "3"]) == 0
    assert len(tried(out)) == 5


def tried(path):
    """The points in a file, of which the fastest have lines of their own for having been measured again."""
    return {pair[0].config.index for pair in autotvm.record.load_from_file(path)}


@pytest.mark.parametrize("more, words", [
    (["--args", "3"], "--args is a list of JSON"), (["--plot", "/no such folder/x.svg"], "there is no folder /no such folder"),
    (["--plot", "search.png"], "is written as SVG"), (["--seconds", "-1"], "seconds is a number above 0")])
def test_the_command_refuses(tmp_path, capsys, more, words):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    assert main(["tune", f"{file}:scaled", "--quiet", *more]) == 1 and words in capsys.readouterr().err
    assert main(["tune", str(file), "--quiet"]) == 1 and "a function in it is needed" in capsys.readouterr().err


def test_the_command_takes_attributes_and_says_the_result_once(tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + "\nclass Inner:\n    scaled = staticmethod(scaled)\n")
    assert main(["tune", f"{file}:Inner.scaled", "--trials", "1", "--seconds", "3", "--args", "[4]"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("<program.scaled: ") and " ns, " in said.out.splitlines()[0]
    assert "program.scaled: 100%" in said.err or "default schedule" not in said.err
    assert "<program.scaled" not in said.err and "distinguishes" not in said.err
    assert main(["tune", f"{file}:Inner.other"]) == 1 and "Inner has no attribute 'other'" in capsys.readouterr().err


def test_the_command_refuses_a_file_that_exits(tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + "\nraise SystemExit(0)\n")
    assert main(["tune", f"{file}:scaled"]) == 1 and "calls exit(0) when it is run" in capsys.readouterr().err


def test_programs_without_operations_have_no_rate():
    A = te.placeholder((0, 4), name="A")
    result = tedsl.tune([A, topi.nn.relu(A)], 1, trials=1, progress=False)
    assert "GFLOP" not in repr(result) and " ns, " in repr(result)


def test_ctrl_c_ends_the_command_with_what_there_is(tmp_path):
    """The signal of a terminal, which all of its processes get, in the middle of a search of two minutes."""
    file, out = tmp_path / "program.py", tmp_path / "best.json"
    file.write_text(PROGRAM)
    start = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); " \
            "from tedsl.shell.table import main; sys.exit(main(sys.argv[1:]))"  # what is in the background ignores the signal
    command = [sys.executable, "-c", start, "tune", f"{file}:scaled", "--args", "[65536]", "--out", str(out), "--quiet"]
    with subprocess.Popen([*command, "--seconds", "120"], stdout=subprocess.PIPE, text=True, start_new_session=True) as search:
        until = time.monotonic() + 60
        while time.monotonic() < until and (not out.exists() or out.read_text().count("\n") < 3):
            time.sleep(0.02)
        os.killpg(search.pid, signal.SIGINT)
        said, _ = search.communicate(timeout=60)
    assert search.returncode == 0 and said.startswith("<program.scaled: "), said
    count = len(list(autotvm.record.load_from_file(out)))
    assert count >= 3 and f"{count + 1} trials" in said, "and the default"


def test_a_search_that_is_killed_has_written_its_trials(tmp_path, capsys):
    file, out = tmp_path / "program.py", tmp_path / "best.json"
    file.write_text(PROGRAM)
    command = ["tune", f"{file}:scaled", "--args", "[65536]", "--out", str(out), "--quiet"]
    with subprocess.Popen([sys.executable, "-m", "tedsl", *command, "--seconds", "120"]) as search:
        until = time.monotonic() + 60
        while time.monotonic() < until and (not out.exists() or out.read_text().count("\n") < 3):
            time.sleep(0.02)
        search.kill()
    known = [pair[0].config.index for pair in autotvm.record.load_from_file(out)]
    assert len(known) >= 3 and out.read_text().endswith("\n")
    assert main([*command, "--seconds", "3", "--trials", "1"]) == 0
    after = [pair[0].config.index for pair in autotvm.record.load_from_file(out)]
    assert after[:len(known)] == known and len(tried(out)) == len(set(known)) + 1


def test_functions_that_return_something_else_and_folders_that_are_not_there_are_refused_before_a_trial(tmp_path):
    def nothing():
        pass

    with pytest.raises(ArgumentTypeError, match="nothing returned a NoneType, and neither tensors nor a schedule"):
        tedsl.tune(nothing, seconds=1, progress=False)
    with pytest.raises(ArgumentError, match="there is no folder"):
        tedsl.tune(matmul, 1, args=(8, 8, "float32"), progress=False, records=tmp_path / "none" / "log.json")


def product():
    a, b = te.placeholder((16, 16), name="a"), te.placeholder((16, 16), name="b")
    return [a, b, topi.matmul(a, b)]


@pytest.mark.parametrize("content", [b"import tedsl\nprint(3)\n", b"\x00\x01\xff", b"3\n[4]\n"])
@pytest.mark.parametrize("add", [
    lambda path: tedsl.tune(product(), seconds=1, progress=False, records=path), autotvm.callback.log_to_file,
    lambda path: tedsl.tune(matmul, 1, args=(8, 8, "float32"), progress=False, records=path),
    auto_scheduler.RecordToFile])
def test_a_file_of_something_else_is_not_spoilt(tmp_path, add, content):
    file = tmp_path / "program.py"
    file.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"(tune|log_to_file|RecordToFile): .*program.py holds something else than records"):
        add(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize("form", ["new", "there", "open"])
def test_a_search_without_a_template_keeps_records_in_sqlite(tmp_path, form):
    path = tmp_path / ("trials.sqlite" if form == "new" else "trials")
    records = tune.Records(path) if form != "new" else None
    tedsl.tune(product(), seconds=20, trials=2, progress=False, records=records if form == "open" else path)
    with tune.Records(path) as kept:
        assert len(kept) >= 2 and kept.best(kept.tasks()[0]) is not None
    with tune.history(path):
        pass


def test_databases_of_other_programs_and_of_templates_are_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("create table people (name text)")
    with pytest.raises(ArgumentError, match="holds the tables people of another program"):
        tedsl.tune(product(), seconds=1, progress=False, records=path)
    with pytest.raises(ArgumentError, match="trials of a template are lines that autotvm reads"):
        tedsl.tune(matmul, 1, args=(8, 8, "float32"), progress=False, records=path)


def test_times_of_an_earlier_search_are_measured_again_beside_those_of_now(imagination, tmp_path):
    """The file says a millisecond; now the default is faster than everything, and little time is left."""
    file = tmp_path / "best.json"
    searched(trials=5, records=file)
    imagination.default = 1e-9
    found = tedsl.tune(matmul, 2, args=(512, 512, "float32"), progress=False, trials=1, records=file)
    assert found.config == {"default": True} and ", the default schedule;" in repr(found)


@pytest.fixture
def default_handler():
    """Processes that a shell starts in the background ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_that_python_ignores_is_not_lost(default_handler):
    """Exceptions in __del__ are ignored."""
    class Interrupted:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with Interrupts() as interrupts:
        interrupts.check()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pytest's, of the exception
            one = Interrupted()
            del one
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_ctrl_c_ends_a_search_of_several_tasks(monkeypatch):
    tasks = [auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(product()), target="llvm") for _ in range(2)]
    scheduler = auto_scheduler.TaskScheduler(tasks)
    runs = []

    def run(search, *given, **options):
        runs.append(search)
        search.interrupted, search.best = True, Record("t", "llvm", "", "", {}, Outcome((1.0,)))
        return search.best

    monkeypatch.setattr(scheduler_module.Search, "run", run)
    scheduler.tune(auto_scheduler.TuningOptions(num_measure_trials=8, num_measures_per_round=2, verbose=0))
    assert len(runs) == 1
