"""Random programs under random schedules agree with numpy: interpreter before and after the passes, and machine code."""

import collections

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tedsl.fuzz.draw import Draw, HypothesisDraw
from tedsl.fuzz.reduce import reduced
from tedsl.fuzz.run import draw_case, outcome_apart, run_many


@pytest.mark.parametrize("part", range(2))
def test_programs_agree(part):
    """150 programs by seeds, in processes of their own: a crash names the program."""
    report = run_many(range(75 * part, 75 * part + 75), chunk=75)
    assert report.counts["programs"] == 75
    assert not report.findings, "\n\n".join(f"program {f.seed}: {f.kind}: {f.detail}\n{f.script}" for f in report.findings)


@pytest.mark.parametrize("part", range(2))
@settings(max_examples=75, derandomize=True, database=None, deadline=None, print_blob=False,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
@given(data=st.data())
def test_programs_agree_as_hypothesis_draws_them(part, data):
    """150 more by hypothesis, which shrinks what it finds."""
    case = draw_case(HypothesisDraw(data))
    outcome = outcome_apart(case)
    assert outcome is None or outcome[0] == "refused", f"{outcome[0]}: {outcome[1]}\n{reduced(case).script()}"


def test_programs_are_of_all_kinds():
    """Splits that do not divide, symbolic shapes and attached producers: each in at least a fifth of the programs."""
    counts = collections.Counter()
    for seed in range(300):
        case = draw_case(Draw(seed))
        counts.update({name: bool(n) for name, n in case.counts.items()})
    for kind in ("not dividing", "symbolic", "attached"):
        assert counts[kind] >= 60, (kind, counts)
    for kind in ("cache_read", "cache_write", "rfactor"):
        assert counts[kind] >= 30, (kind, counts)


def test_a_script_checks_the_same_case():
    """What a finding prints is a program that runs."""
    case = draw_case(Draw(1))
    scope = {}
    exec(case.script().replace("show(case)\n", ""), scope)
    assert scope["case"].schedule == case.schedule
