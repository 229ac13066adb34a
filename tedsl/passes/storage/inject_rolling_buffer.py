"""Keep what the next iteration needs too, as `rolling_buffer` asks.

before:  for (y: 0, n) { realize P([y:y+3, 0:m]) { attr [P] "rolling_buffer_scope" { P[y + dy, x] = ..;  C = f(P) } } }
after:   realize P([0:3, 0:m]) { for (y: 0, n) { if (y < 1 || dy >= 2) { P[(y + dy) % 3, x] = .. }  C = f(P[.. % 3, ..]) } }

The memory of one region, around the loop, wraps around in the dimension along which the region moves. All of it is computed
in the first iteration, afterwards only what is new. Where the region does not move like that with the loop around it (the
loop had one iteration and has vanished, or runs in parallel), everything is computed each time, as without the directive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.moving import Moving, moving_dimension
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import BIND_SCOPE, AttrStmt, BufferRealize, BufferStore, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import as_loop, bind_launched

SCOPE = "rolling_buffer_scope"


def inject_rolling_buffer(func: PrimFunc) -> PrimFunc:
    """Returns `func` with the marked memory rolling along the loop around it."""
    if not contains(func.body, SCOPE):
        return func
    return func.with_body(_Unmarked()(_Injector()(func.body)))


@dataclass(eq=False)
class _Marked:
    """The realizations directly in the body of a loop, and which of them are marked."""

    realized: dict[Buffer, BufferRealize] = field(default_factory=dict)
    rolling: dict[Buffer, None] = field(default_factory=dict)
    bound: set[Var] = field(default_factory=set)

    def search(self, stmt: Stmt) -> None:
        match stmt:
            case SeqStmt():
                for part in stmt.seq:
                    self.search(part)
            case BufferRealize():
                self.realized[stmt.buffer] = stmt
                self.search(stmt.body)
            case AttrStmt(attr_key=key, node=Buffer() as buffer) if key == SCOPE:
                self.rolling[buffer] = None
                self.search(stmt.body)
            case LetStmt():
                self.bound.add(stmt.var)
                self.search(stmt.body)
            case AttrStmt() if as_loop(stmt, blocks=True) is None:
                self.search(stmt.body)


class _Injector(ScopedRewriter):
    def __init__(self) -> None:
        self.analyzer = Analyzer()

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For):
            bind_launched(self.analyzer, stmt)
            return self.descend(stmt)
        if not any(isinstance(node, BufferLoad) for node in post_order(stmt.extent)):
            self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
        done = self.descend(stmt)
        if done.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            return done
        marked = _Marked()
        marked.search(done.body)
        rolled: Stmt = done
        for buffer in reversed(marked.rolling):
            rolled = self.rolled(done, rolled, marked, buffer)
        return rolled

    def rolled(self, loop: For, around: Stmt, marked: _Marked, buffer: Buffer) -> Stmt:
        """Returns `around`, which contains `loop`, with the memory of `buffer` allocated around it and rolling along `loop`;
        `around` itself where the region does not move along `loop` by a fixed overlap.
        """
        realize = marked.realized.get(buffer)
        if realize is None or any(v in marked.bound for r in realize.bounds for e in r.child_nodes() for v in variables(e)):
            return around
        moving = moving_dimension(realize.bounds, loop.loop_var, self.analyzer)
        if isinstance(moving, str) or _has_windows(realize.body, buffer):
            return around
        low = realize.bounds[moving.dim].min
        known = build.add(low, moving.overlap)
        first = build.less(loop.loop_var, build.add(loop.min, 1))
        around = _Rolled(buffer, moving, first, known)(around)
        bounds = list(realize.bounds)
        bounds[moving.dim] = Range.from_min_extent(build.const(0, low.dtype), moving.extent)
        return BufferRealize(buffer, tuple(bounds), realize.condition, around)


def _has_windows(body: Stmt, buffer: Buffer) -> bool:
    """Tells whether an intrinsic takes a region of `buffer`, whose rows must then be consecutive."""
    return any(isinstance(node, AttrStmt) and node.attr_key == BIND_SCOPE and node.node[1] is buffer
               for node in post_order(body))


class _Rolled(Rewriter):
    """Removes the realization of `buffer` and wraps its indices around; elements that an earlier iteration computed are not
    stored again.
    """

    def __init__(self, buffer: Buffer, moving: Moving, first: Expr, known: Expr) -> None:
        super().__init__()
        self.buffer, self.moving, self.first, self.known = buffer, moving, first, known

    def rewrite(self, node: Any) -> Any:
        match node:
            case BufferRealize(buffer=buffer) if buffer is self.buffer:
                return node.body
            case AttrStmt(node=buffer, attr_key=key) if buffer is self.buffer and key == SCOPE:
                return node.body
            case BufferLoad(buffer=buffer, indices=indices) if buffer is self.buffer:
                return BufferLoad(buffer, self.around(indices))
            case BufferStore(buffer=buffer, indices=indices) if buffer is self.buffer:
                new = build.greater_equal(indices[self.moving.dim], self.known)
                return IfThenElse(build.logical_or(self.first, new), node.replace(indices=self.around(indices)))
            case _:
                return node

    def around(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        dim = self.moving.dim
        extent = build.cast(indices[dim].dtype, self.moving.extent)
        return (*indices[:dim], build.floormod(indices[dim], extent), *indices[dim + 1:])


class _Unmarked(Rewriter):
    """Removes the marks that are left over."""

    def rewrite(self, node: Any) -> Any:
        return node.body if isinstance(node, AttrStmt) and node.attr_key == SCOPE else node
