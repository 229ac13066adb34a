"""Use what pragmas promise about the numbers in a loop: cheaper maxima, and an exponential with fewer instructions.

before:  attr "pragma_maxima_without_nan" { for (k: 0, 8) { B[0] = max(B[0], A[k]) } }
after:   for (k: 0, 8) { B[0] = select(B[0] > A[k], B[0], A[k]) }

A maximum that keeps NaN takes up to three instructions for a vector, one that may lose it one. exp(x) of a promised x <= 0
becomes the call exp_bounded(x), a formula that need not look whether it overflows.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.calls.lanes import in_halves
from tedsl.ir.expr import Call, Max, Min
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import EXP_BOUNDED, MAX_LANES, MIN_LANES
from tedsl.ir.stmt import AttrStmt, Stmt
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import statements
from tedsl.target.target import Target

_LANES = (MAX_LANES, MIN_LANES)
WITHOUT_NAN, AT_MOST_ONE = "pragma_maxima_without_nan", "pragma_exp_at_most_one"


def use_promises(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with what the pragmas maxima_without_nan and exp_at_most_one allow, and without them."""
    if not any(isinstance(s, AttrStmt) and s.attr_key in (WITHOUT_NAN, AT_MOST_ONE) for s in statements(func.body)):
        return func
    return func.with_body(_Promises(target)(func.body))


class _Promises(ScopedRewriter):
    def __init__(self, target: Target) -> None:
        self.bounds = target.kind.name == "llvm"  # whether the code generator has the formula

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case AttrStmt(attr_key=key) if key == WITHOUT_NAN:
                return self.under(_WithoutNaN(), stmt)
            case AttrStmt(attr_key=key) if key == AT_MOST_ONE:
                return self.under(_AtMostOne(), stmt) if self.bounds else self.stmt(stmt.body)
            case _:
                return self.descend(stmt)

    def under(self, rewrite: Rewriter, pragma: AttrStmt) -> Stmt:
        done: Stmt = rewrite(self.stmt(pragma.body))
        return done


class _WithoutNaN(Rewriter):
    kinds = (Max, Min, *_LANES)

    def rewrite(self, node: Any) -> Any:
        match node:
            case Max(a=a, b=b) if node.dtype.is_float:
                return build.select(build.greater(a, b), a, b)
            case Min(a=a, b=b) if node.dtype.is_float:
                return build.select(build.less(a, b), a, b)
            case Call(op=op) if op in _LANES and node.dtype.is_float:
                return in_halves(node, without_nan=True)
        return node


class _AtMostOne(Rewriter):
    kinds = (Call,)

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, Call) and node.op.short == "exp":
            return Call(node.dtype, EXP_BOUNDED, node.args)
        return node
