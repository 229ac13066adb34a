"""Loops become copies of their body."""

import pytest

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import SizeVar, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AttrStmt, BufferStore, For, ForKind, LetStmt, SeqStmt
from tedsl.passes.config import UnrollConfig
from tedsl.passes.loops.unroll_loops import unroll_loops
from tests.passes.programs import UNROLLED, Function, allocate, body_text, check, imm, loop, seq

I, J, K = Var("i"), Var("j"), Var("k")


def stored(f, index=I):
    return f.store("A", index, f.load("B", index))


def test_an_unrolled_loop_becomes_a_sequence():
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 3, stored(f), UNROLLED, low=2))
    assert body_text(check(unroll_loops, before)) == "\n".join(f"A_1[{k}] = (float32*)B_1[{k}]" for k in (2, 3, 4))


def test_a_serial_loop_is_left_alone():
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 3, stored(f)))
    assert unroll_loops(before) is before


def test_copies_bind_their_own_variables(golden):
    f = Function(A=(8,), B=(8,))
    T, v = Var("T", f.data("A").type_annotation), Var("v")
    inner = allocate(T, 4, loop(J, 2, LetStmt(v, build.add(build.mul(I, 2), J), stored(f, v))))
    check(unroll_loops, f.func(loop(I, 4, inner, UNROLLED)), golden=golden)


def test_a_symbolic_extent_is_refused_with_the_way_out():
    n = SizeVar("n")
    f = Function(A=(n,), B=(n,))
    with pytest.raises(LoweringError, match=r"loop i is marked unroll but its extent n(.|\n)*hint: split it by a constant"):
        unroll_loops(f.func(loop(I, n, stored(f), UNROLLED)))


@pytest.mark.parametrize("kind, options", [(UNROLLED, UnrollConfig()), (ForKind.SERIAL, UnrollConfig(auto_max_step=2))])
def test_an_extent_that_simplifies_to_a_constant(kind, options):
    n = SizeVar("n")
    f = Function(A=(n + 2,), B=(n + 2,))
    before = f.func(For(I, n, build.sub(build.add(n, 2), n), kind, stored(f)))
    assert body_text(unroll_loops(before, options=options)).count("A_1[") == 2


def test_an_enormous_loop_is_refused():
    f = Function(A=(1 << 20,), B=(1 << 20,))
    with pytest.raises(LoweringError, match="makes 1048576 statements"):
        unroll_loops(f.func(loop(I, 1 << 20, stored(f), UNROLLED)))


def test_the_pragma_unrolls_short_loops(golden):
    f = Function(A=(64,), B=(64,))
    nest = loop(I, 8, loop(J, 4, stored(f, build.add(build.mul(I, 4), J))))
    before = f.func(AttrStmt(StringImm("scope"), "pragma_auto_unroll_max_step", imm(16), nest))
    check(unroll_loops, before, golden=golden)


def test_explicit_false_only_marks(golden):
    f = Function(A=(8,), B=(8,))
    marked = AttrStmt(StringImm("scope"), "pragma_unroll_explicit", imm(0), loop(I, 4, stored(f)))
    before = f.func(AttrStmt(StringImm("scope"), "pragma_auto_unroll_max_step", imm(16), marked))
    check(unroll_loops, before, golden=golden)


@pytest.mark.parametrize("options, copies", [
    (UnrollConfig(auto_max_step=3), 1), (UnrollConfig(auto_max_step=4), 4), (UnrollConfig(auto_max_extent=4), 4),
    (UnrollConfig(auto_max_extent=3), 1)])
def test_the_options_decide_about_serial_loops(options, copies):
    f = Function(A=(8,), B=(8,))
    assert body_text(check(unroll_loops, f.func(loop(I, 4, stored(f))), options=options)).count("A_1[") == copies


def test_loops_around_loops_that_stay_are_not_unrolled_by_steps():
    n = SizeVar("n")
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 2, loop(J, n, stored(f, I))), n)
    assert unroll_loops(before, options=UnrollConfig(auto_max_step=100)) is before


def test_sequences_count_all_their_statements():
    f = Function(A=(8,), B=(8,))
    two = loop(I, 4, seq(stored(f), f.store("B", I, 1)))
    assert unroll_loops(f.func(two), options=UnrollConfig(auto_max_step=7)).body is two
    check(unroll_loops, f.func(two), options=UnrollConfig(auto_max_step=8))


def test_stores_to_buffers_count_as_stores():
    A = decl_buffer((8,), name="A")
    func = PrimFunc((A,), loop(I, 8, BufferStore(A, imm(1.0, "float32"), (I,))))
    assert unroll_loops(func) is func
    assert isinstance(unroll_loops(func, options=UnrollConfig(auto_max_step=8)).body, SeqStmt)
