"""Long sequences of loops are written as functions of their own."""

import re

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.codegen.llvm.outlined.parts import PART

LONG = 2 * PART + 5


def built(body, *, inputs=1):
    """Builds what `body` writes with an ir_builder from inputs of 8 numbers into an output of LONG rows of 8."""
    arrays = [te.placeholder((8,), name=f"A{k}") for k in range(inputs)]

    def statement(ins, outs):
        ib = tir.ir_builder.create()
        body(ib, *(ib.buffer_ptr(x) for x in ins), ib.buffer_ptr(outs[0]))
        return ib.get()

    out = te.extern((LONG, 8), arrays, statement, name="B", dtype="float32")
    return tedsl.build(te.create_schedule(out.op), [*arrays, out])


def rows(ib, x, y, value, first=0):
    for k in range(first, LONG):
        with ib.for_range(0, 8, name="i") as i:
            y[k, i] = value(k, x[i])


def test_a_long_sequence_is_written_in_parts():
    f = built(lambda ib, x, y: rows(ib, x, y, lambda k, v: v * float(k)))
    x, y = np.arange(8, dtype="f"), np.zeros((LONG, 8), "f")
    f(x, y)
    np.testing.assert_array_equal(y, np.outer(np.arange(LONG), x).astype("f"))
    assert f.get_source("ll").count("call i32 @default_function.kernel.part") == 3


def test_parts_use_variables_and_memory_of_the_loops_around_them():
    def body(ib, x, y):
        sums = ib.allocate("float32", 8, name="sums", scope="global")
        with ib.for_range(0, 8, name="j") as j:
            sums[j] = x[j] * 2.0
        with ib.for_range(0, 3, name="outer") as outer:
            rows(ib, sums, y, lambda k, v: v + float(k) + outer.astype("float32"))

    x, y = np.arange(8, dtype="f"), np.zeros((LONG, 8), "f")
    f = built(body)
    f(x, y)
    np.testing.assert_array_equal(y, x * 2 + np.arange(LONG, dtype="f")[:, None] + 2)
    assert re.search(r"define internal i32 @default_function\.kernel\.part.*ptr noalias align 64 %sums", f.get_source("ll"))


def test_a_part_that_fails_ends_the_kernel():
    """The exception of a Python function leaves the part that calls it and the kernel: the loops after it do not run."""
    def fails():
        raise ValueError("from the part")

    tedsl.register_func("test_parts.fails", fails, override=True)

    def body(ib, x, y):
        rows(ib, x, y, lambda k, v: v, first=LONG - 1)
        ib.emit(tir.call_packed("test_parts.fails"))
        rows(ib, x, y, lambda k, v: v)

    y = np.zeros((LONG, 8), "f")
    f = built(body)
    with pytest.raises(ValueError, match="from the part"):
        f(np.ones(8, "f"), y)
    assert y[-1].all() and not y[:-1].any()
    first_part = f.get_source("ll").split("define internal i32 @default_function.kernel.part0")[1].split("\n}\n")[0]
    assert "tedsl_call_packed" in first_part


def test_a_function_that_returns_early_is_written_whole():
    def body(ib, x, y):
        rows(ib, x, y, lambda k, v: v)
        with ib.if_scope(x[0] > 0.0):
            ib.emit(tir.ret(0))
        rows(ib, x, y, lambda k, v: v + 1.0, first=LONG - 1)

    f = built(body)
    x, y = np.ones(8, "f"), np.zeros((LONG, 8), "f")
    f(x, y)
    np.testing.assert_array_equal(y, np.ones_like(y))
    assert "kernel.part" not in f.get_source("ll")
