"""Mistakes of the arithmetic that random programs or users found, each by name."""

import tedsl
from tedsl import te
from tedsl.arith.inequality import product_of
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import SizeVar, Var


def test_int64_loops_over_int32_sizes_multiply():
    """A product of an int64 loop with an int32 size was built without a cast and ended in a DTypeError."""
    assert product_of([Var("i", dtype("int64")), SizeVar("n", dtype("int32"))], dtype("int64")).dtype == "int64"


def test_one_schedule_has_one_text():
    """Facts and factors were taken in the order of their addresses: a proof was found in one run and missed in the next."""
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    B = te.compute((n, 8), lambda i, j: A[i, j] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], 8)
    s[B].split(B.op.axis[1], nparts=4, tail="partition")
    kept, texts = [], set()
    for size in range(40):  # what is kept moves the addresses
        texts.add(str(tedsl.lower(s, [A, B])))
        kept.append([object() for _ in range(97 * size)])
    assert len(texts) == 1
