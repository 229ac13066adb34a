"""Derivatives of random programs are the differences of their values."""

import pytest

from tedsl.fuzz.derivatives import case_of, run_case, summary
from tedsl.fuzz.report import Report
from tedsl.fuzz.run import run_many
from tedsl.shell.table import main


def test_a_number_gives_the_same_program():
    assert [case_of(seed).lines for seed in range(20)] == [case_of(seed).lines for seed in range(20)]


@pytest.mark.parametrize("first", [0, pytest.param(12, marks=pytest.mark.whole)])
def test_derivatives_agree_with_differences(first):
    """12 of them; `python -m tedsl fuzz --derivatives --count 2000 --jobs 2` runs more."""
    report = run_many(range(first, first + 12), step=run_case, jobs=2, chunk=6)
    assert report.findings == [] and report.counts["agree"] > 10, summary(report)


def test_a_wrong_derivative_is_a_finding(monkeypatch):
    from tedsl.autodiff import partials
    from tedsl.ir.expr import Mul

    monkeypatch.setitem(partials._NODES, Mul, lambda e, _: [(e.a, lambda x: x)])
    report = Report()
    for seed in range(12):
        run_case(seed, report)
    assert {finding.kind for finding in report.findings} == {"differ"}


def test_the_command_shows_one(capsys):
    assert main(["fuzz", "--derivatives", "--only", "4"]) == 0
    assert capsys.readouterr().out.startswith(case_of(4).lines[0])
