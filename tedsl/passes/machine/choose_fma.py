"""Fuse multiply and add where the target has the instruction, so that every version of a loop rounds alike.

before:  C[i] = C[i] + A[k]*B[i]          after:  C[i] = fma(A[k], B[i], C[i])

    a*b + c → fma(a, b, c)      c + a*b → fma(a, b, c)      a*b - c → fma(a, b, -c)      c - a*b → fma(-a, b, c)

Of two products in a sum the left one is fused. The choice looks at nothing but the expression itself, not at how often
a product is used: vector body, tail and every tile come from one expression and get one choice. An fma costs what an
add costs, so a product that is needed elsewhere as well loses nothing. float32 and float64 only: narrower floats
are computed in float32 and rounded after each operation.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Add, Broadcast, Call, Expr, FloatImm, Mul, Sub
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import FMA
from tedsl.ir.walk.contents import FLOAT_PRODUCT
from tedsl.ir.walk.rewriter import Rewriter

FUSED = ("float32", "float64")


def choose_fma(func: PrimFunc) -> PrimFunc:
    """Returns `func` with sums of products fused."""
    return func.with_body(_Fuser()(func.body))


class _Fuser(Rewriter):
    kinds = (FLOAT_PRODUCT,)

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, (Add, Sub)) or node.dtype.element not in FUSED:
            return node
        a, b = node.a, node.b
        if isinstance(a, Mul):
            return _fma(a.a, a.b, b if isinstance(node, Add) else _negated(b))
        if isinstance(b, Mul):
            return _fma(b.a if isinstance(node, Add) else _negated(b.a), b.b, a)
        return node


def _fma(a: Expr, b: Expr, c: Expr) -> Expr:
    return Call(c.dtype, FMA, (a, b, c))


def _negated(x: Expr) -> Expr:
    """Returns -x, exactly: a product with -1."""
    match x:
        case FloatImm(value=v):
            return FloatImm(x.dtype, -v)
        case Broadcast(value=v):
            return Broadcast(_negated(v), x.lanes)
        case Mul(b=FloatImm(value=-1.0)):
            return x.a
        case _:
            return Mul(x, build.const(-1.0, x.dtype))
