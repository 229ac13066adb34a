"""Mistakes of the arithmetic that random programs or users found, each by name."""

from tedsl.arith.inequality import product_of
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import SizeVar, Var


def test_int64_loops_over_int32_sizes_multiply():
    """A product of an int64 loop with an int32 size was built without a cast and ended in a DTypeError."""
    assert product_of([Var("i", dtype("int64")), SizeVar("n", dtype("int32"))], dtype("int64")).dtype == "int64"
