"""Attributes of hand-written statements, and what the builder takes: refused where they are written."""

import pytest

from tedsl import te, tir
from tedsl.errors import ArgumentTypeError, DTypeError


@pytest.mark.parametrize("key", ["thread_extent", "virtual_thread"])
def test_threads_are_about_a_thread_axis(key):
    ib = tir.ir_builder.create()
    for node in (5, te.var("v")):
        with pytest.raises(ArgumentTypeError, match=f"{key}.*thread axis(.|\n)*te.thread_axis"):
            ib.scope_attr(node, key, 4)
        with pytest.raises(ArgumentTypeError, match=f"{key}.*thread axis"):
            tir.AttrStmt(node, key, tir.IntImm("int32", 4), tir.Evaluate(0))
    with pytest.raises(DTypeError, match="is a number of threads, not handle"):
        tir.AttrStmt(te.thread_axis("threadIdx.x"), key, tir.StringImm("x"), tir.Evaluate(0))


def test_keys_bodies_and_statements_of_other_types():
    with pytest.raises(ArgumentTypeError, match="AttrStmt: the field attr_key is a str, not 5"):
        tir.AttrStmt(te.var("v"), 5, tir.IntImm("int32", 4), tir.Evaluate(0))
    with pytest.raises(ArgumentTypeError, match="the field body is a Stmt, not None"):
        tir.AttrStmt(te.var("v"), "x", tir.IntImm("int32", 4), None)
    with pytest.raises(ArgumentTypeError, match="emit takes a statement or an expression, not 5"):
        tir.ir_builder.create().emit(5)
