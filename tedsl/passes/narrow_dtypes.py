"""Convert index arithmetic in int64 that provably fits to int32; what may not fit keeps its width.

before:  for (i: int64, 0i64, 16i64) { A[(i*4i64)] = 0 }          after:  for (i: int32, 0, 16) { A[(i*4)] = 0 }

A loop is narrowed if its bounds are proved to fit. An index is narrowed if every value in it is. Elsewhere (data) the
variable is cast back, so that no value changes. Variables of the caller keep their dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import Add, BinaryOp, Cast, Div, Expr, FloorDiv, FloorMod, IntImm, Load, Max, Min, Mod, Mul, Ramp, Sub, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import For, Stmt, Store
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.threads import bind_launched

LOW, HIGH = -(1 << 31), (1 << 31) - 1
_ARITHMETIC = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max)
Fits = Callable[[Expr], bool]


def narrow_dtypes(func: PrimFunc) -> PrimFunc:
    """Returns `func` with int32 loops and indices where int64 ones are proved to fit; itself if it has no int64."""
    if not any(isinstance(node, Expr) and node.dtype.element is INT64 for node in post_order(func.body)) \
            and not any(isinstance(stmt, For) and stmt.loop_var.dtype is INT64 for stmt in statements(func.body)):
        return func
    return func.with_body(_Narrower()(func.body))


class _Narrower(ScopedRewriter):
    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.narrowed: dict[Var, Var] = {}

    def fits(self, e: Expr) -> bool:
        low, high = self.analyzer.bounds(e)
        return low is not None and high is not None and low >= LOW and high <= HIGH

    def expr(self, expr: Expr) -> Expr:
        return _Data(self.narrowed, self.fits)(expr)  # type: ignore[no-any-return]

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self.loop(stmt)
            case Store():
                store = self.descend(stmt)
                assert isinstance(store, Store)
                index = narrow_index(stmt.index, self.narrowed, self.fits)
                return store if index is None else store.replace(index=index)
            case _:
                bind_launched(self.analyzer, stmt)
                return self.descend(stmt)

    def loop(self, loop: For) -> Stmt:
        v = loop.loop_var
        self.analyzer.bind(v, Range.from_min_extent(loop.min, loop.extent))
        low = narrow_index(loop.min, self.narrowed, self.fits)
        extent = narrow_index(loop.extent, self.narrowed, self.fits)
        last = build.add(loop.min, loop.extent)
        if v.dtype is not INT64 or low is None or extent is None or not self.fits(last):
            return self.descend(loop)
        var = Var(v.name, INT32)
        self.narrowed[v] = var
        self.analyzer.bind(var, Range.from_min_extent(low, extent))
        return loop.replace(loop_var=var, min=low, extent=extent, body=self.stmt(loop.body))


class _Data(Rewriter):
    """Rewrites data, which keeps its width: a narrowed variable is cast back. Indices of loads are narrowed."""

    def __init__(self, narrowed: dict[Var, Var], fits: Fits) -> None:
        super().__init__()
        self.narrowed, self.fits = narrowed, fits

    def rewrite(self, node: Any) -> Any:
        match node:
            case Var() if node in self.narrowed:
                return Cast(INT64, self.narrowed[node])
            case Load():
                index = _uncast(node.index, self.fits)
                return node if index is None else node.replace(index=index)
            case _:
                return node


def narrow_index(index: Expr, narrowed: dict[Var, Var], fits: Fits) -> Expr | None:
    """Returns `index` in int32; None if a value in it may not fit (or it is int32 already)."""
    if index.dtype.element is not INT64:
        return None
    narrow: dict[Expr, Expr] = {}
    for node in post_order(index):
        assert isinstance(node, Expr)
        new = _narrow(node, narrow, narrowed, fits)
        if new is None:
            return None
        narrow[node] = new
    return narrow[index]


def _uncast(index: Expr, fits: Fits) -> Expr | None:
    """Returns what `narrow_index` does, for an index whose variables are narrowed already: casts back to int64 are removed."""
    return narrow_index(index, {}, fits)


def _narrow(node: Expr, made: dict[Expr, Expr], narrowed: dict[Var, Var], fits: Fits) -> Expr | None:
    match node:
        case Var():
            return narrowed.get(node, node if node.dtype is INT32 else None)
        case IntImm(value=v):
            return IntImm(INT32, v) if LOW <= v <= HIGH and node.dtype is INT64 else node if node.dtype is INT32 else None
        case Cast(value=value) if node.dtype is INT64 and value.dtype is INT32:
            return made[value]
        case Ramp():
            return Ramp(made[node.base], made[node.stride], node.lanes)
        case BinaryOp() if isinstance(node, _ARITHMETIC) and node.dtype.lanes == 1 and (node.dtype is INT32 or fits(node)):
            kind: Any = type(node)
            return kind(made[node.a], made[node.b])  # type: ignore[no-any-return]
        case _:
            return None
