"""Malformed nodes and texts are refused by errors of ours, or work: never an error of Python, a crash or a fault of ours."""

import mmap

import pytest

from tedsl.fuzz.malformed.nodes import EXPRESSIONS, OTHERS, PRELUDE, STATEMENTS
from tedsl.fuzz.malformed.run import KINDS, MEMORY, outcome_of, run_script, script_of
from tedsl.fuzz.run import run_many
from tedsl.shell.table import main


@pytest.mark.parametrize("table", [EXPRESSIONS, STATEMENTS, OTHERS])
def test_the_arguments_that_are_made_wrong_are_right_before(table):
    scope = {}
    exec(PRELUDE, scope)
    for maker, arguments in table.items():
        exec(f"str({maker}({', '.join(arguments)}))", scope)


def test_a_number_gives_the_same_script():
    assert [script_of(seed) for seed in range(20)] == [script_of(seed) for seed in range(20)]
    assert len({script_of(seed) for seed in range(200)}) > 150


def test_bare_errors_and_faults_of_ours_are_findings():
    assert outcome_of("te.placeholder((4,), name='A')") is None
    assert outcome_of("te.placeholder((4,), name=3)")[0] == "refused"
    assert outcome_of("{}['x']") == ("KeyError in <malformed>:<module>", "'x'")
    assert outcome_of("raise tedsl.errors.InternalError('ours')")[0] == "InternalError in <malformed>:<module>"


def test_the_command_shows_one(capsys):
    assert main(["fuzz", "--malformed", "--only", "4"]) in (0, 1)
    shown = capsys.readouterr().out
    assert script_of(4) in shown and "# outcome: " in shown


def test_all_kinds_are_refused_or_work():
    """500 of them; `python -m tedsl fuzz --malformed --count 2000` runs more."""
    report = run_many(range(500), step=run_script, jobs=2, chunk=250)
    assert report.counts["sequences"] == 500 and len(KINDS) == 5
    assert not report.findings, report.found()
    assert report.counts["refused"] > 200


def test_a_process_that_has_taken_much_address_space_builds():
    """The limit of memory was one for all of a process: other modules, as torch, left nothing of it."""
    space = mmap.mmap(-1, MEMORY, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    try:
        report = run_many(range(27, 28), step=run_script, jobs=1, chunk=1)
    finally:
        space.close()
    assert report.counts["sequences"] == 1 and not report.findings, report.found()
