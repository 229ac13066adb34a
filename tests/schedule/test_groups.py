"""create_group: stages placed by one directive, and ends that delimit no group."""

import copy
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentTypeError, OptionError, ScheduleError
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.state import AttachType


@pytest.fixture
def diamond():
    """A -> B -> C, D -> E -> F(output); B is read by C and D, E = C + D."""
    A = te.placeholder((12, 5), name="A")
    B = te.compute((12, 5), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((12, 5), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((12, 5), lambda i, j: B[i, j] - 3.0, name="D")
    E = te.compute((12, 5), lambda i, j: C[i, j] + D[i, j], name="E")
    F = te.compute((12, 5), lambda i, j: E[i, j] * 0.5, name="F")
    return SimpleNamespace(s=create_schedule(F.op), A=A, B=B, C=C, D=D, E=E, F=F)


def right(p):
    a = np.arange(60, dtype="float32").reshape(12, 5)
    f = np.zeros_like(a)
    tedsl.build(p.s, [p.A, p.F])(a, f)
    np.testing.assert_array_equal(f, ((a + 1) * 2 + (a + 1 - 3)) * 0.5)
    return str(tedsl.driver.schedule_to_module(p.s, [p.A, p.F]))


def test_a_group_is_computed_at_a_loop(diamond):
    p, s = diamond, diamond.s
    group = s.create_group(outputs=p.E, inputs=p.A)
    assert [stage.name for stage in group.stages] == ["B", "C", "D", "E"] and s[p.C].group == group == s.groups[0]
    assert s[p.F].group is None and group.num_child_stages == 4 and int(group.attach_type) == 1 and group.group is None
    outer, _ = s[p.F].split(p.F.op.axis[0], 4)
    group.compute_at(s[p.F], outer)
    assert all(s[t].attach_type == 4 and s[t].attach_ivar is outer for t in (p.B, p.C, p.D, p.E))
    assert group.attach_stage is s[p.F] and group.attach_ivar is outer and int(group.attach_type) == 4
    assert right(p).count("[(i.outer*4):((i.outer*4) + 4), 0:5]") == 4


def test_stages_with_a_place_of_their_own_keep_it(diamond):
    p, s = diamond, diamond.s
    group = s.create_group([p.E], [p.A])
    s[p.B].compute_at(s[p.E], p.E.op.axis[0])
    s[p.C].compute_inline()
    s[p.D].compute_at(s[p.E], p.E.op.axis[1])
    group.compute_at(s[p.F], p.F.op.axis[0])
    assert s[p.B].attach_stage is s[p.E] and s[p.C].attach_type == 2 and s[p.E].attach_stage is s[p.F]
    right(p)
    s[p.D].compute_root()  # back to the group
    assert s[p.D].attach_stage is s[p.F]
    group.compute_root()
    assert s[p.E].attach_type == s[p.D].attach_type == 1 and s[p.B].attach_stage is s[p.E]


def test_inputs_and_nested_groups(diamond):
    p, s = diamond, diamond.s
    outer = s.create_group([p.E], [p.B], include_inputs=True)
    inner = s.create_group([p.C], [p.B])
    assert [stage.name for stage in outer.stages] == ["B", "C", "D", "E"] and [stage.name for stage in inner.stages] == ["C"]
    assert inner.group == outer and outer.num_child_stages == 4 and len(s.groups) == 2 and repr(inner) == "group_1(C)"
    outer.compute_at(s[p.F], p.F.op.axis[0])
    inner.compute_at(s[p.E], p.E.op.axis[1])
    right(p)
    inner.compute_root()
    assert s[p.C].attach_stage is s[p.F]


def test_new_stages_belong_to_the_group(diamond):
    p, s = diamond, diamond.s
    group = s.create_group([p.E], [p.A])
    group.compute_at(s[p.F], p.F.op.axis[0])
    cache = s.cache_write(p.E, "local")
    read = s.cache_read(p.B, "local", [p.C])
    assert s[cache].group == s[read].group == group and s[cache].attach_stage is s[p.F] is s[read].attach_stage
    right(p)


def test_the_journal_copies_and_undo(diamond):
    p, s = diamond, diamond.s
    group = s.create_group([p.E], [p.A], include_inputs=False)
    group.compute_at(s[p.F], p.F.op.axis[0])
    assert str(s.journal) == "group_0 = s.create_group([E], [A])\ngroup_0.compute_at(s[F], s[F].op.axis[0])"
    twin = create_schedule(p.F.op)
    twin.replay(s.journal)
    assert str(twin) == str(s) and twin[p.C].group == twin.groups[0]
    copy = s.copy()
    copy.groups[0].compute_root()
    assert copy[p.E].attach_type == 1 and s[p.E].attach_type == 4
    s.undo(1)
    assert s[p.E].attach_type == 1 and len(s.groups) == 1
    s.undo(1)
    assert s.groups == [] and s[p.E].group is None


def test_ends_that_delimit_nothing(diamond, refused):
    p, s = diamond, diamond.s
    refused(s, lambda: s.create_group([p.B], [p.C]), "create_group([B], [C]) on stage B", "B does not use C", "B uses A")
    refused(s, lambda: s.create_group([p.E], [p.B, p.A]), "no way leads from A to E that does not begin at another input")
    refused(s, lambda: s.create_group([p.C], [p.C]), "there is no stage between these inputs and outputs",
            "include_inputs=True")
    refused(s, lambda: s.create_group([p.C], [p.A]), "B would be in the group, and D, outside of it, uses it too",
            "add B to the outputs")
    for ends, what in (([p.C], []), "inputs"), (([], [p.A]), "outputs"), (([], []), "outputs"):
        with pytest.raises(ArgumentTypeError, match=f"create_group: no {what} are given"):
            s.create_group(*ends)


def test_groups_that_overlap(diamond, refused):
    p, s = diamond, diamond.s
    s.create_group([p.C, p.D], [p.A])
    refused(s, lambda: s.create_group([p.E], [p.B]), "C and B belong to group_0, and B would not be in the new group",
            "leave group_0 whole")


ORDERS = list(itertools.permutations(range(3)))


@pytest.mark.parametrize("order", ORDERS)
def test_groups_inside_groups_are_made_in_any_order(order):
    """B within B, C, D within B, C, D, E; each made first, second or last."""
    p = chain_of_four()
    groups, ends = {}, (p.B, p.D, p.E)
    for at in order:
        groups[at] = p.s.create_group([ends[at]], [p.A])
    assert [[stage.name for stage in groups[at].stages] for at in range(3)] == [["B"], ["B", "C", "D"], ["B", "C", "D", "E"]]
    assert groups[0].group == groups[1] and groups[1].group == groups[2] and groups[2].group is None
    assert [groups[at].num_child_stages for at in range(3)] == [1, 3, 2]
    groups[2].compute_at(p.s[p.F], p.F.op.axis[0])
    assert p.s[p.B].attach_stage == p.s[p.F]
    groups[0].compute_at(p.s[p.C], p.C.op.axis[1])
    four_are_right(p)
    groups[2].compute_root()
    assert p.s[p.B].attach_stage == p.s[p.C] and p.s[p.E].attach_stage is None
    four_are_right(p)


@pytest.mark.parametrize("order", ORDERS)
def test_undo_of_groups_in_any_order(order):
    p = chain_of_four()
    ends, before = (p.B, p.D, p.E), []
    for at in order:
        before.append([(g.name, g.group) for g in p.s.groups])
        p.s.create_group([ends[at]], [p.A])
    again = create_schedule(p.F.op)
    again.replay(p.s.journal)
    names = [[(g.name, g.group and g.group.name) for g in s.groups] for s in (again, p.s)]
    assert names[0] == names[1]
    for was in reversed(before):
        p.s.undo()
        assert [(g.name, g.group) for g in p.s.groups] == was


def chain_of_four():
    """A -> B -> C -> D -> E -> F(output)."""
    A = te.placeholder((6, 5), name="A")
    B = te.compute((6, 5), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((6, 5), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((6, 5), lambda i, j: C[i, j] - 3.0, name="D")
    E = te.compute((6, 5), lambda i, j: D[i, j] * D[i, j], name="E")
    F = te.compute((6, 5), lambda i, j: E[i, j] * 0.5, name="F")
    return SimpleNamespace(s=create_schedule(F.op), A=A, B=B, C=C, D=D, E=E, F=F)


def four_are_right(p):
    a = np.arange(30, dtype="float32").reshape(6, 5)
    f = np.zeros_like(a)
    tedsl.build(p.s, [p.A, p.F])(a, f)
    np.testing.assert_array_equal(f, ((a + 1) * 2 - 3) ** 2 * 0.5)


def test_places_of_a_group(diamond, refused):
    p, s = diamond, diamond.s
    group = s.create_group([p.C], [p.B])
    refused(s, lambda: group.compute_at(s[p.D], p.D.op.axis[0]), "D does not use C")
    refused(s, lambda: group.compute_at(s[p.C], p.C.op.axis[0]), "C belongs to group_0 itself")
    whole = s.create_group([p.F], [p.E])
    refused(s, lambda: whole.compute_at(s[p.B], p.B.op.axis[0]), "F is an output")


@pytest.mark.parametrize(("place", "words"), [
    (lambda p: (None, None), ("group_0.compute_at(None, None)", "is a stage, got None", "group_0.compute_at(s[F], loop)")),
    (lambda p: ("F", 3), ("the first argument is a stage, got the str 'F'",)),
    (lambda p: (create_schedule(p.F.op)[p.F], p.F.op.axis[0]), ("F is a stage of another schedule",)),
    (lambda p: (p.s[p.F], None), ("expected an axis, got None",)),
    (lambda p: (p.s[p.F], p.B.op.axis[0]), ("i is a loop of stage B",)),
    (lambda p: (p.s[p.F], p.split), ("j was split into j.outer, j.inner",)),
    (lambda p: (p.s[p.B], p.B.op.axis[0]), ("B does not use E: it is computed before E",)),
    (lambda p: (p.s[p.A], p.F.op.axis[0]), ("A does not use E",)),
])
def test_a_group_whose_stages_all_have_places_is_checked_as_any_other(diamond, refused, place, words):
    p, s = diamond, diamond.s
    p.split = p.F.op.axis[1]
    s[p.F].split(p.split, 2)
    for tensor in (p.C, p.D, p.E):
        s[tensor].compute_at(s[p.F], p.F.op.axis[0])
    group = s.create_group([p.E], [p.B])
    refused(s, lambda: group.compute_at(*place(p)), *words)
    assert group.attach_stage is None and int(group.attach_type) == 1
    group.compute_at(s[p.F], p.F.op.axis[0])
    right(p)


def test_a_stage_does_not_go_back_to_a_group_where_it_cannot_be(refused):
    A = te.placeholder((8,), name="A")
    B, B2 = te.compute((8,), lambda i: A[i] + 1.0, name="B"), te.compute((8,), lambda i: A[i] - 1.0, name="B2")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((8,), lambda i: B2[i] * C[i], name="D")
    s = create_schedule([C.op, D.op])
    outer = s.create_group([B, B2], [A])
    inner = s.create_group([B], [A])
    inner.compute_at(s[C], C.op.axis[0])
    outer.compute_at(s[D], D.op.axis[0])
    assert s[B].attach_stage is s[C] and s[B2].attach_stage is s[D], "the inner group keeps its place"
    refused(s, inner.compute_root, "compute_root(), to loop i of D where group_0 is, on stage B", "C uses B too")
    assert inner.attach_stage is s[C]
    s[B].compute_inline()
    s[B].compute_root()
    assert s[B].attach_stage is s[C]
    s[B2].compute_inline()
    s[B2].compute_root()
    assert s[B2].attach_stage is s[D]
    flat = create_schedule([C.op, D.op])
    both = flat.create_group([B, B2], [A])
    flat[B].compute_at(flat[C], C.op.axis[0])
    both.compute_at(flat[D], D.op.axis[0])
    refused(flat, flat[B].compute_root, "to loop i of D where group_0 is", "C uses B too")


def test_a_group_moves_with_its_loop(diamond):
    p, s = diamond, diamond.s
    group = s.create_group([p.E], [p.A])
    group.compute_at(s[p.F], p.F.op.axis[0])
    for tensor in (p.B, p.C, p.D, p.E):
        s[tensor].compute_at(s[p.F], p.F.op.axis[1])
    _, inner = s[p.F].split(p.F.op.axis[0], 4)
    assert group.attach_ivar is inner and s[p.E].attach_ivar is p.F.op.axis[1]
    s[p.E].compute_root()
    assert s[p.E].attach_ivar is inner
    group.compute_root()
    assert group.attach_ivar is None and s[p.E].attach_ivar is None


def test_the_host_of_a_group_keeps_its_loops(diamond, refused):
    """compute_inline asked for stages at its loops only: a group whose stages all have places of their own has none there."""
    p, s = diamond, diamond.s
    group = s.create_group([p.C, p.D], [p.B])
    for tensor in (p.C, p.D):
        s[tensor].compute_at(s[p.F], p.F.op.axis[0])
    group.compute_at(s[p.E], p.E.op.axis[0])
    refused(s, s[p.E].compute_inline, "group_0 is computed at loop i of it", "call group_0.compute_root() first")
    te.schedule.AutoInlineElemWise(s)
    assert [stage.name for stage in s.stages if stage.attach_type == AttachType.INLINE] == ["B"]
    group.compute_root()
    s[p.E].compute_inline()
    right(p)


def test_a_group_goes_along_with_the_loops_of_its_host():
    A = te.placeholder((12, 5), name="A")
    B = te.compute((12, 5), lambda i, j: A[i, j] + 1.0, name="B")
    P = te.compute((12, 5), lambda i, j: B[i, j] * 2.0, name="P")
    C = te.compute((12, 5), lambda i, j: P[i, j] - 1.0, name="C")
    s = create_schedule(C.op)
    group = s.create_group([B], [A])
    group.compute_at(s[P], P.op.axis[0])
    s[C].reverse_compute_at(s[P], P.op.axis[0])
    assert group.attach_stage is s[C] is s[B].attach_stage and group.attach_ivar is C.op.axis[0] is s[B].attach_ivar
    a, c = np.arange(60, dtype="float32").reshape(12, 5), np.zeros((12, 5), "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2 - 1)


def test_a_group_that_undo_took_back_says_so(diamond):
    p, s = diamond, diamond.s
    group = s.create_group([p.E], [p.A])
    undone = s.undo()
    for use in (lambda: group.compute_at(s[p.F], p.F.op.axis[0]), group.compute_root):
        with pytest.raises(ScheduleError, match=r"group_0 was made by a create_group that undo took back(.|\n)*call create"):
            use()
    s.replay(undone)
    with pytest.raises(ScheduleError, match=r"took back(.|\n)*the groups now: group_0"):
        group.compute_root()
    s.groups[0].compute_at(s[p.F], p.F.op.axis[0])
    right(p)


def test_a_directive_for_stages_on_a_group(diamond):
    p, s = diamond, diamond.s
    group = s.create_group([p.E], [p.B])
    with pytest.raises(OptionError, match=r"group_0 is a group of stages(.|\n)*compute_inline is a directive for a stage"
                                          r"(.|\n)*write s\[C\].compute_inline\(...\), (.|\n)*, s\[E\].compute_inline\(...\)"):
        group.compute_inline()
    with pytest.raises(OptionError, match=r"a group of stages has no computeAt(.|\n)*did you mean compute_at"):
        group.computeAt(s[p.F], p.F.op.axis[0])
    assert not hasattr(group, "vectorize") and copy.copy(group) == group
