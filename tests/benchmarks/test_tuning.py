"""What the benchmark of searches measures: programs of its families, and the table."""

import random

import pytest

from benchmarks import tuning
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.target import Target


@pytest.mark.parametrize("family", tuning.FAMILIES.values())
def test_shapes_are_drawn_by_the_seed_and_can_be_scheduled(family):
    name, args, _ = family(random.Random(1))
    assert name == family(random.Random(1))[0] != family(random.Random(2))[0]
    assert [array.shape for array in tuning.arrays_of(args)] == [tuple(map(int, arg.shape)) for arg in args]
    assert Problem(args, Target("llvm")).default.schedule.journal


def test_a_row_and_the_mean():
    row = tuning.row("case", 7, {"best": 1e-6, "default": 2e-6}, {"default": 2.0})
    assert row.split() == ["case", "7", "1.0", "2.0", "-", "2.00"] and tuning.geomean([2.0, 8.0]) == pytest.approx(4.0)
