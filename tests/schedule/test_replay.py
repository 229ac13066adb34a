"""Journals replayed, written as JSON and read again; directives taken back."""

import json
from pathlib import Path

import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, ScheduleError, TedslError
from tedsl.ir.walk.equal import structural_equal
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.journal import Journal
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.grammar import read_directive


def scheduled(matmul):
    """The classic schedule of a matrix product; the loops that it made."""
    s, C, D = matmul.s, matmul.C, matmul.D
    CL = s.cache_write(C, "local")
    AA = s.cache_read(matmul.A, "global", [CL])
    xo, yo, xi, yi = s[D].tile(*s[D].op.axis, 8, 8)
    s[C].compute_at(s[D], yo)
    s[CL].compute_at(s[C], s[C].op.axis[0])
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], factor=16)
    s[AA].compute_at(s[CL], ko)
    s[D].vectorize(yi)
    s[D].parallel(xo)
    return s


def fresh(matmul):
    return create_schedule(matmul.D.op)


# --- replay -----------------------------------------------------------------------------------------------------------

def test_replay_builds_the_same_schedule(matmul):
    s, twin = scheduled(matmul), fresh(matmul)
    twin.replay(s.journal)
    assert str(twin) == str(s) and twin.journal == s.journal
    assert [d.where for d in twin.journal] == [d.where for d in s.journal], "errors still point at the first program"


def test_replay_of_bind_keeps_one_thread_axis(chain):
    tx = te.thread_axis((0, 8), "threadIdx.x", name="tx")
    for tensor in (chain.C, chain.D):
        chain.s[tensor].bind(tensor.op.axis[0], tx)
    twin = create_schedule(chain.D.op)
    twin.replay(chain.s.journal)
    bound = [stage.iter_var_attrs[stage.leaf_iter_vars[0]].bind_thread for stage in (twin[chain.C], twin[chain.D])]
    assert bound[0] is bound[1] is not tx and bound[0].name == "tx" and bound[0].thread_tag == "threadIdx.x"
    assert str(chain.s.journal).splitlines()[1] == "s[D].bind(s[D].op.axis[0], tx)"


def test_factors_may_be_expressions_over_shapes():
    def program():
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        return n, B, create_schedule(B.op)

    n, B, s = program()
    s[B].split(B.op.axis[0], factor=te.max(n // 4, 1))
    assert "factor=te.max((n // 4), 1)" in str(s.journal)
    _, _, twin = program()
    twin.replay(Journal.from_json(s.journal.to_json()))
    assert str(twin) == str(s)


def test_a_refused_directive_takes_back_those_before_it(matmul, state):
    journal = scheduled(matmul).journal
    twin = fresh(matmul)
    before = state(twin)
    wrong = read_directive("s[D].split(i_outer, factor=0)", "D", journal[2].where)
    with pytest.raises(ScheduleError) as caught:
        twin.replay(Journal([*journal[:5], wrong]))
    assert "replay of directive 6, s[D].split(i_outer, factor=0)  (test_replay.py:" in str(caught.value)
    assert "the factor must be at least 1" in str(caught.value)
    assert state(twin) == before


@pytest.mark.parametrize("text, words", [
    ("s[Nobody].compute_root()", "refers to Nobody"),
    ("s[D].split(s[D].op.axis[9], factor=8)", "has 2 entries here, and number 9, counted from 0"),
    ("a, b = s[D].fuse(s[D].op.axis[0], s[D].op.axis[1])", "it makes 1 and names 2"),
    ("s[D].split()", "missing"),
    ("__import__('os').system('true')", "nothing that a journal may say"),
    ("s.__class__.__init__(s)", "s.__class__ is nothing that a journal may say"),
    ("s[D].state.restart(s)", "s[D].state is nothing that a journal may say"),
    ("s[D].split(s[D].op.axis[0], factor='a' * 1000000000)", "'a' is not a number"),
    ("s[D].split(s[D].op.axis[0], factor=(lambda: 8)())", "nothing that a journal may say"),
    ("s[D].split(s[D].op.axis[0], **{})", "written out"),
    ("s[D].op.axis[0]", "not a call"), ("import os", "not one call"), ("", "not one call"), ("s[D].split(", "not Python"),
    ("s.copy()", "copy is not a directive"), ("s[D].split" + "(" * 5000, "not Python"),
])
def test_texts_that_no_journal_writes(matmul, text, words):
    s = fresh(matmul)
    with pytest.raises(TedslError) as caught:
        s.replay(Journal([read_directive(text, "D")]))
    assert words in str(caught.value) and len(s.journal) == 0


def test_replay_takes_a_journal(chain):
    with pytest.raises(ArgumentTypeError, match="replay takes a journal, not str"):
        chain.s.replay("s[D].compute_root()")


# --- JSON -------------------------------------------------------------------------------------------------------------

def test_json_round_trip(matmul):
    s = scheduled(matmul)
    text = s.journal.to_json()
    again = Journal.from_json(text)
    assert again == s.journal and again.to_json() == text and again[0].where == s.journal[0].where
    assert Journal.from_json(text.encode()) == again
    twin = fresh(matmul)
    twin.replay(again)
    assert str(twin) == str(s)
    first = json.loads(text)["directives"][0]
    assert first["text"] == "C_local = s.cache_write(C, 'local')" and first["directive"] == "cache_write"
    assert Path(first["file"]).name == "test_replay.py" and first["line"] > 1


RIGHT = {"directive": "compute_root", "stage": "D", "text": "s[D].compute_root()"}


def whole(**changed):
    return json.dumps({"format": "tedsl journal", "version": 1, "directives": [RIGHT], **changed})


@pytest.mark.parametrize("text, words", [
    ("", "not JSON"), ("nonsense", "not JSON"), ("[" * 100_000, "not JSON"), ("[]", "not an object"), ("{}", "not an object"),
    (b"\xff\xfe", "not JSON"),
    (whole(version=2), "version 2"), (whole(version=True), "version True"), (whole(directives={}), "not a list"),
    (whole(directives=[1]), "directive 1 is not an object"), (whole(directives=[{}]), "no 'directive'"),
    (whole(directives=[RIGHT, {**RIGHT, "text": 5}]), 'directive 2: "text" is of type int, not str'),
    (whole(directives=[{**RIGHT, "line": "1"}]), '"line" is of type str'),
    (whole(directives=[{**RIGHT, "run": "x"}]), "an entry 'run'"),
    (whole(directives=[{**RIGHT, "text": "s[D].explode()"}]), "no directive explode"),
    (whole(directives=[{**RIGHT, "directive": "split"}]), "called 'split' there and calls compute_root"),
    (whole(directives=[{**RIGHT, "text": "import os"}]), "not one call"),
    (whole(directives=[{**RIGHT, "text": "s[D].compute_root()" + " " * 20_000}]), "characters"),
])
def test_broken_json_is_refused(text, words):
    with pytest.raises(ArgumentError) as caught:
        Journal.from_json(text)
    assert words in str(caught.value)


def test_from_json_reads_text():
    with pytest.raises(ArgumentTypeError, match="reads a str, not list"):
        Journal.from_json([])


def test_slices_of_a_journal_are_journals(matmul):
    journal = scheduled(matmul).journal
    assert isinstance(journal[:2], Journal) and isinstance(journal[0], Directive) and len(journal[:2]) == 2
    assert repr(journal[:1]) == "<journal of 1 directive; print it, or s.replay it>"


def test_objects_stay_in_the_process(chain):
    """An argument that Python text cannot say is kept by its name; JSON names the directive that has it."""
    n = te.size_var("n")
    condition = tedsl.tir.Select(n > 9, n, 0) > 7
    chain.s[chain.D].specialize(condition)
    assert chain.s.journal.objects == {"GT": condition}
    with pytest.raises(ArgumentError, match=r"s\[D\]\.specialize\(GT\).* GT is an object of this process"):
        chain.s.journal.to_json()


# --- undo -------------------------------------------------------------------------------------------------------------

def test_undo_step_by_step_returns_to_the_start(matmul, state):
    """After each undo the schedule is what it was, handles and all."""
    plain = fresh(matmul)
    states = []
    steps = scheduled(matmul).journal
    for directive in steps:
        states.append(state(plain))
        plain.replay(Journal([directive]))
    handles = {stage.name: stage for stage in plain.stages}
    for before in reversed(states):
        plain.undo()
        assert state(plain) == before
        assert all(handles[stage.name] is stage for stage in plain.stages)
    assert len(plain.journal) == 0


def test_undone_directives_can_be_applied_again(matmul):
    s = scheduled(matmul)
    text = str(s)
    undone = s.undo(4)
    assert [d.name for d in undone] == ["split", "compute_at", "vectorize", "parallel"]
    s.replay(undone)
    assert str(s) == text


def test_loops_and_tensors_of_before_are_valid_again(chain):
    s, i = chain.s, chain.D.op.axis[0]
    io, ii = s[chain.D].split(i, 8)
    s[chain.D].fuse(io, ii)
    s.undo()
    s[chain.D].vectorize(ii)
    s.undo(2)
    s[chain.D].split(i, 4)
    s.cache_write(chain.C, "local")
    s.undo()
    s[chain.C].compute_at(s[chain.D], s[chain.D].leaf_iter_vars[0])


def test_a_stage_that_was_taken_back_says_so(chain):
    s = chain.s
    CL = s.cache_write(chain.C, "local")
    handle = s[CL]
    s.undo()
    with pytest.raises(ScheduleError, match=r"C\.local was made by a directive that undo took back"):
        handle.split(handle.op.axis[0], 4)
    with pytest.raises(ScheduleError, match="not part of this schedule"):
        s[CL]


@pytest.mark.parametrize("n", [-1, 3, True, "1", 1.0])
def test_undo_of_what_is_not_there(chain, n):
    chain.s[chain.C].compute_inline()
    with pytest.raises(ArgumentError, match="this schedule has 1"):
        chain.s.undo(n)


def test_a_copy_shares_nothing_that_changes(matmul, state):
    s = scheduled(matmul)
    before = state(s)
    twin = s.copy()
    for mine, theirs in zip((s.state, *s.state.stages), (twin.state, *twin.state.stages)):
        for name, value in vars(mine).items():
            assert type(value) not in (list, dict, set) or value is not getattr(theirs, name), f"{name} is shared"
    twin.undo(len(twin.journal))
    assert str(twin) == str(fresh(matmul)) and state(s) == before
    s.undo(3)
    assert len(twin.journal) == 0 and len(s.journal) == len(before[3].splitlines()) - 3


@pytest.mark.parametrize("where", ["shape of an output", "no shape"])
def test_conditions_over_variables_that_no_input_has(where):
    n, flag = te.var("n"), te.var("flag")
    A = te.placeholder((8,), name="A")
    C = te.compute((n,), lambda i: A[te.min(i, 7)], name="C")
    s = te.create_schedule(C.op)
    s[C].specialize(n > 3 if where == "shape of an output" else flag > 3)
    again = te.create_schedule(C.op)
    again.replay(s.journal)
    assert str(again.journal) == str(s.journal)
    if where == "no shape":  # from a file, nothing would say what flag is
        for journal in (s.journal, s.journal[:], s.journal + Journal(), Journal() + s.journal, s.journal * 1, s.copy().undo()):
            with pytest.raises(ArgumentError, match=r"cannot be written as JSON: flag is a variable that is in no shape"):
                journal.to_json()
    else:
        te.create_schedule(C.op).replay(Journal.from_json(s.journal.to_json()))
    assert str(tedsl.lower(again, [A, flag, n, C])) == str(tedsl.lower(s, [A, flag, n, C]))


# --- what a journal refers to on another schedule ----------------------------------------------------------------------

def _extern(A, n):
    return te.extern((n, 8), [A], lambda ins, outs: tedsl.tir.call_packed("f", ins[0], outs[0], n), name="X", dtype="float32")


def _filled(A, n):
    def fill(ins, outs):
        ib = tedsl.tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        more = ib.let("n", n + 1)  # a variable of that name too, and none of the program's
        with ib.for_range(0, n, name="n") as i, ib.for_range(0, 8, name="j") as j:
            b[i * 8 + j] = a[i * 8 + j] * more.astype("float32")
        return ib.get()

    return te.extern((n, 8), [A], fill, name="X", dtype="float32")


def _script(A, n):
    @te.hybrid.script
    def script(a):
        b = output_tensor((a.shape[0], 8), "float32")  # noqa: F821
        for i in range(a.shape[0]):
            for j in range(8):
                b[i, j] = a[i, j] + 1.0
        return b

    return script(A)


@pytest.mark.parametrize("made", [_extern, _filled, _script])
@pytest.mark.parametrize("directive", [
    lambda st, n: st.specialize(n % 4 == 0), lambda st, n: st.split(st.op.axis[0], n // 2),
    lambda st, n: st.specialize(tedsl.tir.Select(n > 9, n, 0) > 7)], ids=["size", "factor", "kept object"])
def test_sizes_beside_statements(made, directive):
    """A statement was taken for a list of formulas: 'For' object is not iterable."""
    def program():
        n = te.size_var("n")
        X = made(te.placeholder((n, 8), name="A"), n)
        Z = te.compute((n, 8), lambda y, x: X[y, x] * 3.0, name="Z")
        return te.create_schedule(Z.op), Z, n

    s, Z, n = program()
    directive(s[Z], n)
    for again in (te.create_schedule(Z.op), program()[0]):
        again.replay(s.journal)
        assert again.journal == s.journal and str(again) == str(s)


def test_a_variable_that_only_a_statement_has():
    def program(name):
        flag = te.var(name)
        A = te.placeholder((8,), name="A")
        X = te.extern((8,), [A], lambda ins, outs: tedsl.tir.call_packed("f", ins[0], outs[0], flag), name="X")
        C = te.compute((8,), lambda i: X[i] + 1.0, name="C")
        return te.create_schedule(C.op), C, flag

    s, C, flag = program("flag")
    s[C].specialize(flag > 3)
    other, C2, flag2 = program("flag")
    other.replay(Journal.from_json(s.journal.to_json()))
    assert other[C2].versions[0].condition.a is flag2
    with pytest.raises(ArgumentError, match="the journal refers to flag, and nothing here has that name"):
        program("other")[0].replay(Journal.from_json(s.journal.to_json()))


def test_what_was_undone_of_a_version_is_applied_again():
    """The version that the schedule knew already was its data, no handle with directives."""
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    version = s[C].specialize(n % 4 == 0)
    version.split(C.op.axis[0], 4)
    text = str(s)
    twin = s.copy()
    undone = s.undo()
    s.replay(undone)
    assert str(s) == text and version.leaf_iter_vars == s[C].versions[0].leaf_iter_vars and len(version.leaf_iter_vars) == 2
    twin.undo()
    twin.replay(undone)
    assert str(twin) == text and len(twin[C].versions[0].leaf_iter_vars) == 2


@pytest.mark.parametrize("condition", [
    lambda tx: tedsl.tir.Not(tx.var > 0), lambda tx: tedsl.tir.all((tx.var & 1).equal(0), tx.var < 1),
    lambda tx: tedsl.tir.Select(tx.var > 0, 0, 1).equal(1)], ids=["not", "bits", "select"])
def test_a_thread_axis_that_is_made_anew_is_that_of_the_conditions_kept(condition):
    A = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    tx = te.thread_axis("threadIdx.x")
    s = te.create_schedule(B.op)
    s[B].bind(k, tx)
    s[B].set_store_predicate(condition(tx))
    want = str(tedsl.lower(s, [A, B]))

    def again(*journals, on=None):
        made = on or te.create_schedule(B.op)
        for journal in journals:
            made.replay(journal)
        assert str(tedsl.lower(made, [A, B])) == want
        return made

    twin = again(s.journal)
    again(twin.journal)
    again(s.journal[:1], s.journal[1:])
    again(s.journal[:1] + s.journal[1:])
    copy = s.copy()
    undone = copy.undo()
    again(undone, on=copy)
    again(s.journal[:1], undone)


@pytest.mark.parametrize(("condition", "text"), [
    (lambda n: ~(n > 3), "(~(n > 3))"), (lambda n: ~(n.equal(3)), "(~(n == 3))"),
    (lambda n: (n & 3).equal(0), "((n & 3) == 0)"),
    (lambda n: ~(te.any(n > 3, n < 1)), "(~te.any((n > 3), (n < 1)))"), (lambda n: ((n | 1) ^ 2) > 5, "(((n | 1) ^ 2) > 5)"),
    (lambda n: (~(n >> 2)) > 5, "((~(n >> 2)) > 5)")])
def test_not_and_bits_are_written(condition, text):
    n = te.size_var("n")
    C = te.compute((n,), lambda i: i * 2, name="C")
    s, again = te.create_schedule(C.op), te.create_schedule(C.op)
    s[C].specialize(condition(n))
    assert str(s.journal) == f"C_special = s[C].specialize({text})"
    again.replay(Journal.from_json(s.journal.to_json()))
    assert structural_equal(again[C].versions[0].condition, s[C].versions[0].condition)


def test_a_constant_keeps_its_dtype(chain):
    """The value of a pragma was written as 4 and read as an int32."""
    s, again = chain.s, te.create_schedule(chain.D.op)
    s[chain.D].pragma(chain.D.op.axis[0], "auto_unroll_max_step", te.const(4, "int64"))
    s[chain.C].split(chain.C.op.axis[0], te.const(8, "int64"))
    assert "te.const(4, 'int64')" in s.journal[0].text
    again.replay(s.journal)
    assert str(again) == str(s) and str(again.journal) == str(s.journal)
    assert again[chain.C].relations[0].factor.dtype is s[chain.C].relations[0].factor.dtype


def test_any_failure_takes_a_replay_back(chain, state, monkeypatch):
    """Only errors of ours did: a bug, or Ctrl-C, left half of the journal."""
    s = chain.s
    s[chain.B].compute_inline()
    s[chain.C].parallel(chain.C.op.axis[0])
    other = te.create_schedule(chain.D.op)
    before = state(other)
    monkeypatch.setattr(type(other[chain.C]), "parallel", lambda stage, loop: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        other.replay(s.journal)
    assert state(other) == before


def test_a_fault_in_finding_what_a_name_means_is_not_the_journals(chain, monkeypatch):
    s = chain.s
    s[chain.B].compute_inline()
    monkeypatch.setattr("tedsl.schedule.record.replay._Player.lookup", lambda self, name: len(3))
    with pytest.raises(TypeError, match=r"^object of type 'int' has no len\(\)$"):
        te.create_schedule(chain.D.op).replay(s.journal)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, ScheduleError("unroll", "C", "planted", loops=())])
def test_a_directive_that_fails_half_way_changes_nothing(chain, state, monkeypatch, failure):
    s = chain.s
    outer, _ = s[chain.C].split(chain.C.op.axis[0], 4)
    s[chain.B].compute_at(s[chain.C], outer)
    before = state(s)

    def careless(stage, loop):
        stage.leaf_iter_vars = stage.leaf_iter_vars[:-1]
        stage.schedule.stages[1].attach_stage = None
        raise failure

    monkeypatch.setattr("tedsl.schedule.stage.unroll", careless)
    with pytest.raises(failure if isinstance(failure, type) else type(failure)):
        s[chain.C].unroll(outer)
    assert state(s) == before
    s[chain.C].parallel(outer)


def test_a_directive_that_cannot_be_recorded_is_not_applied(chain, state, monkeypatch):
    """Ctrl-C, say, between the directive and its entry in the journal."""
    s = chain.s
    before = state(s)
    monkeypatch.setattr("tedsl.schedule.record.history.History.take", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        s[chain.C].split(chain.C.op.axis[0], 4)
    assert state(s) == before


@pytest.mark.parametrize("call, words", [
    (lambda st, i: st.split(), r"s\[C\]\.split: the argument 'parent' is missing(.|\n)*called as "
                               r"s\[C\]\.split\(parent, factor=None, nparts=None, \*, tail='guard', lines_of=None\)"),
    (lambda st, i: st.vectorize(i, 4), r"s\[C\]\.vectorize takes at most 1 argument by position, and got 2"),
    (lambda st, i: st.split(i, by=4), r"s\[C\]\.split: there is no argument named 'by'"),
    (lambda st, i: st.schedule.cache_read(st.op.output(0)), r"s\.cache_read: the arguments 'scope' and 'readers' are missing")])
def test_a_call_with_other_arguments_than_a_directive_has(chain, call, words):
    with pytest.raises(ArgumentTypeError, match=words):
        call(chain.s[chain.C], chain.C.op.axis[0])
    assert not chain.s.journal


def test_a_directive_that_fails_on_a_normal_schedule_leaves_it_normal(chain, state):
    chain.s[chain.B].compute_inline()
    s = chain.s.normalize()
    before = state(s)
    with pytest.raises(ScheduleError):
        s[chain.D].split(s[chain.D].leaf_iter_vars[0], 0)
    assert state(s) == before
    s[chain.D].split(s[chain.D].leaf_iter_vars[0], 4)
    s.undo()
    assert [stage.attach_type for stage in s.stages][1] == 2, "as it was when its journal was as long"
