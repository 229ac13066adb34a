"""Every directive is written into the journal, can be replayed and taken back. A new one has to be added to EXAMPLES."""

from types import SimpleNamespace

import pytest

from tedsl import te, tir
from tedsl.errors import ArgumentError
from tedsl.schedule.group import StageGroup
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.schedule.journal import Journal
from tedsl.schedule.record.history import fields_of
from tedsl.schedule.stage import Stage


def program():
    """A -> B -> C (sums rows of B) -> D, the output, which adds B's first column; E, another one, is made by statements,
    F sums a window of data with a border.
    """
    A = te.placeholder((16, 12), name="A")
    B = te.compute((16, 12), lambda i, j: A[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 12), "k")
    C = te.compute((16,), lambda i: te.sum(B[i, k], axis=k), name="C")
    D = te.compute((16,), lambda i: C[i] * 2.0, name="D")
    E = te.extern((16,), [A], lambda ins, outs: statements(ins, outs, 1, 0), name="E", by_threads=statements)
    l = te.reduce_axis((0, 3), "l")
    F = te.compute((16,), lambda i: te.sum(te.if_then_else(i + l >= 1, A[i, l], 0.0), axis=l), name="F")
    return SimpleNamespace(A=A, B=B, C=C, D=D, E=E, F=F, k=k, l=l, s=create_schedule([D.op, E.op, F.op]), i=D.op.axis[0])


def statements(ins, outs, threads, shared):
    ib = tir.ir_builder.create()
    a, e = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    thread = te.thread_axis("threadIdx.x")
    ib.scope_attr(thread, "thread_extent", threads)
    with ib.for_range(0, 16 // threads) as i:
        e[i * threads + thread] = a[i * threads + thread, 0]
    return ib.get()


def intrinsic():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] * 2.0, name="y")

    def body(ins, outs):
        return outs[0].vstore([0], ins[0].vload([0], "float32x4") * 2.0)

    return te.decl_tensor_intrin(y.op, body, name="twice")


def attached(p):
    p.s[p.C].compute_at(p.s[p.D], p.i)


def grouped(p):
    return p.s.create_group([p.C], [p.A])


# For each directive: what is applied before it, and the call. "Class.name" where several classes have it.
NOTHING = lambda p: None
EXAMPLES = {
    "Stage.split": (NOTHING, lambda p, _: p.s[p.D].split(p.i, factor=5)),
    "Stage.fuse": (NOTHING, lambda p, _: p.s[p.B].fuse(*p.B.op.axis)),
    "Stage.reorder": (NOTHING, lambda p, _: p.s[p.B].reorder(*reversed(p.B.op.axis))),
    "Stage.tile": (NOTHING, lambda p, _: p.s[p.B].tile(*p.B.op.axis, 4, 3)),
    "Stage.decompose_reduction": (NOTHING, lambda p, _: p.s[p.C].decompose_reduction(p.C.op.axis[0])),
    "Stage.skip_zeros": (NOTHING, lambda p, _: p.s[p.F].skip_zeros(p.l)),
    "Stage.specialize": (NOTHING, lambda p, _: p.s[p.D].specialize(te.const(1, "int32") < 2)),
    "Stage.vectorize": (NOTHING, lambda p, _: p.s[p.D].vectorize(p.i)),
    "Stage.unroll": (NOTHING, lambda p, _: p.s[p.D].unroll(p.i)),
    "Stage.parallel": (NOTHING, lambda p, _: p.s[p.D].parallel(p.i)),
    "Stage.bind": (NOTHING, lambda p, _: p.s[p.D].bind(p.i, te.thread_axis("threadIdx.x"))),
    "Stage.env_threads": (NOTHING, lambda p, _: p.s[p.D].env_threads([te.thread_axis((0, 8), "threadIdx.x")])),
    "Stage.set_store_predicate": (NOTHING, lambda p, _: p.s[p.D].set_store_predicate(te.const(1, "int32") < 2)),
    "Stage.tensorize": (lambda p: p.s[p.D].split(p.i, 4)[1], lambda p, inner: p.s[p.D].tensorize(inner, intrinsic())),
    "Stage.pragma": (NOTHING, lambda p, _: p.s[p.D].pragma(p.i, "auto_unroll_max_step", 16)),
    "Stage.compute_at": (NOTHING, lambda p, _: p.s[p.C].compute_at(p.s[p.D], p.i)),
    "Stage.reverse_compute_at": (NOTHING, lambda p, _: p.s[p.D].reverse_compute_at(p.s[p.C], p.C.op.axis[0])),
    "Stage.compute_with": (NOTHING, lambda p, _: p.s[p.D].compute_with(p.s[p.C], p.C.op.axis[0], p.i)),
    "Stage.transform_layout": (NOTHING, lambda p, _: p.s[p.B].transform_layout(lambda i, j: [j, i // 4, i % 4])),
    "Stage.compute_inline": (NOTHING, lambda p, _: p.s[p.B].compute_inline()),
    "Stage.compute_root": (attached, lambda p, _: p.s[p.C].compute_root()),
    "Stage.set_scope": (NOTHING, lambda p, _: p.s[p.C].set_scope("local")),
    "Stage.storage_align": (NOTHING, lambda p, _: p.s[p.B].storage_align(p.B.op.axis[0], 8, 1)),
    "Stage.double_buffer": (attached, lambda p, _: p.s[p.C].double_buffer()),
    "Stage.rolling_buffer": (attached, lambda p, _: p.s[p.C].rolling_buffer()),
    "Stage.prefetch": (NOTHING, lambda p, _: p.s[p.B].prefetch(p.A, p.B.op.axis[0], 1)),
    "Stage.nontemporal": (NOTHING, lambda p, _: p.s[p.D].nontemporal()),
    "Stage.by_threads": (NOTHING, lambda p, _: p.s[p.E].by_threads(8, 0)),
    "Schedule.cache_read": (NOTHING, lambda p, _: p.s.cache_read(p.A, "local", [p.B])),
    "Schedule.reindex_cache_read": (NOTHING, lambda p, _: p.s.reindex_cache_read(p.B, "local", p.C)),
    "Schedule.cache_write": (NOTHING, lambda p, _: p.s.cache_write(p.C, "local")),
    "Schedule.rfactor": (lambda p: p.s[p.C].split(p.k, 4)[0], lambda p, outer: p.s.rfactor(p.C, outer)),
    "Schedule.pad_sum": (NOTHING, lambda p, _: p.s.pad_sum(p.C, p.k, 5)),
    "Schedule.create_group": (NOTHING, lambda p, _: p.s.create_group([p.C], [p.A])),
    "StageGroup.compute_at": (grouped, lambda p, group: group.compute_at(p.s[p.D], p.i)),
    "StageGroup.compute_root": (lambda p: (group := grouped(p)).compute_at(p.s[p.D], p.i) or group,
                                lambda p, group: group.compute_root()),
}
# Calls that return a list or a tuple of one: it is taken apart where it is named.
LISTS_OF_ONE = {
    "Stage.transform_layout": (NOTHING, lambda p, _: p.s[p.C].transform_layout(lambda i: [i])),
    "Stage.reverse_compute_at": (NOTHING, lambda p, _: p.s[p.D].reverse_compute_at(p.s[p.C], p.C.op.axis[0])),
    "Schedule.cache_write": (NOTHING, lambda p, _: p.s.cache_write([p.C], "local")),
}
# Calls that return one thing, which has no parts.
SINGLES = {name: EXAMPLES[name] for name in ("Stage.fuse", "Stage.specialize", "Schedule.cache_read",
                                             "Schedule.reindex_cache_read", "Schedule.cache_write", "Schedule.rfactor",
                                             "Schedule.create_group")}
OBJECTS = {"Stage.tensorize"}  # their arguments live in this process: JSON refuses them


def test_every_directive_has_an_example():
    names = {f"{one.__name__}.{name}" for one in (Stage, Schedule, StageGroup) for name in one._directives}
    assert not names - set(EXAMPLES), "add these to EXAMPLES"
    assert not set(EXAMPLES) - names, "these are no directives"


@pytest.mark.parametrize("handle", [Stage, Schedule, StageGroup])
def test_the_tables_name_the_methods_that_are_directives(handle):
    decorated = {name.removeprefix("_") for name, method in vars(handle).items()
                 if hasattr(getattr(method, "__wrapped__", None), "__wrapped__")}  # an entry around a directive around it
    assert decorated == handle._directives


def everything(s):
    """All that a directive could change, with the names that the journal gave."""
    recorder = s.state.recorder
    return {**fields_of(s.state), "stage_map": dict(s.state.stage_map)}, \
        [(stage, fields_of(stage)) for stage in s.state.stages], \
        (list(recorder.directives), dict(recorder.names), dict(recorder.objects))


def changed(before, after):
    """The fields that differ."""
    found = [name for name, value in before[0].items() if value != after[0][name]]
    for (stage, fields), (twin, now) in zip(before[1], after[1]):
        found += [f"{stage.name}.{name}" for name, value in fields.items() if stage is not twin or value != now[name]]
    return found + ["journal"] * (before[2] != after[2])


@pytest.mark.parametrize("examples, comma", [(LISTS_OF_ONE, ","), (SINGLES, "")], ids=["lists", "singles"])
def test_results_are_named_as_they_are_returned(examples, comma):
    for prepare, apply in examples.values():
        p = program()
        returned = apply(p, prepare(p))
        assert isinstance(returned, (list, tuple)) == bool(comma)
        (made,) = returned if comma else (returned,)
        name = p.s.state.recorder.names[getattr(made, "state", made)]
        assert p.s.journal[-1].text.startswith(f"{name}{comma} = ")
        names = {"s": create_schedule(p.D.op), "te": te, "A": p.A, "B": p.B, "C": p.C, "D": p.D}
        exec(str(p.s.journal), names)
        assert type(names[name]) is type(made), "the name means one of them, not the list"


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_journalled_replayed_and_taken_back(name):
    prepare, apply = EXAMPLES[name]
    p = program()
    ready = prepare(p)
    before, count, text = everything(p.s), len(p.s.journal), str(p.s)
    apply(p, ready)

    journal = p.s.journal
    assert len(journal) == count + 1, "one directive, one entry"
    entry = journal[-1]
    assert entry.name == name.split(".")[1] and f".{entry.name}(" in entry.text
    assert entry.where is not None and entry.where.file == __file__

    twin = create_schedule([p.D.op, p.E.op, p.F.op])
    twin.replay(journal)
    assert str(twin) == str(p.s) and str(twin.journal) == str(journal) and twin.explain() == p.s.explain()
    names = {"s": create_schedule([p.D.op, p.E.op, p.F.op]), "te": te, "A": p.A, "B": p.B, "C": p.C, "D": p.D, "E": p.E,
             "F": p.F, **journal.objects}
    exec(str(journal), names)
    assert str(names["s"]) == str(p.s), "the printed journal is a program"
    if name in OBJECTS:
        with pytest.raises(ArgumentError, match="cannot be written as JSON"):
            journal.to_json()
    else:
        again = create_schedule([p.D.op, p.E.op, p.F.op])
        again.replay(Journal.from_json(journal.to_json()))
        assert str(again) == str(p.s)

    copied = p.s.copy()
    after = everything(p.s)
    copied.undo()
    assert str(copied) == text and changed(after, everything(p.s)) == [], "a copy is its own"
    undone = p.s.undo()
    assert changed(before, everything(p.s)) == [] and str(p.s) == text
    p.s.replay(undone)
    assert str(p.s) == str(twin) and str(p.s.journal) == str(journal)
