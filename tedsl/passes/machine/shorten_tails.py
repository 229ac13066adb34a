"""End a long loop where its guards cease to hold.

before:  for (i: 0, 1048576) { if (base + i < n) { B[base + i] = .. } }
after:   for (i: 0, max(min(1048576, n - base), 0)) { B[base + i] = .. }

What a symbolic end leaves of a long loop in a parallel one is at most one iteration, in the last task:

before:  for (i: 0, max((o + 1)*1024 - floordiv(n, 16), 0)) { if (floordiv(n, 16)*16 + i*16 + lane < n) { B[..] = .. } }
after:   if (floordiv(n, 16) < (o + 1)*1024 && floormod(n, 16) >= 1) { B[..] = .. if (floordiv(n, 16)*16 + lane < n) }

A split by a large constant leaves such a loop as its tail, which would test its guard a million times although few iterations
of a symbolic extent remain. Short loops keep constant extents, which later passes handle better: they are shortened where
their guards end at a constant.
"""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, Store, is_no_op
from tedsl.ir.walk.contents import MASKED, contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.conjunctions import conjuncts, mask_parts, without_likely
from tedsl.passes.facts.guard_ranges import guard_end
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.folding import fold_with, folded_copy
from tedsl.passes.loops.partition_loops import REST, TAIL, is_long, partition_loops
from tedsl.passes.remove_no_ops import remove_no_ops
from tedsl.passes.simplify import simplify, simplify_changed


def shorten_tails(func: PrimFunc) -> PrimFunc:
    """Returns `func` with long guarded loops shortened to end where their guards cease to hold, so that at most their last
    iterations need masks.
    """
    if not any(is_long(stmt) or _is_rest(stmt) for stmt in statements(func.body)):
        return func
    shortener = _Shortener()
    body = shortener(func.body)
    if body is func.body:
        return func
    if not shortener.again:
        return remove_no_ops(simplify_changed(func.with_body(body), func))
    return remove_no_ops(simplify(partition_loops(simplify(func.with_body(body)), constant_loops=True, masks=True)))


def _is_rest(node: object) -> bool:
    """Tells whether `node` is a loop of a constant number of iterations that its guards may end at a constant: what a main part
    left of a loop, or one that has masks. Or what one that ends at a symbolic place left of a long loop.
    """
    if _is_behind(node):
        return True
    return isinstance(node, For) and node.kind == ForKind.SERIAL and isinstance(node.extent, IntImm) \
        and node.extent.value > 1 and (TAIL in node.annotations or contains(node, MASKED))


def _is_behind(node: object) -> bool:
    """Tells whether `node` is what a symbolic end left of a long loop."""
    return isinstance(node, For) and node.annotations.get(TAIL) == REST


class _Shortener(ScopedRewriter):
    """Shortens loops bottom-up. done: whether a loop has been shortened since it was last reset to False."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.done = False
        self.again = False  # whether loops have been shortened whose parts may be split again

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if not isinstance(stmt, For):
            return self.descend(stmt)
        self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
        outside, self.done = self.done, False
        new = self.descend(stmt)
        if _is_behind(new):
            self.done = self.done or outside
            return self.last(new)
        if is_long(new) or _is_rest(new):
            new = self.shortened(new)
        if self.done and TAIL in new.annotations and not _is_behind(new):  # with its new ends it is worth a look again
            new = new.replace(annotations={k: v for k, v in new.annotations.items() if k != TAIL})
        self.done = self.done or outside
        return new

    def last(self, loop: For) -> Stmt:
        """Returns a rest of a long loop as a single iteration, under a condition, if it is not more."""
        effects, count = self.ending(loop)
        if count is None or not self.analyzer.can_prove(build.less_equal(count, 1)):
            return self.shortened(loop)
        some = self.analyzer.simplify(build.logical_and(build.greater(loop.extent, 0), build.greater(count, 0)))
        return IfThenElse(some, folded_copy(loop.body, {loop.loop_var: loop.min}), None)

    def ending(self, loop: For) -> tuple[_Effects, Expr | None]:
        """Returns the effects in `loop`, and the number of iterations after which it has none, if that is known."""
        effects = _Effects(loop, self.analyzer)
        if not effects.visit(loop.body, (), ()) or len(effects.ends) != 1:
            return effects, None
        (end,) = effects.ends.values()
        return effects, build.sub(build.cast(loop.extent.dtype, end), loop.min)

    def shortened(self, loop: For) -> For:
        effects, count = self.ending(loop)
        if count is None:
            return loop
        if self.analyzer.can_prove(build.greater_equal(count, loop.extent)):
            return loop
        extent = self.analyzer.simplify(build.maximum(build.minimum(count, loop.extent), 0))
        if not is_long(loop) and not _is_behind(loop) and not isinstance(extent, IntImm):
            return loop
        self.done = True
        self.again = self.again or not _is_behind(loop)
        return loop.replace(extent=extent, body=fold_with(loop.body, dict.fromkeys(effects.exact, build.true())))


class _Effects:
    """Collects the values of the loop variable from which on the guards around each effect in the body fail.

    ends: these values, each once. exact: the guards that hold for all smaller values.
    """

    def __init__(self, loop: For, analyzer: Analyzer) -> None:
        self.var, self.analyzer = loop.loop_var, analyzer
        self.number = Numbering()
        self.ends: dict[int, Expr] = {}
        self.exact: dict[Expr, None] = {}
        self.bound: set[Var] = set()

    def visit(self, stmt: Stmt, guards: tuple[Expr, ...], inner: tuple[For, ...]) -> bool:
        """Tells whether every effect in `stmt` is under a guard whose end is known."""
        match stmt:
            case SeqStmt():
                return all(self.visit(part, guards, inner) for part in stmt.seq)
            case IfThenElse():
                known = (*guards, *(without_likely(part) for part in conjuncts(stmt.condition)))
                other = stmt.else_case is None or self.visit(stmt.else_case, guards, inner)
                return other and self.visit(stmt.then_case, known, inner)
            case For():
                return self.visit(stmt.body, guards, (*inner, stmt))
            case LetStmt():
                self.bound.add(stmt.var)
                return self.visit(stmt.body, guards, inner)
            case Allocate() | AttrStmt():
                return self.visit(stmt.body, guards, inner)
            case Store():
                masks = mask_parts(stmt.predicate) if stmt.predicate is not None else []
                return self.effect((*guards, *masks), inner)
            case Evaluate():
                return is_no_op(stmt) or self.effect(guards, inner)
            case _:
                return False

    def effect(self, guards: tuple[Expr, ...], inner: tuple[For, ...]) -> bool:
        for guard in guards:
            if any(isinstance(node, Load) or node in self.bound for node in post_order(guard)):
                continue
            end = guard_end(guard, self.var, inner, self.analyzer)
            if end is not None:
                self.ends.setdefault(self.number(end), end)
                if guard.dtype.lanes == 1 and not any(node is loop.loop_var for loop in inner for node in post_order(guard)):
                    self.exact[guard] = None
                return True
        return False
