"""Name the parts of addresses that a loop does not change, outside that loop.

before:  for (i: 0, 8) { for (k: 0, 64) { .. A[((i*1024) + j*32) + k] .. } }
after:   for (i: 0, 8) { let base: int64 = (int64(i)*1024 + int64(j)*32); for (k: 0, 64) { .. A[(base + int64(k))] .. } }

An index is taken apart into terms; those of the function come first, then those of the outermost loop, and so on inwards;
each partial sum is named where its last variable is bound, and equal sums share a name. The constant comes last: it is
part of the instruction's address. Names are int64 (as codegen computes addresses), made from extended leaves: nothing
can overflow. Loads and calls stay where they are.

The LLVM backend does the same while it emits (`codegen/llvm/index.py`), so its pipeline leaves this pass out; it is for
backends that compute an address where it stands.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import (
    Add,
    BinaryOp,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Sub,
    Var,
)
from tedsl.ir.func import PrimFunc
from tedsl.ir.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.stmt import For, LetStmt, Stmt, Store
from tedsl.passes.facts.dependence import MEMORY, Dependence
from tedsl.passes.facts.structure import Numbering

_ARITHMETIC = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max)


def hoist_invariants(func: PrimFunc) -> PrimFunc:
    """`func` with invariant address arithmetic named outside the loops."""
    return func.with_body(_Hoister().function(func.body))


class _Hoister(ScopedRewriter):
    """names[d] are the lets to make at depth d: 0 is the function, each loop or let around the place adds one."""

    def __init__(self) -> None:
        self.names: list[list[tuple[Var, Expr]]] = [[]]
        self.depth: dict[Var, int] = {}
        self.number = Numbering()
        self.depends = Dependence()
        self.wide: dict[int, Expr] = {}
        self.made: list[dict[Any, Expr]] = [{}]

    def function(self, body: Stmt) -> Stmt:
        return _with_lets(self.names[0], self.stmt(body))

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                low, extent = self.expr(stmt.min), self.expr(stmt.extent)
                body = self.inside(stmt.loop_var, stmt.body)
                same = low is stmt.min and extent is stmt.extent and body is stmt.body
                return stmt if same else stmt.replace(min=low, extent=extent, body=body)
            case LetStmt():
                value, body = self.expr(stmt.value), self.inside(stmt.var, stmt.body)
                return stmt if value is stmt.value and body is stmt.body else LetStmt(stmt.var, value, body)
            case Store():
                made = self.descend(stmt)
                index = self.index(made.index)
                return made if index is made.index else made.replace(index=index)
            case _:
                return self.descend(stmt)

    def inside(self, var: Var, body: Stmt) -> Stmt:
        self.depth[var] = len(self.names)
        self.names.append([])
        self.made.append({})
        done = self.stmt(body)
        self.made.pop()
        return _with_lets(self.names.pop(), done)

    def expr(self, expr: Expr) -> Expr:
        if MEMORY not in self.depends(expr):
            return expr
        return _LoadIndices(self)(expr)  # type: ignore[no-any-return]

    def index(self, index: Expr) -> Expr:
        """`index` with its invariant parts named; itself if there is nothing worth a name."""
        if isinstance(index, Ramp):
            base = self.index(index.base)
            return index if base is index.base else Ramp(base, build.cast(base.dtype, index.stride), index.lanes)
        if index.dtype not in (INT32, INT64) or isinstance(index, (Var, IntImm, Load, Call)):
            return index
        here = len(self.names) - 1
        terms = [(self.level(term), sign, term) for sign, term in _terms(index)]
        running: Expr | None = None
        for level in sorted({at for at, _, _ in terms if at is not None and 0 <= at < here}):
            running = self.name(running, [(s, t) for at, s, t in terms if at == level], level)
        if running is None:
            return index
        rest = [(s, t) for at, s, t in terms if at is None or at >= here]
        return self.sum(self.sum(running, rest), [(s, t) for at, s, t in terms if at == -1])

    def sum(self, start: Expr | None, terms: list[tuple[int, Expr]]) -> Expr:
        total = start
        for sign, term in terms:
            key = self.number(term)
            wide = self.wide.get(key)
            if wide is None:
                wide = self.wide[key] = _extended(term)
            if total is None:
                total = wide if sign > 0 else build.sub(IntImm(INT64, 0), wide)
            else:
                total = build.add(total, wide) if sign > 0 else build.sub(total, wide)
        assert total is not None
        return total

    def name(self, start: Expr | None, terms: list[tuple[int, Expr]], level: int) -> Expr:
        """The variable at `level` that stands for start + terms, or the sum itself where a name gains nothing."""
        key = start, *((sign, self.number(term)) for sign, term in terms)
        found = self.made[level].get(key)
        if found is None:
            value = self.sum(start, terms)
            found = value
            if not (isinstance(value, Var) or (isinstance(value, Cast) and isinstance(value.value, Var))):
                var = Var("base", INT64)
                self.depth[var] = level
                self.names[level].append((var, value))
                found = var
            self.made[level][key] = found
        return found

    def level(self, term: Expr) -> int | None:
        """The depth where `term` can be computed: -1 for constants, None if it must stay in place."""
        used = self.depends(term)
        if MEMORY in used or isinstance(term, (Call, Let)):
            return None
        depth = -1
        for var in used:
            depth = max(depth, self.depth.get(var, 0))
        return depth


class _LoadIndices(Rewriter):
    def __init__(self, hoister: _Hoister) -> None:
        super().__init__()
        self.hoister = hoister

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, Load):
            return node
        index = self.hoister.index(node.index)
        return node if index is node.index else node.replace(index=index)


def _with_lets(lets: list[tuple[Var, Expr]], body: Stmt) -> Stmt:
    for var, value in reversed(lets):
        body = LetStmt(var, value, body)
    return body


def _terms(index: Expr) -> list[tuple[int, Expr]]:
    """The summands of `index` with their signs, left to right."""
    found: list[tuple[int, Expr]] = []
    stack = [(1, index)]
    while stack:
        sign, e = stack.pop()
        if isinstance(e, (Add, Sub)):
            stack.append((sign if isinstance(e, Add) else -sign, e.b))
            stack.append((sign, e.a))
        else:
            found.append((sign, e))
    return found




def _extended(term: Expr) -> Expr:
    """`term` computed in int64 from extended leaves."""
    made: dict[Any, Expr] = {}
    stack = [term]
    while stack:
        node = stack[-1]
        if isinstance(node, _ARITHMETIC) and isinstance(node, BinaryOp):
            pending = [child for child in (node.a, node.b) if child not in made]
            if pending:
                stack.extend(pending)
                continue
            made[node] = build.binary(type(node), made[node.a], made[node.b])
        else:
            made[node] = build.cast(INT64, node)
        stack.pop()
    return made[term]
