"""Random programs under random schedules mean what their formulas say, and lower to the same text in every process."""

import os
import subprocess
import sys

import pytest

from tedsl.fuzz.applied import declared, scheduled
from tedsl.fuzz.check import Refused, interpreted, loops_of
from tedsl.fuzz.directives.table import PLAIN
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.programs import SMALL, draw_program
from tedsl.fuzz.scheduler import Scheduler
from tedsl.fuzz.schedules import draw_directives
from tedsl.ir.verify import verify

pytestmark = pytest.mark.filterwarnings("ignore:.*as in TVM:UserWarning")  # of marks that random directives drop

BLOCKS, BLOCK = 8, 40


def drawn(seed):
    """A program with directives that lowering takes, and what its outputs are."""
    draw = Draw(seed)
    case, expected = draw_program(draw, SMALL)
    draw_directives(Scheduler(case, draw, declared(case)), PLAIN, illegal=15)
    return case, expected


@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_schedules_keep_the_meaning(block):
    """What the schedule accepts, lowering accepts: but where an inlined reduction gives the start values of another one."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        case, expected = drawn(seed)
        try:
            func = loops_of(case, scheduled(case))
        except Refused as refusal:
            assert "gives the start values" in str(refusal), f"{seed}: {refusal}\n{case.script()}"
        else:
            verify(func, flat=False)
            interpreted(case, func, f"the loops of {seed}", expected)


def print_texts(count):
    """The loops of the first programs, on standard output."""
    for seed in range(count):
        case, _ = drawn(seed)
        print(loops_of(case, scheduled(case)))


def test_the_text_does_not_depend_on_the_hash_seed():
    code = "from tests.lower.test_random_schedules import print_texts; print_texts(30)"
    texts = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                            env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(texts) == 1
