"""Copies of stages in the steps of a scan, whose loops over the rows were split or fused before. Found by the fuzzer."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ScheduleError
from tedsl.ir.evaluate import run

M, N = te.var("m"), te.var("n")


class Cell:
    """inner(t) = state(t - first)*2 + X(t - 1), ahead(t) = X(t + 1), update(t) = inner(t) + ahead(t - 1)."""

    def __init__(self, m, n, first=1):
        self.first, self.X = first, te.placeholder((m, n), "int32", name="X")
        self.state = te.placeholder((m, n), "int32", name="state")
        self.init = te.compute((first, n), lambda t, i: self.X[t, i], name="init")
        self.inner = te.compute((m, n), lambda t, i: self.state[t - first, i] * 2 + self.X[t - 1, i], name="inner")
        self.ahead = te.compute((m, n), lambda t, i: self.X[t + 1, i], name="ahead")  # up to the row before the last
        self.update = te.compute((m, n), lambda t, i: self.inner[t, i] + self.ahead[t - 1, i], name="update")
        self.scan = te.scan(self.init, self.update, self.state, inputs=[self.X], name="scan")
        self.s = te.create_schedule(self.scan.op)

    def check(self, rows, width):
        x = np.arange(rows * width, dtype="int32").reshape(rows, width) % 7
        expected = x.copy()
        for t in range(self.first, rows):
            expected[t] = expected[t - self.first] * 2 + x[t - 1] + x[t]
        arguments = [self.X, self.scan]
        for call in (lambda *given: run(tedsl.lower(self.s, arguments)["main"], list(given)),
                     tedsl.build(self.s, arguments), tedsl.build(self.s, arguments, checked=True)):
            got = np.full_like(x, -1)
            call(x, got)
            np.testing.assert_array_equal(got, expected)


SIZES = [pytest.param(7, 5, id="constant"), pytest.param(M, N, id="symbolic"), pytest.param(7, N, id="mixed")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("m, n", SIZES)
@pytest.mark.parametrize("who", ["inner", "ahead", "update"])
@pytest.mark.parametrize("how", [{"factor": 2}, {"factor": 4}, {"nparts": 4}, {"factor": 1}, {"factor": 16}], ids=str)
def test_a_copy_after_the_rows_were_split(m, n, who, how):
    """It was refused: "update0.local reads s0[t.outer.c*2 + t.inner.c - 1, i.c] outside of s0 ... it is -1"."""
    p = Cell(m, n)
    stage = getattr(p, who)
    p.s[stage].split(stage.op.axis[0], **how)
    copy = p.s.cache_write(stage, "local")
    p.check(7, 5)
    p.s[copy].split(copy.op.axis[2], factor=4)
    p.check(7, 5)


@pytest.mark.parametrize("m, n", [(4, 3), (M, N)], ids=["constant", "symbolic"])
@pytest.mark.parametrize("first", [1, 2])
def test_every_copy_of_a_chain(m, n, first):
    p = Cell(m, n, first)
    for stage in (p.inner, p.ahead, p.update):
        outer, _ = p.s[stage].split(stage.op.axis[0], factor=3)
        p.s[stage].reorder(stage.op.axis[1], outer)
        p.s.cache_write(p.s.cache_write(stage, "local"), "global")
    p.check(4, 3)
    if m is M:
        p.check(2, 3)
        p.check(9, 1)


def test_a_copy_computes_its_row_and_asks_nothing():
    p = Cell(6, 4)
    p.s[p.update].split(p.update.op.axis[0], factor=2)
    p.s.cache_write(p.update, "local")
    text = str(tedsl.lower(p.s, [p.X, p.scan], simple_mode=True))
    assert "if" not in text and "allocate(update.local: Pointer(local int32), int32, [4])" in text


def test_rows_split_before_a_copy_in_a_group():
    """As the fuzzer found it: the copy is moved by a group."""
    p = Cell(7, 4)
    p.s[p.update].split(p.update.op.axis[0], nparts=4)
    copy = p.s.cache_write(p.update, "local")
    group = p.s.create_group([p.update], [copy])
    group.compute_at(p.s[p.scan], p.scan.op.scan_axis)
    p.check(7, 4)


# --- loops that mix rows ------------------------------------------------------------------------------------------------

def fused(p, stage, *loops):
    return p.s[stage].fuse(*(loops or p.s[stage].op.axis))


@pytest.mark.parametrize("m, n", [(6, 8), (M, N)], ids=["constant", "symbolic"])
def test_fused_loops_in_which_rows_follow_one_another(m, n):
    p = Cell(m, n)
    fused(p, p.inner)
    outer, inner = p.s[p.update].split(p.update.op.axis[0], factor=4)
    fused(p, p.update, inner, p.update.op.axis[1])
    p.s.cache_write(p.inner, "local")
    p.s.cache_write(p.update, "local")
    p.check(6, 8)


@pytest.mark.parametrize("factor", [4, 8, 16])
def test_fused_loops_split_into_parts_or_multiples_of_rows(factor):
    p = Cell(6, 8)
    p.s[p.inner].split(fused(p, p.inner), factor=factor)
    p.s.cache_write(p.inner, "local")
    p.check(6, 8)


MIXED = {"tiles": lambda p: p.s[p.inner].split(fused(p, p.inner), factor=3),
         "columns": lambda p: (p.s[p.inner].reorder(*p.inner.op.axis[::-1]), fused(p, p.inner, *p.inner.op.axis[::-1]))}


@pytest.mark.parametrize("m, n", [(6, 8), (M, N)], ids=["constant", "symbolic"])
@pytest.mark.parametrize("how", MIXED)
def test_a_copy_whose_tiles_hold_several_rows_is_refused(m, n, how):
    """It computed the tiles around its row, from rows that were not there yet: checked loops stopped there."""
    p = Cell(m, n)
    MIXED[how](p)
    before = str(p.s)
    with pytest.raises(ScheduleError, match=r"t counts the steps of scan, and (.|\n)* mix the rows of several steps(.|\n)*"
                                            "call cache_write first, then split and fuse the loops of the new stage"):
        p.s.cache_write(p.inner, "local")
    assert str(p.s) == before


def test_the_same_loops_after_the_copy_mix_nothing():
    p = Cell(6, 8)
    copy = p.s.cache_write(p.inner, "local")
    p.s[copy].split(fused(p, copy), factor=3)
    p.check(6, 8)


def test_a_copy_of_a_copy_knows_the_width_of_its_rows():
    p = Cell(6, 8)
    fused(p, p.inner)
    copy = p.s.cache_write(p.inner, "local")
    p.s[copy].split(copy.op.axis[0], factor=3)
    with pytest.raises(ScheduleError, match=r"t\.i\.fused\.c counts the steps of scan"):
        p.s.cache_write(copy, "local")
