"""Statements that users make by hand."""

from tedsl import tir


def test_python_numbers_become_constants_of_statements():
    """tir.For(i, 0, 10, ...) and tir.Evaluate(0) kept the ints and failed later, without a word."""
    i = tir.Var("i", "int64")
    loop = tir.For(i, 0, 10, 0, tir.Evaluate(0))
    assert (loop.min.dtype, loop.extent.value, loop.body.value.dtype) == ("int64", 10, "int32")
    assert tir.LetStmt(i, 3, loop).value.dtype == "int64"
    assert "for (i: int64, 0i64, 10i64)" in str(loop)
