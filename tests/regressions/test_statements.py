"""Statements that users make by hand."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import DTypeError, LoweringError


def test_python_numbers_become_constants_of_statements():
    """tir.For(i, 0, 10, ...) and tir.Evaluate(0) kept the ints and failed later, without a word."""
    i = tir.Var("i", "int64")
    loop = tir.For(i, 0, 10, 0, tir.Evaluate(0))
    assert (loop.min.dtype, loop.extent.value, loop.body.value.dtype) == ("int64", 10, "int32")
    assert tir.LetStmt(i, 3, loop).value.dtype == "int64"
    assert "for (i: int64, 0i64, 10i64)" in str(loop)


def test_a_loop_variable_after_its_loop():
    """LLVM was the first to notice."""

    def statements(ins, outs):
        builder = tir.ir_builder.create()
        out = builder.buffer_ptr(outs[0])
        with builder.for_range(0, 4, name="i") as i:
            pass
        out[i] = 1.0
        return builder.get()

    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], statements, name="B", dtype="float32")
    with pytest.raises(LoweringError, match="store to B uses the variable i, which nothing binds here"):
        tedsl.lower(te.create_schedule(B.op), [A, B])


def test_a_loop_as_long_as_a_number():
    builder = tir.ir_builder.create()
    number = builder.allocate("float32", (1,), name="number")
    with pytest.raises(DTypeError, match="the condition of a while loop is a scalar bool, not float32"), \
            builder.while_loop(number[0]):
        number[0] = 0.0
