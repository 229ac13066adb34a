"""Random recurrences under random directives: refused with words, or the same rows as computed one after the other."""

import pytest

from tedsl.fuzz.applied import declared
from tedsl.fuzz.check import Refused, check, check_built
from tedsl.fuzz.directives.loops import split_lines_of, split_mask, split_partition, split_shift_inwards
from tedsl.fuzz.directives.places import compute_at
from tedsl.fuzz.directives.table import DIRECTIVES, PLAIN
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.recurrences import draw_recurrence, launch
from tedsl.fuzz.scheduler import Scheduler
from tedsl.fuzz.schedules import draw_directives

TAILS = PLAIN | {propose: DIRECTIVES[propose]
                 for propose in (split_mask, split_partition, split_shift_inwards, split_lines_of)}
pytestmark = pytest.mark.sampled(4)
LAUNCHED = TAILS | {compute_at: 4}  # memory of one thread that others would fill is refused


def outcome_of(case, expected):
    """Refused by lowering, or the interpreter and the machine code, checked or not, give the rows one after the other."""
    try:
        check(case, compiled=False, expected=expected)
        for checked in (False, True):
            check_built(case, checked=checked, expected=expected)
    except Refused:
        return "refused"  # for example an unrolled loop of symbolic extent
    except Exception:
        print(case.script())
        raise
    return "same"


@pytest.mark.parametrize("table", [TAILS, DIRECTIVES], ids=["loops and places", "all directives"])
@pytest.mark.parametrize("part", range(4))
def test_random_recurrences(part, table):
    outcomes = []
    for seed in range(6 * part, 6 * part + 6):
        draw = Draw(f"recurrence {seed}")
        case, expected = draw_recurrence(draw)
        draw_directives(Scheduler(case, draw, declared(case)), table, most=8, illegal=20)
        outcomes.append(outcome_of(case, expected))
    assert outcomes.count("same") >= 4, "hardly any schedule was accepted: the directives are drawn badly"


@pytest.mark.parametrize("part", range(4))
def test_random_recurrences_on_threads(part):
    outcomes = []
    for seed in range(10 * part, 10 * part + 10):
        draw = Draw(f"launch {seed}")
        case, expected = draw_recurrence(draw)
        scheduler = Scheduler(case, draw, declared(case))
        launch(scheduler)
        draw_directives(scheduler, LAUNCHED, most=4, illegal=20)
        outcomes.append(outcome_of(case, expected))
    assert outcomes.count("same") >= 2, "hardly any schedule was accepted: the directives are drawn badly"
