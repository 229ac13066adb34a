"""The journal: every directive as Python that builds the same schedule again."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ScheduleError
from tedsl.ir.iters import IterType, IterVar
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.journal import Journal
from tedsl.schedule.record.grammar import read_directive


def replayed(s, *outputs, **names):
    """A new schedule of `outputs` after running the journal of `s`."""
    twin = create_schedule([t.op for t in outputs])
    exec(str(s.journal), {"s": twin, "te": te, **names})
    return twin


def test_directives_are_frozen_records(chain):
    s = chain.s
    assert len(s.journal) == 0 and str(s.journal) == ""
    i, _ = chain.D.op.axis
    s[chain.D].split(i, 8)
    s.cache_read(chain.A, "local", [chain.B])
    first, second = s.journal
    assert first == read_directive("i_outer, i_inner = s[D].split(s[D].op.axis[0], factor=8)", "D")
    assert (second.name, second.stage, second.text) == ("cache_read", "", "A_local = s.cache_read(A, 'local', [B])")
    with pytest.raises(AttributeError):
        first.name = ""
    assert str(first) == first.text and str(s.journal) == f"{first}\n{second}"


def test_a_journal_taken_earlier_does_not_grow(chain):
    before = chain.s.journal
    chain.s[chain.C].compute_inline()
    assert len(before) == 0 and len(chain.s.journal) == 1


def test_what_was_refused_is_not_recorded(chain):
    with pytest.raises(ScheduleError):
        chain.s[chain.D].split(chain.D.op.axis[0], 0)
    assert len(chain.s.journal) == 0


def test_replay_of_an_elementwise_chain(chain):
    s, (i, j) = chain.s, chain.D.op.axis
    xo, yo, xi, yi = s[chain.D].tile(i, j, 8, 16)
    fused = s[chain.D].fuse(xo, yo)
    s[chain.D].parallel(fused)
    s[chain.D].vectorize(yi)
    s[chain.D].unroll(xi)
    s[chain.D].pragma(fused, "auto_unroll_max_step", 4)
    s[chain.C].compute_at(s[chain.D], fused)
    s[chain.C].set_scope("local")
    s[chain.B].compute_inline()
    s[chain.B].compute_root()
    s[chain.B].fuse()
    s[chain.D].nontemporal()
    assert str(replayed(s, chain.D, A=chain.A, B=chain.B, C=chain.C, D=chain.D)) == str(s)
    assert [d.name for d in s.journal][:4] == ["tile", "fuse", "parallel", "vectorize"]


def test_replay_of_the_classic_matmul(matmul):
    s = matmul.s
    CL = s.cache_write(matmul.C, "local")
    AA = s.cache_read(matmul.A, "global", [CL])
    xo, yo, xi, yi = s[matmul.C].tile(*s[matmul.C].op.axis, 8, 8)
    s[CL].compute_at(s[matmul.C], yo)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], nparts=5)
    s[CL].reorder(ko, *s[CL].op.axis, ki)
    s[AA].compute_at(s[CL], ko)
    s[matmul.C].reorder(yo, xo)
    names = {"A": matmul.A, "B": matmul.B, "C": matmul.C, "D": matmul.D}
    twin = replayed(s, matmul.D, **names)
    assert str(twin) == str(s) and str(twin.journal) == str(s.journal)
    assert "k_outer, k_inner = s[C_local].split(s[C_local].op.reduce_axis[0], nparts=5)" in str(s.journal)
    assert str(replayed(twin, matmul.D, **names)) == str(s)


def test_replay_of_rfactor(matmul):
    s = matmul.s
    _, ki = s[matmul.C].split(matmul.k, 16)
    CF = s.rfactor(matmul.C, ki, 1)
    s[CF].parallel(s[CF].op.axis[0])
    s[CF].vectorize(s[CF].op.axis[1])
    s[matmul.C].split(s[matmul.C].op.axis[1], 4)
    assert "C_rf = s.rfactor(C, k_inner, 1)" in str(s.journal)
    assert str(replayed(s, matmul.D, A=matmul.A, B=matmul.B, C=matmul.C, D=matmul.D)) == str(s)


def test_names_that_are_not_unique_or_not_python_become_positions():
    A = te.placeholder((8,), name="T")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="T")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="lambda")
    s = create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s.cache_read(A, "local", [B])
    assert str(s.journal).splitlines() == [
        "s.stages[1].compute_at(s.stages[2], s.stages[2].op.axis[0])",
        "T_local = s.cache_read(s.stages[0].op.output(0), 'local', [s.stages[1].op.output(0)])"]
    assert str(replayed(s, C)) == str(s)


def test_names_do_not_clash(chain):
    s, (i, j) = chain.s, chain.D.op.axis
    io, _ = s[chain.D].split(i, 4)
    s[chain.C].split(chain.C.op.axis[0], 4)
    assert str(s.journal).splitlines()[1] == "i_outer_1, i_inner_1 = s[C].split(s[C].op.axis[0], factor=4)"
    s[chain.D].unroll(io)
    assert str(s.journal).endswith("s[D].unroll(i_outer)")
    s[chain.D].fuse(j)
    assert str(replayed(s, chain.D, A=chain.A, B=chain.B, C=chain.C, D=chain.D)) == str(s)


def test_replay_of_several_outputs():
    A = te.placeholder((8,), name="A")
    P, Q = te.compute((8,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="T")
    R = te.compute((8,), lambda i: P[i] + Q[i], name="R")
    s = create_schedule(R.op)
    first, second = s.cache_write([P, Q], "local")
    s[second].unroll(s[second].op.axis[0])
    s.cache_read(first, "shared", [P.op])
    assert "T_local_v0, T_local_v1 = s.cache_write([" in str(s.journal)
    assert str(replayed(s, R)) == str(s)


def test_replay_of_bind(chain):
    i, j = chain.D.op.axis
    chain.s[chain.D].bind(i, te.thread_axis("threadIdx.x"))
    chain.s[chain.D].bind(j, te.thread_axis((0, 48), "threadIdx.y"))
    assert str(chain.s.journal).splitlines() == [
        "s[D].bind(s[D].op.axis[0], threadIdx_x := te.thread_axis('threadIdx.x'))",
        "s[D].bind(s[D].op.axis[1], threadIdx_y := te.thread_axis((0, 48), 'threadIdx.y'))"]
    assert str(replayed(chain.s, chain.D, D=chain.D)) == str(chain.s)


def test_print_shows_loops_places_and_notes(matmul):
    s = matmul.s
    i, j = matmul.D.op.axis
    s[matmul.C].compute_at(s[matmul.D], i)
    s[matmul.D].vectorize(j)
    s.cache_read(matmul.A, "shared", [matmul.C])
    assert str(s) == """\
schedule of D
  A: placeholder [64, 50] float32
  A.shared: computed at the root, in shared memory
    for ax0 in 0..64
      for ax1 in 0..50
  B: placeholder [50, 32] float32
  C: computed at D, loop i
    for i
      for j
        for k in 0..50 (reduction)
  D: output
    for i in 0..64
      (C is computed here)
      for j in 0..32 (vectorized)"""
    assert repr(s) == "schedule(D)" and repr(s[matmul.C]).startswith("stage(C, compute(C, body=[")


def test_print_of_symbolic_extents():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].split(B.op.axis[0], 16)
    assert str(s[B]) == "B: output\n  for i.outer in 0..(n + 15)//16\n    for i.inner in 0..16"


def test_parameters_of_a_layout_are_no_objects():
    """An axis that was given to a directive that was refused is called as the parameter of a later map is."""
    A = te.placeholder((4, 4), name="A")
    B = te.compute((4, 4), lambda i, j: A[i, j], name="B")
    C = te.compute((4, 4), lambda i, j: B[i, j], name="C")
    s = te.create_schedule(C.op)
    with pytest.raises(ScheduleError):
        s[B].prefetch(B, B.op.axis[1], B.op.axis[1])
    s[B].transform_layout(lambda i, j: [j, i])
    assert not s.journal.objects
    again = te.create_schedule(C.op)
    again.replay(Journal.from_json(s.journal.to_json()))
    assert str(again) == str(s)


def test_one_loop_in_a_list_is_taken_out_of_it():
    A = te.placeholder((12,), name="A")
    B = te.compute((12,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((12,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    (loop,) = s[B].transform_layout(lambda i: [i])
    s[B].parallel(loop)
    assert str(s.journal) == "i, = s[B].transform_layout(lambda i: [i])\ns[B].parallel(i)"
    assert str(replayed(s, C, A=A, B=B, C=C)) == str(s)
    old = Journal([read_directive("i = s[B].transform_layout(lambda i: [i])", "B"), s.journal[1]])
    again = create_schedule(C.op)
    again.replay(old)  # as journals were written before
    assert str(again) == str(s)


def of_columns():
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), "k")
    return A, te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")


@pytest.mark.parametrize("condition, said", [
    (lambda v: v.equal(0), "((tx := te.thread_axis('threadIdx.x', name='tx')).var == 0)"),
    (lambda v: te.all(v >= 0, v < 1), "te.all(((tx := te.thread_axis('threadIdx.x', name='tx')).var >= 0), (tx.var < 1))"),
    (lambda v: v.astype("int64") < te.const(1, "int64"),
     "((tx := te.thread_axis('threadIdx.x', name='tx')).var.astype('int64') < te.const(1, 'int64'))")])
def test_a_thread_axis_whose_variable_is_used_before_it_is_bound(condition, said):
    A, B = of_columns()
    s = create_schedule(B.op)
    tx = te.thread_axis("threadIdx.x", name="tx")
    with pytest.raises(ScheduleError):
        s[B].set_store_predicate(tx.var + 1)  # a name given for what was refused is given again
    s[B].set_store_predicate(condition(tx.var))
    s[B].bind(B.op.reduce_axis[0], tx)
    assert str(s.journal) == f"s[B].set_store_predicate({said})\ns[B].bind(s[B].op.reduce_axis[0], tx)"
    loops = str(tedsl.lower(s, [A, B], simple_mode=True))
    again = create_schedule(B.op)
    again.replay(Journal.from_json(s.journal.to_json()))
    assert str(tedsl.lower(again, [A, B], simple_mode=True)) == loops
    again.undo(2)
    again.replay(s.journal)
    for made in (again, s.copy(), replayed(s, B, A=A, B=B)):
        assert str(tedsl.lower(made, [A, B], simple_mode=True)) == loops


@pytest.mark.parametrize("axis, condition", [
    (lambda: te.thread_axis("threadIdx.x"), lambda v: tir.Select(v > 0, 0, 1).equal(1)),
    (lambda: IterVar(None, te.var("tx"), IterType.THREAD_INDEX, "threadIdx.x"), lambda v: v.equal(0))], ids=["long", "own"])
def test_a_thread_axis_whose_variable_is_kept_as_an_object_is_one_too(axis, condition):
    A, B = of_columns()
    s = create_schedule(B.op)
    tx = axis()
    s[B].set_store_predicate(condition(tx.var))
    s[B].bind(B.op.reduce_axis[0], tx)
    assert "te.thread_axis" not in str(s.journal), "it would be another one"
    loops = str(tedsl.lower(s, [A, B], simple_mode=True))
    again = create_schedule(B.op)
    again.replay(s.journal)
    for made in (again, replayed(s, B, A=A, B=B, **s.journal.objects)):
        assert str(tedsl.lower(made, [A, B], simple_mode=True)) == loops


def test_schedules_as_they_were_after_each_directive():
    A, B = of_columns()
    with tedsl.transform.PassContext(config={"te.keep_schedule_record": True}):
        s = create_schedule(B.op)
    texts = [str(tedsl.lower(s, [A, B]))]
    xo, xi = s[B].split(B.op.axis[0], 2)
    texts.append(str(tedsl.lower(s, [A, B])))
    s[B].unroll(xi)
    texts.append(str(tedsl.lower(s, [A, B])))
    assert s.primitive_record == ["vanilla", "split", "unroll"]
    assert [str(tedsl.lower(one, [A, B])) for one in s.schedule_record] == texts and len(set(texts)) == 3
