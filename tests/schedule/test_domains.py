"""How many iterations the loops of a split get: print, explain and lower say the same, whatever the factor."""

import re

import pytest

from tedsl import te
from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.script import script
from tedsl.ir.stmt import AttrStmt, For
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.domains import Fitted, as_written, counted_by_threads, overrunning, tile_down, written_tiling
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.relations import TAILS

N = te.var("n")


def one_stage(size):
    A = te.placeholder((size,), name="A")
    C = te.compute((size,), lambda i: A[i] + 1.0, name="C")
    return create_schedule(C.op), A, C


def loops_of(text):
    """The loops that a text shows with their extents, by name."""
    return dict(re.findall(r"for (\S+) in 0\.\.(.*?)(?: \([a-z][^()]*\))?$", text, re.MULTILINE))


def lowered_loops(s, args):
    """The loops of more than one iteration that lowering makes, and the threads that it launches, by name."""
    extents = {}
    for node in post_order(lower_schedule(s, args).body):
        if isinstance(node, For):
            extents[node.loop_var.name] = str(build.as_int(node.extent) or script(node.extent))
        elif isinstance(node, AttrStmt) and node.attr_key == "thread_extent":
            extents[node.node.var.name] = str(build.as_int(node.value) or script(node.value))
    return extents


def all_agree(s, args, names=None):
    """Holds print against explain, and both against the loops of more than one iteration that are lowered."""
    printed, explained = loops_of(str(s)), loops_of(str(s.explain()))
    assert printed == explained
    made = lowered_loops(s, args)
    assert made == {(names or {}).get(loop, loop): extent for loop, extent in printed.items() if extent != "1"}
    return printed


@pytest.mark.parametrize(("size", "given", "outer", "inner"), [
    (10, {"factor": 64}, "1", "10"), (10, {"factor": 10}, "1", "10"), (10, {"factor": 4}, "3", "4"),
    (10, {"nparts": 64}, "10", "1"), (10, {"nparts": 4}, "4", "3"), (10, {"nparts": 5}, "5", "2"),
    (N, {"factor": 4}, "(n + 3)//4", "4"), (N, {"nparts": 4}, "4", "(n + 3)//4"),
    (N * 8, {"factor": 4}, "n*2", "4"), (N * 8, {"nparts": 4}, "4", "n*2"),
    (N * 8, {"factor": N}, "n*8//n", "n"), (10, {"factor": N}, "(n + 9)//n", "n"),
])
def test_print_explain_and_lower_agree(size, given, outer, inner):
    s, A, C = one_stage(size)
    s[C].split(C.op.axis[0], **given)
    args = [A, C, *([N] if size == 10 and N in given.values() else [])]
    assert all_agree(s, args) == {"i.outer": outer, "i.inner": inner}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("factor", [4, 64])
def test_they_agree_about_every_tail(tail, factor):
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((10,), lambda j: B[j] + 1.0, name="C")
    s = create_schedule(C.op)
    s[B].split(B.op.axis[0], factor, tail=tail)
    outer, inner = ("3", "4") if factor == 4 else ("1", "10")
    assert all_agree(s, [A, C]) == {"i.outer": outer, "i.inner": inner, "j": "10"}


def test_they_agree_about_splits_of_splits_and_fused_loops():
    A = te.placeholder((6, 10), name="A")
    C = te.compute((6, 10), lambda i, j: A[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[1], factor=64)
    s[C].split(s[C].fuse(C.op.axis[0], s[C].fuse(s[C].leaf_iter_vars[1], inner)), factor=16)
    assert list(all_agree(s, [A, C]).values()) == ["4", "16"]  # 60 iterations, not 6 * 64


@pytest.mark.parametrize("axis", [te.thread_axis("threadIdx.x"), te.thread_axis((0, 64), "threadIdx.x")])
def test_threads_keep_the_factor_above_the_extent(axis):
    s, A, C = one_stage(10)
    _, inner = s[C].split(C.op.axis[0], factor=64)
    s[C].bind(inner, axis)
    assert all_agree(s, [A, C], {"i.inner": "threadIdx.x"}) == {"i.outer": "1", "i.inner": "64"}


def test_threads_keep_what_their_loop_is_made_of():
    s, A, C = one_stage(10)
    outer, _ = s[C].split(C.op.axis[0], factor=64)
    s[C].split(outer, nparts=4)
    s[C].bind(s[C].leaf_iter_vars[0], te.thread_axis("blockIdx.x"))
    extents = {"i.outer.outer": "4", "i.outer.inner": "1", "i.inner": "10"}  # the inner loop is not made of threads
    assert all_agree(s, [A, C], {"i.outer.outer": "blockIdx.x"}) == extents


def test_a_version_has_the_sizes_of_its_condition():
    s, A, C = one_stage(N)
    s[C].split(C.op.axis[0], factor=64)
    s[C].specialize(N.equal(10))
    assert str(s[C]) == ("C: output\n  for i.outer in 0..(n + 63)//64\n    for i.inner in 0..64\n"
                         "where n == 10:\n  for i.outer in 0..1\n    for i.inner in 0..10")
    even = s[C].specialize(te.floormod(N, 64).equal(0))
    assert "for i.outer in 0..n//64" in str(s[C]) and even is not None


def test_only_lowering_knows_the_region_of_an_attached_stage():
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((100,), lambda j: B[j] + 1.0, name="C")
    s = create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], factor=8)
    s[B].split(B.op.axis[0], factor=16)
    s[B].compute_at(s[C], outer)
    assert str(s[B]) == "B: computed at C, loop j.outer\n  for i.outer\n    for i.inner in 0..16 at most"
    assert loops_of(str(s.explain()))["i.inner"] == "8"


def test_the_rules_of_rounding():
    s, _, C = one_stage(10)
    axis, = C.op.axis
    outer, inner = s[C].split(axis, factor=64)
    written, as_run = written_tiling(s[C].state), tile_down(s[C].relations, {axis: axis.dom.extent}, Fitted(Analyzer()))
    assert [build.as_int(written.extents[loop]) for loop in (outer, inner)] == [1, 64] and axis not in written.even
    assert [build.as_int(as_run.extents[loop]) for loop in (outer, inner)] == [1, 10] and axis in as_run.even
    unknown = tile_down(s[C].relations, {}, as_written).extents
    assert build.as_int(unknown[inner]) == 64 and outer not in unknown
    assert not tile_down(s[C].relations, {}, Fitted(Analyzer())).extents
    assert counted_by_threads(s[C].state) == set()


def test_what_overruns_is_named_with_its_splits():
    s, _, C = one_stage(100)
    axis, = C.op.axis
    outer, inner = s[C].split(axis, factor=8)
    s[C].split(outer, factor=5)
    s[C].split(inner, factor=3)
    first, second, third = s[C].relations
    tiling = written_tiling(s[C].state)
    assert overrunning(s[C].relations, tiling.even, s[C].leaf_iter_vars) == {axis: (first, second), inner: (third,)}
