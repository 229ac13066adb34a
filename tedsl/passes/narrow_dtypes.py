"""Convert index arithmetic in int64 that provably fits to int32, or to int16 where asked; what may not fit keeps its width.

before:  for (i: int64, 0i64, 16i64) { A[(i*4i64)] = 0 }          after:  for (i: int32, 0, 16) { A[(i*4)] = 0 }

A loop is narrowed if its bounds are proved to fit. An index, and either side of a comparison, is narrowed if every value in it
is. Elsewhere (data) the variable is cast back, so that no value changes. Variables of the caller keep their dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64, DType, dtype
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Select,
    Sub,
    Var,
)
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.stmt import AttrStmt, For, LetStmt, Stmt, Store
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.threads import as_loop, bind_launched
from tedsl.record import record

_ARITHMETIC = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max)
_COMPARISONS = (LT, LE, GT, GE, EQ, NE)
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


def narrow_dtypes(func: PrimFunc, *, bits: int = 32, throughout: bool = False) -> PrimFunc:
    """Returns `func` with loops and indices of `bits` bits, 16 or 32, where wider ones are proved to fit; itself if it has no
    wider ones.

    throughout: a variable is narrowed only if all arithmetic that it is part of fits, and so are those of lets and threads.
    """
    width = _WIDTHS[bits]
    dtypes = {node.dtype for node in post_order(func.body) if isinstance(node, Expr)}
    if not any(of.element in width.wider for of in dtypes) \
            and not any(isinstance(stmt, For) and stmt.loop_var.dtype in width.wider for stmt in statements(func.body)):
        return func
    wide = _Wide(width)
    if throughout:
        wide(func.body)
    return func.with_body(_Narrower(width, wide.found, throughout)(func.body))


class _Wide(ScopedRewriter):
    """Finds the variables that are part of arithmetic which may not fit. The index of a load is arithmetic of its own."""

    def __init__(self, width: _Width) -> None:
        self.width = width
        self.analyzer = Analyzer()
        self.found: set[Var] = set()

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
            case LetStmt():
                _bind_let(self.analyzer, stmt)
            case _:
                bind_launched(self.analyzer, stmt)
        return self.descend(stmt)

    def expr(self, expr: Expr) -> Expr:
        seen = set()
        stack = [(expr, False)]
        while stack:
            node, wide = stack.pop()
            if (node, wide) in seen:
                continue
            seen.add((node, wide))
            if not node.dtype.is_int:
                wide = False
            elif node.dtype in self.width.wider and not self.width.holds(*self.analyzer.bounds(node)):
                wide = True
            if wide and isinstance(node, Var):
                self.found.add(node)
            below = wide and not isinstance(node, Load)
            stack += [(child, below) for child in node.child_nodes() if isinstance(child, Expr)]
        return expr


def _bind_let(analyzer: Analyzer, let: LetStmt) -> None:
    if let.var.dtype.is_integer and let.var.dtype.lanes == 1:
        analyzer.bind(let.var, let.value)


class _Narrower(ScopedRewriter):
    """Narrows the variables of statements, unless they are among `wide`; throughout: those of lets and of threads too."""

    def __init__(self, width: _Width, wide: set[Var], throughout: bool) -> None:
        self.width, self.wide, self.throughout = width, wide, throughout
        self.analyzer = Analyzer()
        self.narrowed: dict[Var, Var] = {}

    def fits(self, e: Expr) -> bool:
        return self.width.holds(*self.analyzer.bounds(e))

    def narrow(self, index: Expr) -> Expr | None:
        return _narrow_index(index, _Narrowing(self.width, self.narrowed, self.fits, self.expr))

    def expr(self, expr: Expr) -> Expr:
        return _Data(self.width, self.narrowed, self.fits)(expr)  # type: ignore[no-any-return]

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self.loop(stmt)
            case LetStmt() if self.throughout:
                return self.let(stmt)
            case AttrStmt() if self.throughout and (axis := as_loop(stmt, blocks=True)) is not None:
                return self.launch(stmt, axis)
            case Store():
                store = self.descend(stmt)
                assert isinstance(store, Store)
                index = self.narrow(stmt.index)
                return store if index is None else store.replace(index=index)
            case _:
                bind_launched(self.analyzer, stmt)
                return self.descend(stmt)

    def loop(self, loop: For) -> Stmt:
        low, extent, var = self.counted(loop)
        if var is None:
            return self.descend(loop)
        return loop.replace(loop_var=var, min=low, extent=extent, body=self.stmt(loop.body))

    def launch(self, stmt: AttrStmt, axis: For) -> Stmt:
        _, extent, var = self.counted(axis)
        if var is None:
            count = self.narrow(stmt.value) if axis.loop_var.dtype is self.width.of else None
            made = self.descend(stmt)
            return made if count is None else made.replace(value=count)
        return stmt.replace(node=stmt.node.replace(var=var, dom=None), value=extent, body=self.stmt(stmt.body))

    def counted(self, loop: For) -> tuple[Expr | None, Expr | None, Var | None]:
        """Returns the narrow bounds of a loop and its narrow variable, None where it stays wide; its range is known then."""
        v = loop.loop_var
        self.analyzer.bind(v, Range.from_min_extent(loop.min, loop.extent))
        low, extent = self.narrow(loop.min), self.narrow(loop.extent)
        last = build.add(loop.min, loop.extent)
        if v.dtype not in self.width.wider or v in self.wide or low is None or extent is None or not self.fits(last):
            return None, None, None
        var = self.narrowed[v] = Var(v.name, self.width.of)
        self.analyzer.bind(var, Range.from_min_extent(low, extent))
        return low, extent, var

    def let(self, let: LetStmt) -> Stmt:
        _bind_let(self.analyzer, let)
        value = self.narrow(let.value) if let.var.dtype in self.width.wider and let.var not in self.wide else None
        if value is None:
            return self.descend(let)
        var = self.narrowed[let.var] = Var(let.var.name, self.width.of)
        self.analyzer.bind(var, value)
        return LetStmt(var, value, self.stmt(let.body))


class _Data(Rewriter):
    """Rewrites data, which keeps its width: a narrowed variable is cast back. Indices of loads, and comparisons, are narrowed.
    """

    def __init__(self, width: _Width, narrowed: dict[Var, Var], fits: Fits) -> None:
        super().__init__()
        self.narrowed = narrowed
        # variables of what is narrowed are narrow already: their casts are removed
        self.narrowing = _Narrowing(width, {}, fits, lambda node: node)

    def rewrite(self, node: Any) -> Any:
        match node:
            case Var() if node in self.narrowed:
                return Cast(node.dtype, self.narrowed[node])
            case Cast(value=Cast(value=Var() as inner, dtype=wide)) if wide in self.narrowing.width.wider \
                    and inner.dtype is self.narrowing.width.of:
                return Cast(node.dtype, inner)
            case Load():
                index = _narrow_index(node.index, self.narrowing)
                return node if index is None else node.replace(index=index)
            case BinaryOp() if isinstance(node, _COMPARISONS):
                a, b = _narrow_index(node.a, self.narrowing), _narrow_index(node.b, self.narrowing)
                return node if a is None or b is None else type(node)(a, b)
            case _:
                return node


@record(eq=False)
class _Narrowing:
    """What is known where an index stands: the narrowed variables, what fits, and what becomes of the data in it."""

    width: _Width
    narrowed: dict[Var, Var]
    fits: Fits
    data: Callable[[Expr], Expr]


def _narrow_index(index: Expr, to: _Narrowing) -> Expr | None:
    """Returns `index` in the narrow dtype; None if a value in it may not fit (or it is narrow already)."""
    if index.dtype.element not in to.width.wider:
        return None
    made: dict[Any, Expr | None] = {}
    for node in post_order(index):
        if isinstance(node, Expr):
            made[node] = _narrow(node, made, to)
    return made[index]


def _narrow(node: Expr, made: dict[Any, Expr | None], to: _Narrowing) -> Expr | None:
    of, wider = to.width.of, to.width.wider
    match node:
        case Var() if node in to.narrowed:
            return to.narrowed[node]
        case IntImm(value=v) if node.dtype in wider:
            return IntImm(of, v) if to.width.holds(v, v) else None
        case Cast(value=value) if node.dtype in wider and value.dtype in (of, *wider):
            return made[value]
        case Cast(value=value) if node.dtype in wider and value.dtype.is_integer \
                and to.width.holds(value.dtype.min_value, value.dtype.max_value):
            return Cast(of, to.data(value))
        case Ramp() | Broadcast() | Select() | Call() if node.dtype.element in wider:
            return _narrow_parts(node, made, to)
        case BinaryOp() if isinstance(node, _ARITHMETIC) and node.dtype.lanes == 1 and (node.dtype is of or to.fits(node)):
            a, b = made[node.a], made[node.b]
            if a is not None and b is not None:
                return type(node)(a, b)
    return to.data(node) if node.dtype is of else None


def _narrow_parts(node: Expr, made: dict[Any, Expr | None], to: _Narrowing) -> Expr | None:
    """Returns a vector or a choice whose parts are narrow; None if one is not."""
    match node:
        case Ramp(base=base, stride=stride, lanes=lanes) \
                if (first := made[base]) is not None and (by := made[stride]) is not None:
            return Ramp(first, by, lanes)
        case Broadcast(value=value, lanes=lanes) if (one := made[value]) is not None:
            return Broadcast(one, lanes)
        case Select(condition=condition, true_value=yes, false_value=no) \
                if (a := made[yes]) is not None and (b := made[no]) is not None:
            return Select(to.data(condition), a, b)
        case Call(op=op, args=(condition, yes, no)) if op is IF_THEN_ELSE \
                and (a := made[yes]) is not None and (b := made[no]) is not None:
            return Call(a.dtype, IF_THEN_ELSE, (to.data(condition), a, b))
        case _:
            return None
