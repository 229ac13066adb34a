"""Random programs under random schedules agree with numpy: interpreter before and after the passes, and machine code."""

import itertools
import os
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tedsl.fuzz.directives.table import DIRECTIVES
from tedsl.fuzz.draw import Draw, HypothesisDraw
from tedsl.fuzz.reduce import reduced, smallest
from tedsl.fuzz.reference import Reference
from tedsl.fuzz.report import SHARES, Report, names
from tedsl.fuzz.run import case_of, draw_case, outcome_apart, outcome_of, run_many, run_seed
from tedsl.fuzz.schedules import swarm
from tedsl.fuzz.terms import Formulas, Term
from tedsl.fuzz.values import MANTISSA, Value, is_float
from tedsl.lower.nest import Nest
from tedsl.schedule.record.recorder import Recorder
from tedsl.shell.table import main


def findings(report):
    return "\n\n".join(f"{f.seed}: {f.kind}: {f.detail}\n{f.script}" for f in report.findings)


def test_sequences_agree_and_are_of_all_kinds():
    """Sequences of directives for small programs, in processes of their own: a crash names the sequence.

    Splits that do not divide, symbolic shapes and attached producers are each in at least a fifth of them.
    """
    programs = 150
    report = run_many(range(programs), chunk=programs // 2, jobs=2)
    assert report.counts["sequences"] == programs
    assert not report.findings, findings(report)
    for kind in (kind for kind in SHARES if kind != "bound"):
        assert report.counts[kind] >= programs // 5, report.text()
    for kind in names():
        assert report.directives[kind] >= programs // 50, report.text()
    assert report.counts["directives refused"] <= 0.4 * report.counts["directives"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(2))
def test_programs_agree(part):
    """Larger programs, checked in every way there is: 30."""
    for seed in range(15 * part, 15 * part + 15):
        case = draw_case(Draw(seed))
        outcome = outcome_apart(case)
        assert outcome is None or outcome[0] == "refused", f"{seed}: {outcome[0]}: {outcome[1]}\n{reduced(case).script()}"


@settings(max_examples=15, derandomize=True, database=None, deadline=None, print_blob=False,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
@given(data=st.data())
def test_programs_agree_as_hypothesis_draws_them(data):
    """By hypothesis, which shrinks what it finds."""
    case = draw_case(HypothesisDraw(data))
    outcome = outcome_apart(case)
    assert outcome is None or outcome[0] == "refused", f"{outcome[0]}: {outcome[1]}\n{reduced(case).script()}"


def test_formulas_of_rounded_values_are_as_uncertain_as_those():
    """The cosine of a long sum is small, its error is some last bits of the sum: drawn formulas at values 16 of those apart."""
    mag, eps = 476.0, 2.0**-24
    values = np.linspace(-mag, mag, 101)
    formulas = {Formulas(Draw(seed), lambda: Term("T", "float32", mag, None), ()).term(2) for seed in range(600)}
    assert len(formulas) > 100 and any("te.cos(T)" in term.text for term in formulas)
    for term in formulas:
        if is_float(term.dtype) and not term.exact:
            one, other = (eval(term.text, {"te": Reference({}, {}), "T": Value(v.astype(np.float32), "float32")}).array
                          for v in (values, values + 16 * eps * mag))
            error = np.abs(one.astype(np.float64) - other).max()
            assert error <= 64 * max(eps, 2.0**-MANTISSA[term.dtype]) * max(term.mag, 1.0), (term, error)


def test_a_script_checks_the_same_case():
    """What a finding prints is a program that runs."""
    case = next(case for case in map(draw_case, map(Draw, range(20))) if case.schedule and outcome_of(case) is None)
    scope = {}
    exec(case.script().replace("show(case)\n", ""), scope)
    assert scope["case"].schedule == case.schedule


def test_the_command_counts_and_shows_one(capsys):
    assert main(["fuzz", "--count", "24", "--seed", "800"]) == 0
    assert "24 sequences, 0 findings" in capsys.readouterr().out
    assert main(["fuzz", "--only", "2"]) == 0
    shown = capsys.readouterr().out
    assert "case = Case(" in shown and "# outcome: all ways agree" in shown


def test_what_the_command_shows_is_a_program(capsys, monkeypatch):
    """Refusals have several lines, of which each is a comment."""
    monkeypatch.setattr("tedsl.fuzz.command.outcome_apart", lambda case: ("refused", "why\n  hint: what else"))
    assert main(["fuzz", "--only", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.endswith("# outcome: refused: why\n#   hint: what else\n")
    compile(shown, "shown", "exec")


def test_a_swarm_has_some_of_the_directives_in_each_sequence(capsys):
    drawn = [set(swarm(seed)) for seed in range(12)]
    assert set.union(*drawn) == set(DIRECTIVES) and max(map(len, drawn)) < len(DIRECTIVES)
    assert main(["fuzz", "--swarm", "--count", "16", "--seed", "640"]) == 0
    assert main(["fuzz", "--swarm", "--only", "641"]) == 0
    kinds = {one.__name__ for one in swarm(641)} | {"wild", "repair"}
    assert set(case_of(641, swarmed=True).kinds) <= kinds, capsys.readouterr().out


def test_a_crash_and_a_hang_are_findings(monkeypatch):
    """Workers that end or stand still are replaced, and the sequences after the one that did it are run."""
    def checked(seed, *rest):
        if seed == 5:
            os.abort()
        if seed == 11:
            time.sleep(60)

    monkeypatch.setattr("tedsl.fuzz.run._check", checked)
    monkeypatch.setattr("tedsl.fuzz.run.PATIENCE", 4.0)  # a busy machine takes a second to start a worker
    report = run_many(range(16))
    assert [(f.seed, f.kind) for f in report.findings] == [(5, "crash"), (11, "hang")]
    assert report.counts["sequences"] == 16


def test_a_refused_directive_that_changes_something_is_a_finding(monkeypatch):
    def careless(stage, loop):
        stage.nontemporal = not stage.nontemporal
        raise stage.refuse("unroll", "planted")

    def only_undo(recorder, state, number=None):  # what a failed directive has changed is not taken back
        if number is not None:
            return_to(recorder, state, number)

    return_to = Recorder.return_to
    monkeypatch.setattr("tedsl.schedule.stage.unroll", careless)
    monkeypatch.setattr(Recorder, "return_to", only_undo)
    report = Report()
    for seed in range(24):
        run_seed(seed, report)
    assert {f.kind for f in report.findings} == {"while drawing: changed although refused"}


def test_a_run_ends_once_enough_sequences_were_accepted():
    report = run_many(itertools.count(), chunk=4, accepted=3)
    assert 3 <= report.counts["accepted"] <= report.counts["sequences"] <= 8


def test_a_finding_shrinks_to_a_few_directives(monkeypatch):
    """With a fault in the compiler, the printed script has no more than what shows it."""
    monkeypatch.setattr(Nest, "guarded", lambda self, stmt, *rest: stmt)
    report, seed = Report(), 0
    while not report.findings:
        run_seed(seed, report)
        seed += 1
    small = reduced(case_of(report.findings[0].seed))
    assert len(small.schedule) <= 3


def test_a_finding_keeps_the_scan_of_its_states():
    """Without the scan a state would be a tensor of any rows, and what reads it at t - 1 would fail for that alone."""
    case = case_of(76)
    assert any(" = te.scan(" in text for text in case.lines) and outcome_of(case, compiled=False)[0] == "refused"
    small = smallest(case, lambda smaller: "s0[t - 1, i]" in str(smaller.lines))
    assert small.outputs == ["C"] and [text for text in small.lines if " = te.scan(" in text]
    assert not small.schedule
