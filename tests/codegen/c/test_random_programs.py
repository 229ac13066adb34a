"""Random programs under random schedules in C, many in one file; `.ci/c` runs thousands."""

import argparse

import pytest

from tedsl.codegen.c.values import expr
from tedsl.errors import ArgumentError
from tedsl.fuzz.command import configure
from tedsl.fuzz.report import Report
from tedsl.fuzz.targets.in_c import check_batch, run_in_c
from tedsl.target import Target
from tests.codegen.c.compilers import needs_compiler, strict_target

pytestmark = pytest.mark.filterwarnings("ignore:.*as in TVM:UserWarning")  # of marks that random directives drop


@needs_compiler
@pytest.mark.parametrize("options, first", [("-math=own", 30_000), ("-vectors=gcc -parallel=serial", 30_024)])
def test_programs_agree_with_the_reference_and_the_interpreter(options, first):
    report = Report()
    check_batch(range(first, first + 24), Target(strict_target(options)), report)
    assert report.findings == [], report.found()
    assert report.counts["accepted"] > 12


@needs_compiler
def test_a_wrong_result_is_found(monkeypatch):
    monkeypatch.setitem(expr.ARITHMETIC, expr.Add, ("sub", "-", 7))
    report = Report()
    check_batch(range(30_000, 30_016), Target("c"), report)
    assert {finding.kind for finding in report.findings} >= {"C"}


def test_targets_of_other_kinds_are_refused():
    with pytest.raises(ArgumentError, match="for targets of kind c"):
        run_in_c(range(5), "llvm")


def test_the_command_takes_a_target():
    parser = argparse.ArgumentParser()
    configure(parser)
    assert parser.parse_args(["--target", "c -cc=gcc", "--count", "50"]).target == "c -cc=gcc"
