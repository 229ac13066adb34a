"""Split a loop where its guards begin and cease to hold, so that the main part runs without them.

before:  for (i.outer: 0, 7) { for (i.inner: 0, 8) { if likely((i.outer*8 + i.inner) < 50) { body } } }
after:   for (i.outer: 0, 6) { for (i.inner: 0, 8) { body } }
         for (i.inner: 0, 2) { body }

A guard is a condition marked `likely` (lowering marks those that it adds for splits that do not divide), and, with
`masks`, the predicate of a vector access or the condition of an `if_then_else` (the border of a padded image) where most
iterations gain and the body is small. It is removed by its outermost loop. In `build` a rest keeps its guard unless it is
small; with `tir.LoopPartition` it is split too. A parallel loop stays one loop: its body
becomes `if (i.outer < 6) { main } else { tail }`, in which a tail of one iteration has a constant for `i.outer`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, Call, Expr, IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, is_no_op, seq
from tedsl.ir.walk.contents import MASKED, contains, of_kinds
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.substitute import copy_var
from tedsl.ir.walk.visitor import statements
from tedsl.passes.facts.dependence import Dependence
from tedsl.passes.facts.guard_ranges import Interval, holding_interval
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.facts.threads import BLOCK_TAGS, as_loop, bind_launched, has_launch, launched
from tedsl.passes.folding import fold_with, folded_copy
from tedsl.passes.loops.loop_guards import Guard, guards_of

LONG = 1024  # iterations that a guard may let pass in vain
LARGEST = 4000  # stores in a loop that is copied: code growth stays bounded
HINT = "pragma_loop_partition_hint"  # the loop is split even if its extent is constant, also by conditions of users
_OPPOSITE = {LT: GE, LE: GT, GT: LE, GE: LT}
TAIL = "partition_tail"  # annotation of the loops beside a main part: they are not split again
REST = 2  # its value behind a main part of a long loop that ends at a symbolic place: `shorten_tails` ends them
BESIDE = 256  # the same for what runs beside a main part
SMALL = 64  # the same for conditions of users


def partition_loops(func: PrimFunc, *, constant_loops: bool = False, keep_single: bool = False,
                    masks: bool = False, asked_only: bool = False, widely: bool = False,
                    unroll_hinted: bool = False) -> PrimFunc:
    """Returns `func` with loops split by their guards.

    constant_loops: also loops of constant extent. keep_single: loops of one iteration stay loops. masks: predicates of
    loads and stores, and conditions of if_then_else, count as guards. asked_only: split only loops of splits whose tail is
    "partition". widely: also at equalities and inequalities, where guards fail in whole iterations, by conditions of selects,
    the loops before and after a main part, and the blocks of launches, which get branches; no mark `likely` is left.
    unroll_hinted: loops of a constant extent with a hint that no condition splits are marked to be unrolled. In any case loops
    of splits with tail "partition" are split, and those of splits with tail "mask" are not.
    """
    if asked_only and not any(isinstance(stmt, For) and _tail(stmt) == "partition" for stmt in statements(func.body)):
        return func
    hinted = not asked_only and (contains(func.body, HINT) or (widely and any(map(_has_hint, statements(func.body)))))
    if not hinted and not contains(func.body, LIKELY, *((IF_THEN_ELSE, MASKED) if masks else ())):
        return func
    split = _Partitioner(constant_loops, keep_single, masks, asked_only, widely, unroll_hinted)(func.body)
    return func.with_body(_Unmarked()(split) if widely else split)


class _Partitioner(ScopedRewriter):
    def __init__(self, constant_loops: bool, keep_single: bool, masks: bool, asked_only: bool, widely: bool,
                 unroll_hinted: bool) -> None:
        self.constant_loops, self.keep_single, self.masks, self.asked_only = constant_loops, keep_single, masks, asked_only
        self.widely, self.unroll_hinted = widely, unroll_hinted
        self.everywhere = widely or (constant_loops and not masks)
        self.analyzer = Analyzer()
        self.threads: tuple[For, ...] = ()  # launched around
        self.hinted: set[Var] = set()
        self.number = Numbering()
        self.depends = Dependence()

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store):
            return stmt
        if isinstance(stmt, AttrStmt) and stmt.attr_key == HINT and isinstance(stmt.node, IterVar) and not self.asked_only:
            self.hinted.add(stmt.node.var)
            return self.stmt(stmt.body)
        if not isinstance(stmt, For):
            whole = self.widely and not self.threads and launched(stmt) is not None
            return self.launch(stmt) if whole else self.under_launch(stmt)
        if TAIL in stmt.annotations:
            return stmt
        if _has_hint(stmt) and not self.asked_only:
            self.hinted.add(stmt.loop_var)
        alone = build.as_int(stmt.extent) == 1
        self.analyzer.bind(stmt.loop_var, stmt.min if alone else Range.from_min_extent(stmt.min, stmt.extent))
        return self.partition(stmt) if self.may_partition(stmt) else self.descend(stmt)

    def may_partition(self, loop: For) -> bool:
        if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or _tail(loop) == "mask":
            return False
        if _tail(loop) == "partition" or loop.loop_var in self.hinted:
            return True
        return not self.asked_only and (self.constant_loops or not _is_constant(loop))

    def under_launch(self, stmt: Stmt) -> Stmt:
        """Splits the loops inside a launch of threads at points that are the same for all threads, which run the loops
        together.
        """
        bind_launched(self.analyzer, stmt)
        outside, threads = self.threads, as_loop(stmt)
        self.threads = outside if threads is None else (*outside, threads)
        split = self.descend(stmt)
        self.threads = outside
        return split

    def launch(self, stmt: Stmt) -> Stmt:
        """Splits the blocks of a launch by branches around all that its threads run, inside of its memory."""
        heads: list[AttrStmt | Allocate] = []
        while isinstance(stmt, (AttrStmt, Allocate)) and not (isinstance(stmt, AttrStmt) and stmt.attr_key == HINT):
            bind_launched(self.analyzer, stmt)
            heads.append(stmt)
            stmt = stmt.body
        blocks = [loop for head in heads if (axis := launched(head)) is not None and axis.thread_tag in BLOCK_TAGS
                  and (loop := as_loop(head, blocks=True)) is not None]
        self.threads = tuple(loop for head in heads if (loop := as_loop(head)) is not None)
        if has_launch(stmt) or not any(map(self.may_partition, blocks)):
            stmt = self.stmt(stmt)
        for loop in reversed(blocks) if not has_launch(stmt) else ():
            if self.may_partition(loop):
                branches = self.partition(loop.replace(kind=ForKind.PARALLEL, body=stmt))
                assert isinstance(branches, For)
                stmt = branches.body
        self.threads = ()
        for head in reversed(heads):
            stmt = head.replace(body=stmt)
        return stmt

    def partition(self, loop: For) -> Stmt:
        guards = guards_of(loop, self.masks, self.widely, self.depends, hinted=loop.loop_var in self.hinted)
        stores = _stores(loop.body) if guards else 0
        guards = [guard for guard in guards if stores <= LARGEST and (not guard.from_user or _is_worth_copies(guard, stores))]
        if guards and self.ends_inside(loop):
            return self.descend(loop)
        low, high, gone = self.main_range(loop, guards)
        if not gone and self.everywhere:
            low, high, gone = self.main_range(loop, [replace(guard, fails=not guard.fails) for guard in guards])
        if not gone:
            return self.whole(loop)
        main = fold_with(loop.body, gone)
        if loop.kind == ForKind.PARALLEL:
            return self.branches(loop, low, high, main)
        return self.parts(loop, low, high, main)

    def ends_inside(self, loop: For) -> bool:
        """Tells whether a parallel `loop` of a symbolic extent does nothing but run a long one, which is split instead. Another
        version of that without guards would save a comparison for each iteration of `loop`, and be one more body.
        """
        asked = self.everywhere or self.asked_only or _tail(loop) == "partition" or loop.loop_var in self.hinted
        if asked or loop.kind is not ForKind.PARALLEL or isinstance(loop.extent, IntImm):
            return False
        parts = loop.body.seq if isinstance(loop.body, SeqStmt) else (loop.body,)
        if any(isinstance(part, For) and part.annotations.get(TAIL) == REST for part in parts):
            return True
        return is_long(loop.body) and all(isinstance(inside, For) and inside.kind is ForKind.VECTORIZED
                                           for inside in of_kinds(loop.body.body, For))

    def whole(self, loop: For) -> Stmt:
        """Returns a loop that no condition splits."""
        unrolled = self.unroll_hinted and loop.loop_var in self.hinted and loop.kind is ForKind.SERIAL and _is_constant(loop)
        return self.descend(loop.replace(kind=ForKind.UNROLLED) if unrolled else loop)

    def main_range(self, loop: For, guards: list[Guard]) -> tuple[Expr, Expr, dict[Expr, Expr]]:
        """Returns the first iteration at which guards hold, the end of these iterations, and the guards that hold throughout
        with what they are there: true, or false for an inequality, which is decided where it fails.

        A guard that would leave no iteration is kept.
        """
        low, high = loop.min, build.add(loop.min, loop.extent)
        gone: dict[Expr, Expr] = {}
        removed: dict[int, bool] = {}  # unrolled copies repeat their guards: each form is looked at once
        for guard in guards:
            key = self.number(guard.condition)
            if removed.get(key):
                gone[guard.condition] = guard.decided()
            if key in removed:
                continue
            removed[key] = False
            interval = self.interval(guard, loop.loop_var)
            if interval is None:
                continue
            new_low = low if interval.low is None else self.tightest(low, interval.low, upper=False)
            new_high = high if interval.high is None else self.tightest(high, interval.high, upper=True)
            if self.analyzer.can_prove(build.less_equal(new_high, new_low)):
                continue
            if guard.from_user and loop.loop_var not in self.hinted and not _most_of(loop, new_low, new_high):
                continue
            low, high = new_low, new_high
            gone[guard.condition] = guard.decided()
            removed[key] = True
        if low is not loop.min and not self.analyzer.can_prove(build.less_equal(low, build.add(loop.min, loop.extent))):
            low = self.tightest(low, build.add(loop.min, loop.extent), upper=True)  # the loop may end before its main part
        of = loop.loop_var.dtype  # a condition in int64 has its ends there; both are inside of the loop's own now
        return build.cast(of, low), build.cast(of, self.at_least(high, low)), gone

    def interval(self, guard: Guard, var: Var) -> Interval | None:
        """Returns the iterations of `var` in which a guard holds, or fails, as it is looked for."""
        condition, inner = guard.condition, (*self.threads, *guard.inner)
        if isinstance(condition, (EQ, NE)):
            return self.equal(condition, var, inner) if guard.fails is isinstance(condition, NE) else None
        if guard.fails:
            if not isinstance(condition, (LT, LE, GT, GE)):
                return None
            condition = _OPPOSITE[type(condition)](condition.a, condition.b)
        return holding_interval(condition, var, inner, self.analyzer)

    def equal(self, condition: EQ | NE, var: Var, inner: tuple[For, ...]) -> Interval | None:
        """Returns the iterations of `var` in which both sides of a comparison are equal."""
        if not self.widely or not condition.a.dtype.is_int:
            return None
        sides = [holding_interval(kind(condition.a, condition.b), var, inner, self.analyzer) for kind in (GE, LE)]
        lows = [side.low for side in sides if side is not None and side.low is not None]
        highs = [side.high for side in sides if side is not None and side.high is not None]
        return Interval(lows[0], highs[0]) if lows and highs else None

    def tightest(self, bound: Expr, other: Expr, *, upper: bool) -> Expr:
        return self.analyzer.simplify(build.minimum(bound, other) if upper else build.maximum(bound, other))

    def at_least(self, high: Expr, low: Expr) -> Expr:
        if self.analyzer.can_prove(build.greater_equal(high, low)):
            return high
        return self.analyzer.simplify(build.maximum(high, low))

    def branches(self, loop: For, low: Expr, high: Expr, main: Stmt) -> Stmt:
        """Returns a parallel loop whose body has the parts as branches, so that the work is distributed once."""
        v = loop.loop_var
        inside = build.less(v, high)
        if not self.same(low, loop.min):
            inside = build.logical_and(build.greater_equal(v, low), inside)
        rest = self.last(loop, low, high) or folded_copy(loop.body, {})
        parted = isinstance(high, IntImm)  # loops that end at symbolic places are shortened by a later pass
        return loop.replace(body=IfThenElse(inside, self.stmt(main), self.beside(rest) if parted else rest))

    def last(self, loop: For, low: Expr, high: Expr) -> Stmt | None:
        """The last iteration, of a constant number, if it alone is outside of the main ones, else None: its guards end at
        constants, so that its inner loops get main parts.
        """
        alone = self.same(low, loop.min) and build.as_int(build.sub(build.add(loop.min, loop.extent), high)) == 1
        return folded_copy(loop.body, {loop.loop_var: high}) if alone and isinstance(high, IntImm) else None

    def parts(self, loop: For, low: Expr, high: Expr, main: Stmt) -> Stmt:
        end = build.add(loop.min, loop.extent)
        is_rest = is_long(loop) and not isinstance(high, IntImm)
        tail = loop.replace(annotations={**loop.annotations, TAIL: REST if is_rest else 1})
        before = None if self.same(low, loop.min) else self.beside(self.piece(tail, loop.min, low, loop.body))
        after = None if self.same(high, end) else self.beside(self.piece(tail, high, end, loop.body))
        if is_no_op(main):
            return seq(before, after)
        extent = self.analyzer.simplify(build.sub(high, low))
        from_zero = build.as_int(low) == 0 == build.as_int(loop.min)
        core = self.shortened(loop, extent, main) if from_zero else self.piece(loop, low, high, main)
        return seq(before, self.stmt(core) if self.everywhere or self.is_single(extent) else self.descend(core), after)

    def shortened(self, loop: For, extent: Expr, main: Stmt) -> Stmt:
        """Returns the iterations from 0 on as the loop itself, with the body `main`: the pieces beside it are copies."""
        if self.is_single(extent):
            return folded_copy(main, {loop.loop_var: loop.min})
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, extent))
        return loop.replace(extent=extent, body=main)

    def beside(self, piece: Stmt) -> Stmt:
        """Returns the loop before or after the main one: partitioned as well if it is small, or where all loops are, since its
        inner loops then get main parts; else unchanged. A loop of a symbolic extent is not split again, only those inside.
        """
        if not self.everywhere:
            small = self.masks and _stores(piece) <= BESIDE
            return self.stmt(piece) if small else piece
        if isinstance(piece, For) and TAIL in piece.annotations:
            return self.stmt(_unmarked(piece)) if _is_constant(piece) else self.descend(piece)
        return self.stmt(piece)

    def is_single(self, extent: Expr) -> bool:
        return isinstance(extent, IntImm) and extent.value == 1 and not self.keep_single

    def piece(self, loop: For, low: Expr, high: Expr, body: Stmt) -> Stmt:
        """Returns the iterations from `low` to `high` as a loop, counted from 0 as all loops are."""
        extent = self.analyzer.simplify(build.sub(high, low))
        if self.is_single(extent):
            return folded_copy(body, {loop.loop_var: low})
        var = copy_var(loop.loop_var)
        zero = IntImm(low.dtype, 0)
        self.analyzer.bind(var, Range.from_min_extent(zero, extent))
        return loop.replace(loop_var=var, min=zero, extent=extent,
                            body=folded_copy(body, {loop.loop_var: build.add(var, low)}))

    def same(self, a: Expr, b: Expr) -> bool:
        return a is b or self.analyzer.can_prove(build.equal(a, b))


class _Unmarked(Rewriter):
    """Removes the marks `likely` of conditions, and those of loops beside main parts."""

    def rewrite(self, node: Any) -> Any:
        node = node.map_children(self)
        if isinstance(node, Call) and node.op is LIKELY:
            return node.args[0]
        return _unmarked(node) if isinstance(node, For) and TAIL in node.annotations else node


def _unmarked(loop: For) -> For:
    return loop.replace(annotations={key: value for key, value in loop.annotations.items() if key != TAIL})


def _has_hint(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and HINT in stmt.annotations


def _stores(stmt: Stmt) -> int:
    """Counts the stores in `stmt`."""
    return sum(isinstance(n, Store) for n in of_kinds(stmt, Store))


def _is_worth_copies(guard: Guard, stores: int) -> bool:
    """Tells whether to copy a body of so many stores for a condition of users: a small one, of which what the first loop around
    the condition holds is no lesser part. Else that loop may be split instead: the rows of an image that are copied with their
    border for a band of results.
    """
    return stores <= SMALL and (not guard.inner or 2 * _stores(guard.inner[0].body) >= stores)


def _most_of(loop: For, low: Expr, high: Expr) -> bool:
    """Tells whether the range low .. high has a constant size of at least half of the iterations of `loop`."""
    some, total = build.as_int(build.sub(high, low)), build.as_int(loop.extent)
    return some is not None and total is not None and 2 * some >= total


def is_long(stmt: Stmt) -> TypeGuard[For]:
    """Tells whether `stmt` is a serial loop of so many iterations that a pass lets it end where its guards do."""
    return isinstance(stmt, For) and stmt.kind is ForKind.SERIAL and isinstance(stmt.extent, IntImm) \
        and stmt.extent.value >= LONG


def _tail(loop: For) -> object:
    """Returns the `tail` that the schedule chose for the split behind `loop`, or None."""
    return loop.annotations.get("tail")


def _is_constant(loop: For) -> bool:
    return isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)
