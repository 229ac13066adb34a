"""Convert index arithmetic in int64 that provably fits to int32, or to int16 where asked; what may not fit keeps its width.

before:  for (i: int64, 0i64, 16i64) { A[(i*4i64)] = 0 }          after:  for (i: int32, 0, 16) { A[(i*4)] = 0 }

A loop is narrowed if its bounds are proved to fit. An index is narrowed if every value in it is. Elsewhere (data) the
variable is cast back, so that no value changes. Variables of the caller keep their dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64, DType, dtype
from tedsl.ir.expr import Add, BinaryOp, Cast, Div, Expr, FloorDiv, FloorMod, IntImm, Load, Max, Min, Mod, Mul, Ramp, Sub, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import For, Stmt, Store
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.threads import bind_launched
from tedsl.record import record

_ARITHMETIC = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max)
Fits = Callable[[Expr], bool]


@record
class _Width:
    """The dtype of narrow indices, and those that become narrow."""

    of: DType
    wider: tuple[DType, ...]

    def holds(self, low: int | None, high: int | None) -> bool:
        """Tells whether all integers from `low` to `high` (None: unknown) fit the narrow dtype."""
        least, most = self.of.min_value, self.of.max_value
        assert least is not None and most is not None
        return low is not None and high is not None and low >= least and high <= most


_WIDTHS = {32: _Width(INT32, (INT64,)), 16: _Width(dtype("int16"), (INT64, INT32))}


def narrow_dtypes(func: PrimFunc, *, bits: int = 32) -> PrimFunc:
    """Returns `func` with loops and indices of `bits` bits, 16 or 32, where wider ones are proved to fit; itself if it has no
    wider ones.
    """
    width = _WIDTHS[bits]
    if not any(isinstance(node, Expr) and node.dtype.element in width.wider for node in post_order(func.body)) \
            and not any(isinstance(stmt, For) and stmt.loop_var.dtype in width.wider for stmt in statements(func.body)):
        return func
    return func.with_body(_Narrower(width)(func.body))


class _Narrower(ScopedRewriter):
    def __init__(self, width: _Width) -> None:
        self.width = width
        self.analyzer = Analyzer()
        self.narrowed: dict[Var, Var] = {}

    def fits(self, e: Expr) -> bool:
        return self.width.holds(*self.analyzer.bounds(e))

    def narrow(self, index: Expr) -> Expr | None:
        return _narrow_index(index, self.width, self.narrowed, self.fits)

    def expr(self, expr: Expr) -> Expr:
        return _Data(self.width, self.narrowed, self.fits)(expr)  # type: ignore[no-any-return]

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self.loop(stmt)
            case Store():
                store = self.descend(stmt)
                assert isinstance(store, Store)
                index = self.narrow(stmt.index)
                return store if index is None else store.replace(index=index)
            case _:
                bind_launched(self.analyzer, stmt)
                return self.descend(stmt)

    def loop(self, loop: For) -> Stmt:
        v = loop.loop_var
        self.analyzer.bind(v, Range.from_min_extent(loop.min, loop.extent))
        low, extent = self.narrow(loop.min), self.narrow(loop.extent)
        last = build.add(loop.min, loop.extent)
        if v.dtype not in self.width.wider or low is None or extent is None or not self.fits(last):
            return self.descend(loop)
        var = Var(v.name, self.width.of)
        self.narrowed[v] = var
        self.analyzer.bind(var, Range.from_min_extent(low, extent))
        return loop.replace(loop_var=var, min=low, extent=extent, body=self.stmt(loop.body))


class _Data(Rewriter):
    """Rewrites data, which keeps its width: a narrowed variable is cast back. Indices of loads are narrowed."""

    def __init__(self, width: _Width, narrowed: dict[Var, Var], fits: Fits) -> None:
        super().__init__()
        self.width, self.narrowed, self.fits = width, narrowed, fits

    def rewrite(self, node: Any) -> Any:
        match node:
            case Var() if node in self.narrowed:
                return Cast(node.dtype, self.narrowed[node])
            case Load():  # variables of its index are narrow already: their casts are removed
                index = _narrow_index(node.index, self.width, {}, self.fits)
                return node if index is None else node.replace(index=index)
            case _:
                return node


def _narrow_index(index: Expr, width: _Width, narrowed: dict[Var, Var], fits: Fits) -> Expr | None:
    """Returns `index` in the narrow dtype; None if a value in it may not fit (or it is narrow already)."""
    if index.dtype.element not in width.wider:
        return None
    narrow: dict[Expr, Expr] = {}
    for node in post_order(index):
        assert isinstance(node, Expr)
        new = _narrow(node, narrow, width, narrowed, fits)
        if new is None:
            return None
        narrow[node] = new
    return narrow[index]


def _narrow(node: Expr, made: dict[Expr, Expr], width: _Width, narrowed: dict[Var, Var], fits: Fits) -> Expr | None:
    of = width.of
    match node:
        case Var():
            return narrowed.get(node, node if node.dtype is of else None)
        case IntImm(value=v):
            return IntImm(of, v) if node.dtype in width.wider and width.holds(v, v) else node if node.dtype is of else None
        case Cast(value=value) if node.dtype in width.wider and value.dtype in (of, *width.wider):
            return made[value]
        case Ramp():
            return Ramp(made[node.base], made[node.stride], node.lanes)
        case BinaryOp() if isinstance(node, _ARITHMETIC) and node.dtype.lanes == 1 and (node.dtype is of or fits(node)):
            kind: Any = type(node)
            return kind(made[node.a], made[node.b])  # type: ignore[no-any-return]
        case _:
            return None
