"""Schedules that were miscompiled, or directives that left something behind when they were refused. All found by the fuzzer."""

import pytest

from tedsl import te
from tedsl.errors import ScheduleError


def sum_of_rows():
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    return te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")


def test_a_refused_tile_splits_nothing():
    """The reorder inside tile was refused after the splits had been made."""
    B = sum_of_rows()
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 2)
    s[B].decompose_reduction(inner)
    before = str(s)
    with pytest.raises(ScheduleError, match="inside of the reduction loop"):
        s[B].tile(B.op.reduce_axis[0], outer, 2, 2)
    assert str(s) == before
    assert len(s[B].relations) == 1
