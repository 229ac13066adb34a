"""Small programs that the tests of ir share."""

from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Load, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, For, ForKind, Store, seq

F32 = dtype("float32")


def loop(var, extent, body, kind=ForKind.SERIAL, start=0):
    """`body` for var = start, ..., start + extent - 1."""
    return For(var, build.const(start, var.dtype), build.as_expr(extent, var.dtype), kind, body)


def function(body, *buffers, scalars=(), **attrs):
    """A function of the buffers and then the scalars."""
    handles = tuple(Var(b.name, "handle") for b in buffers)
    return PrimFunc((*handles, *scalars), body, None, dict(zip(handles, buffers)), attrs)


def row_sum():
    """The first listing of the issue's lowering: B[i] = sum over k of A[i, k], with symbolic shapes and strides."""
    n, m = Var("n"), Var("m")
    steps = (Var("stride"), Var("stride"))
    A = Buffer(pointer_var("A", F32, ""), F32, (n, m), steps, build.const(0), "A", buffer_type="auto")
    B, i, k = pointer_var("B", F32), Var("i"), Var("k")
    at = build.add(build.mul(i, steps[0]), build.mul(k, steps[1]))
    added = build.add(Load("float32", B, i), Load("float32", A.data, at))
    body = loop(i, n, seq(Store(B, build.const(0.0), i), loop(k, m, Store(B, added, i))))
    attrs = {"tir.noalias": True, "global_symbol": "main", "from_legacy_te_schedule": True}
    return function(Allocate(B, F32, (n,), build.true(), body), A, **attrs)


def vector_buffer(name, size, of="float32"):
    return decl_buffer((size,), of, name)
