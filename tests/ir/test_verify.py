"""The verifier finds each kind of broken program and says where it is."""

import pytest

from tedsl.errors import InternalError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import BufferLoad, Call, FloorDiv, IntImm, Let, Load, Not, Ramp, StringImm, Var, pointer_var
from tedsl.ir.iters import Range
from tedsl.ir.node import set_field
from tedsl.ir.ops import Op
from tedsl.ir.stmt import Allocate, BufferRealize, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, Store, seq
from tedsl.ir.verify import verify
from tedsl.ir.walk.substitute import fresh_copy
from tests.ir.programs import F32, function, loop, row_sum, vector_buffer

i, x = Var("i"), Var("x")
A = vector_buffer("A", 8)
ONE = build.const(1.0)


def broken(node, **fields):
    """`node` with fields that its constructor would refuse."""
    made = node.replace()
    for name, value in fields.items():
        set_field(made, name, value)
    return made


def test_good_programs_pass():
    verify(row_sum(), flat=True)
    verify(function(loop(i, 8, BufferStore(A, BufferLoad(A, (i,)), (i,))), A), flat=False)
    verify(function(loop(i, 8, Store(A.data, Let(x, i, Load("float32", A.data, x)), i)), A), flat=False)


def test_a_copy_with_fresh_binders_passes_and_the_same_statement_twice_does_not():
    func = row_sum()
    verify(func.with_body(seq(func.body, fresh_copy(func.body))), flat=True)
    with pytest.raises(InternalError, match=r"allocate B binds the variable B, which is bound elsewhere\n  at: statement 1"):
        verify(func.with_body(seq(func.body, func.body)), flat=True)


LOAD = Load("float32", A.data, i)
CASES = {
    "uses the variable x, which nothing binds here": Store(A.data, ONE, x),
    "uses the variable P": Store(pointer_var("P", F32), ONE, i),
    "Add of float32 and int32": Store(A.data, broken(build.add(LOAD, ONE), b=i), i),
    "FloorDiv of float32": Store(A.data, FloorDiv(LOAD, ONE), i),
    "has dtype int8": Evaluate(broken(build.add(i, 1), dtype=dtype("int8"))),
    "the condition of if is int32": broken(IfThenElse(build.less(i, 3), Evaluate(i)), condition=i),
    "Not of int32": Evaluate(broken(Not(build.less(i, 3)), a=i)),
    "through a pointer to float32": Store(A.data, build.const(1.0, "float64"), i),
    "at an index of int32x4": broken(Store(A.data, ONE, i), index=Ramp(i, build.const(1), 4)),
    "under a predicate of int32": broken(Store(A.data, ONE, i), predicate=i),
    "let x: int32 of float32": LetStmt(x, LOAD, Evaluate(x)),
    "for k: int32 from int32, extent int64": For(Var("k"), build.const(0), build.const(8, "int64"), 0, Evaluate(i)),
    "for k: its variable is float32":
        broken(For(Var("j"), build.const(0), build.const(8), 0, Evaluate(i)), loop_var=Var("k", "float32")),
    "tir.fma of 1 arguments": Evaluate(Call("float32", Op.get("tir.fma"), (LOAD,))),
    "exp of int32 is int32": Evaluate(Call("int32", Op.get("tir.exp"), (i,))),
    "shift_left of float32, float32": Evaluate(Call("float32", Op.get("tir.shift_left"), (LOAD, LOAD))),
    "if_then_else of bool, float32, int32 is int32":
        Evaluate(Call("int32", Op.get("tir.if_then_else"), (build.less(i, 3), LOAD, i))),
    "shift_right of int32, int32 is int64": Evaluate(Call("int64", Op.get("tir.shift_right"), (i, i))),
    "without a function's name": Evaluate(Call("int32", Op.get("tir.call_extern"), (i,))),
    "for i binds the variable i": loop(i, 2, Evaluate(i)),
    "allocate B is float32": Allocate(pointer_var("B", F32), F32, (LOAD,), build.true(), Evaluate(i)),
    "in a function of flat memory": BufferStore(A, ONE, (i,)),
}


@pytest.mark.parametrize("words", CASES, ids=lambda w: w.replace(" ", "-"))
def test_broken_programs(words):
    with pytest.raises(InternalError) as caught:
        verify(function(loop(i, 8, CASES[words]), A), flat=True)
    assert words in str(caught.value) or words.replace("allocate B is", "allocate B") in str(caught.value)
    assert "at: for i" in str(caught.value)


@pytest.mark.parametrize("words, body", [
    ("tir.ret inside of the loop i, which is parallel", loop(i, 8, Evaluate(build.call("tir.ret", i)), ForKind.PARALLEL)),
    ("returns int32, and tir.ret of float32", seq(Evaluate(build.call("tir.ret", i)), Evaluate(build.call("tir.ret", ONE)))),
    ("tir.ret is used as a value", Evaluate(build.add(build.call("tir.ret", build.const(1)), 1))),
    ("ret of int32 is float32: its dtype is that", Evaluate(Call("float32", Op.get("tir.ret"), (build.const(1),)))),
])
def test_returns_stand_where_a_function_can_end(words, body):
    with pytest.raises(InternalError, match=words):
        verify(function(body if isinstance(body, For) else loop(i, 8, body), A), flat=True)


def test_a_variable_is_bound_within_its_loop_only():
    k = Var("k")
    with pytest.raises(InternalError, match="uses the variable k"):
        verify(function(seq(loop(k, 3, Evaluate(k)), Store(A.data, ONE, k)), A), flat=True)
    with pytest.raises(InternalError, match="uses the variable x"):
        verify(function(loop(i, 3, Evaluate(build.add(Let(x, i, build.add(x, 1)), x))), A), flat=True)


def test_a_buffer_is_a_parameter_or_realized():
    T = decl_buffer((8,), "float32", "T")
    inner = loop(i, 8, BufferStore(T, ONE, (i,)))
    verify(function(BufferRealize(T, (Range(0, 8),), build.true(), inner), A), flat=False)
    with pytest.raises(InternalError, match="buffer T is neither a parameter nor realized"):
        verify(function(inner, A), flat=False)


def test_deep_and_long_programs():
    deep = i
    for _ in range(10_000):
        deep = build.add(build.mul(deep, 3), 1)
    called = [Evaluate(Call("int32", "tir.call_extern", (StringImm("f"), i))) for _ in range(10_000)]
    verify(function(loop(i, 2, seq(Store(A.data, ONE, deep), *called)), A), flat=True)


def test_the_parameters_themselves():
    func = function(Evaluate(IntImm(dtype("int32"), 0)), A)
    with pytest.raises(InternalError, match="which is not a parameter"):
        verify(func.replace(params=()), flat=True)
