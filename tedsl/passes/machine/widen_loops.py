"""Give a loop whose iterations may exceed the range of its variable a wider variable.

before:  for (f: int32, 0, n*m) { A[(f//m)*stride + f%m] = float32(f) }
after:   for (f: int64, 0, int64(n)*int64(m)) { A[(f//int64(m))*int64(stride) + f%int64(m)] = float32(int32(f)) }

Loops over two fused axes of symbolic extent may have that many; those over large constant extents are int64 from the start.
Addresses, bounds and conditions that use the variable are computed in int64 from their int32 leaves; data uses the variable
cast back to its old dtype.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import (
    Add,
    And,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    CompareOp,
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
    Not,
    Or,
    Ramp,
    SizeVar,
    Sub,
    Var,
)
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.stmt import For, IfThenElse, Stmt, Store
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.dependence import Dependence

HIGH = (1 << 31) - 1
_ARITHMETIC = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max)


def widen_loops(func: PrimFunc) -> PrimFunc:
    """Returns `func` with an int64 variable for each int32 loop whose last iteration may exceed 2**31 - 1."""
    return func.with_body(_Loops()(func.body))


class _Loops(ScopedRewriter):
    def __init__(self) -> None:
        self.limits: dict[Var, tuple[int, int]] = {}

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store):
            return stmt
        if isinstance(stmt, For):
            low, high = interval(stmt.min, self.limits)[0], interval(build.add(stmt.min, stmt.extent), self.limits)[1] - 1
            if stmt.loop_var.dtype is INT32 and high > HIGH:
                stmt = _widened(stmt)
            elif stmt.loop_var.dtype is INT64:
                stmt = stmt.replace(body=_Uses(stmt.loop_var)(stmt.body))
            self.limits[stmt.loop_var] = low, max(low, high)
        return self.descend(stmt)


def interval(e: Expr, known: dict[Var, tuple[int, int]]) -> tuple[int, int]:
    """Returns the least and greatest value of an integer expression, computed without overflow from the intervals `known`."""
    bounds: dict[Any, tuple[int, int]] = {}
    for node in post_order(e):
        if isinstance(node, Expr):
            bounds[node] = _bounds(node, bounds, known)
    return bounds[e]


def _bounds(node: Expr, made: dict[Any, tuple[int, int]], known: dict[Var, tuple[int, int]]) -> tuple[int, int]:
    low, high = node.dtype.min_value, node.dtype.max_value
    everything = (low if low is not None else -(1 << 63), high if high is not None else 1 << 63)
    if isinstance(node, IntImm):
        return node.value, node.value
    if isinstance(node, Var):
        return known.get(node, (0, everything[1]) if isinstance(node, SizeVar) else everything)
    if not isinstance(node, _ARITHMETIC) or not isinstance(node, BinaryOp):
        return everything
    (a, b), (c, d) = made[node.a], made[node.b]
    if isinstance(node, Add):
        return a + c, b + d
    if isinstance(node, Sub):
        return a - d, b - c
    if isinstance(node, Mul):
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if isinstance(node, (FloorDiv, Div)) and c > 0:
        return min(a // c, a // d), max(b // c, b // d)
    if isinstance(node, Min):
        return min(a, c), min(b, d)
    if isinstance(node, Max):
        return max(a, c), max(b, d)
    if isinstance(node, FloorMod) and c > 0:
        return 0, d - 1
    return everything


def _widened(loop: For) -> For:
    wide = Var(loop.loop_var.name, INT64)
    body = substitute(loop.body, {loop.loop_var: Cast(INT32, wide)})
    return loop.replace(loop_var=wide, min=_extend(loop.min, wide), extent=_extend(loop.extent, wide), body=_Uses(wide)(body))


class _Uses(Rewriter):
    """Computes the addresses, bounds and conditions that use `wide` in int64; elsewhere casts it back."""

    def __init__(self, wide: Var) -> None:
        super().__init__()
        self.wide = wide
        self.depends = Dependence()

    def extended(self, e: Any) -> Any:
        return _extend(e, self.wide) if e is not None and self.wide in self.depends(e) else e

    def rewrite(self, node: Any) -> Any:
        match node:
            case Load() | Store():
                index, predicate = self.extended(node.index), self.extended(node.predicate)
                same = index is node.index and predicate is node.predicate
                return node if same else node.replace(index=index, predicate=predicate)
            case IfThenElse():
                condition = self.extended(node.condition)
                return node if condition is node.condition else node.replace(condition=condition)
            case Call(op=op) if op is IF_THEN_ELSE:
                condition = self.extended(node.args[0])
                return node if condition is node.args[0] else node.replace(args=(condition, *node.args[1:]))
            case For():
                low, extent = (build.cast(node.loop_var.dtype, self.extended(e)) for e in (node.min, node.extent))
                same = low is node.min and extent is node.extent
                return node if same else node.replace(min=low, extent=extent)
            case _:
                return node


def _extend(e: Expr, wide: Var) -> Expr:
    """Returns `e` with its int32 arithmetic done in int64, and `wide` itself where it was cast back."""
    extended: dict[Any, Expr] = {}
    stack: list[Any] = [e]
    while stack:
        node = stack[-1]
        children = node.child_nodes() if _is_transparent(node) else []
        pending = [child for child in children if child not in extended]
        if pending:
            stack += pending
            continue
        stack.pop()
        if node not in extended:
            extended[node] = _extended_node(node, [extended[child] for child in children], wide)
    return extended[e]


def _counts(e: Expr, wide: Var) -> bool:
    """Tells whether `e` is int64 arithmetic on loop variables, `wide` among them."""
    nodes = list(post_order(e))
    return e.dtype.element is INT64 and any(node is wide for node in nodes) \
        and all(isinstance(node, (Var, IntImm, Ramp, Broadcast, *_ARITHMETIC)) for node in nodes)


def _is_transparent(node: Expr) -> bool:
    """Tells whether the operands of `node` are extended rather than its result."""
    if isinstance(node, _ARITHMETIC):
        return node.dtype.element is INT32
    if isinstance(node, CompareOp):
        return node.a.dtype.element is INT32
    if isinstance(node, (Ramp, Broadcast)):
        return node.dtype.element is INT32 or node.dtype.is_bool
    return isinstance(node, (And, Or, Not)) or (isinstance(node, Call) and node.op is LIKELY)


def _extended_node(node: Any, new: list[Expr], wide: Var) -> Expr:
    node_type: Any = type(node)
    if not new:
        if isinstance(node, Cast) and node.dtype.element is INT32 and _counts(node.value, wide):
            return node.value
        return build.cast(INT64, node) if node.dtype.element is INT32 else node
    if isinstance(node, Call):
        return node.replace(args=tuple(new))
    if isinstance(node, Ramp):
        return Ramp(new[0], new[1], node.lanes)
    if isinstance(node, Broadcast):
        return Broadcast(new[0], node.lanes)
    if isinstance(node, BinaryOp) and not node.dtype.is_bool:
        return build.binary(node_type, *new)
    rebuilt: Expr = node_type(*new)
    return rebuilt
