"""Statements written in the order of their execution."""

import numpy as np
import pytest

from tedsl import tir
from tedsl.errors import ArgumentError, DTypeError, ExpressionError, ShapeError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.builder import create
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Ramp, StringImm, Var
from tedsl.ir.stmt import AttrStmt, ForKind
from tedsl.ir.text import text
from tedsl.ir.verify import verify
from tests.ir.programs import function

n = Var("n")
X = decl_buffer((n,), "float32", "X")


def test_a_program():
    ib = create()
    p, t = ib.buffer_ptr(X), ib.allocate("float32", n, "t")
    with ib.for_range(0, n, "i") as i:
        with ib.if_scope(ib.likely(i < 3)):
            t[i] = p[i] * 2.0
        with ib.else_scope():
            t[i] = 1
    with ib.for_range(0, n, "j", kind="parallel") as j:
        p[j] = ib.let("v", t[j] + p[j])
    func = function(ib.get(), X)
    verify(func, flat=True)
    data = np.arange(5, dtype="float32")
    run(func, [data])
    assert data.tolist() == [0, 3, 6, 4, 5]


def test_indices_in_several_dimensions_and_vectors():
    ib = create()
    M = ib.buffer_ptr(decl_buffer((4, 6), "float32", "M"))
    M[1, 2] = M[n, n + 1]
    M[Ramp(n, build.const(1), 4)] = 0.0
    wide = ib.pointer("float32x4", "W")
    wide[n] = wide[1]
    assert text(ib.get()) == ("{\n  M: Buffer(M_1: Pointer(float32), float32, [4, 6], [])[1, 2] = M[n: int32, (n + 1)]\n"
                              "  M_1[ramp(n, 1, 4)] = broadcast(0f32, 4)\n"
                              "  W: Pointer(float32)[ramp((n*4), 1, 4)] = (float32x4*)W[ramp(4, 1, 4)]\n}")


def test_loops_attributes_and_scopes():
    ib = create()
    p = ib.buffer_ptr(X)
    with ib.new_scope():
        ib.scope_attr(p, "key", 3)
        with ib.while_loop(p[0] < 1.0):
            p[0] = 2.0
    with ib.for_range(2, n, dtype="int64", kind="unroll"):
        ib.emit(build.call("tir.call_extern", StringImm("f"), dtype_="int32"))
    first, second = ib.get().seq
    assert isinstance(first, AttrStmt) and first.node is X.data and first.value.value == 3
    assert second.kind == ForKind.UNROLLED and second.loop_var.dtype == "int64" and second.min.value == 2


def test_wrong_use_is_refused():
    ib = create()
    p = ib.buffer_ptr(X)
    with pytest.raises(DTypeError, match="cast it"):
        p[0] = Var("k") + 1
    with pytest.raises(ShapeError, match="1 dimensions and is accessed with 2"):
        p[0, 1]
    with pytest.raises(ArgumentError, match="there is no kind 'fast'"), ib.for_range(0, 3, kind="fast"):
        pass
    with pytest.raises(ExpressionError, match="must follow an if_scope"), ib.else_scope():
        pass
    with ib.if_scope(n < 3), pytest.raises(ExpressionError, match="inside a `with` block"):
        ib.get()


@pytest.mark.parametrize(("end", "dtype", "words"), [
    (2.5, None, "from 0 to 2.5, is float32"), (3, "float32", "its variable is"),
    (3, "int32x4", "its variable is int32x4")])
def test_loops_count_in_integers(end, dtype, words):
    ib = create()
    with pytest.raises(DTypeError, match=words), ib.for_range(0, end, "i", dtype=dtype):
        pass


@pytest.mark.parametrize("begin, end, dtype", [(0, 200, "int8"), (0, 256, "uint8"), (-1, 4, "uint8"), (0, Var("n"), "int8")])
def test_the_variable_of_a_loop_holds_its_range(begin, end, dtype):
    """The ends wrapped, and the loop ran less often or not at all."""
    ib = create()
    with pytest.raises(DTypeError, match=f"the variable i of the loop is {dtype}"), ib.for_range(begin, end, "i", dtype=dtype):
        pass
    with ib.for_range(0, 127, "i", dtype="int8"), ib.for_range(0, Var("n", "int64"), "j", dtype="int32"):
        pass


def test_memory_scopes_of_the_builder_are_those_of_set_scope():
    """ib.allocate took any word."""
    ib = tir.ir_builder.create()
    with pytest.raises(ArgumentError, match=r"allocate buf: there is no memory scope 'foo'\n  hint: choose one of global"):
        ib.allocate("float32", 8, scope="foo")
    with pytest.raises(ArgumentError, match="pointer ptr: there is no memory scope 'locals'"):
        ib.pointer("float32", scope="locals")
    with pytest.raises(ArgumentError, match="allocate buf: the scope is a string, not 3"):
        ib.allocate("float32", 8, scope=3)
    assert ib.allocate("float32", 8, scope="local.L1").dtype == "float32"
