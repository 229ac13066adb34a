"""Replace loops marked `unroll`, and serial loops that are short enough, by copies of their body.

before:  for (i: 0, 2) "unroll" { A[i] = 0 }          after:  A[0] = 0; A[1] = 0

A loop whose body is small is also unrolled where `pragma auto_unroll_max_step` (or the option) allows so many steps in
all; `pragma unroll_explicit` = False only marks it, and leaves the copies to the code generator.
"""

from __future__ import annotations

from dataclasses import replace

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import script
from tedsl.ir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, SeqStmt, Stmt, Store, Tensorized, is_no_op, seq
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.passes.config import UnrollConfig
from tedsl.passes.folding import Copier

LARGEST = 1 << 17  # steps in one unrolled loop: beyond it a compiler runs for minutes


def unroll_loops(func: PrimFunc, *, options: UnrollConfig = UnrollConfig()) -> PrimFunc:
    """Returns `func` with loops that are marked or short enough unrolled; LoweringError for a marked loop without a constant
    extent.
    """
    return func.with_body(_Unroller(options)(func.body))


class _Unroller(ScopedRewriter):
    """Unrolls bottom-up.

    After a statement was visited, `steps` is the number of stores and calls that it executes, `loops` the number of loops left
    in it, and `depth` the nesting depth of unrolled loops in it.
    """

    def __init__(self, options: UnrollConfig) -> None:
        self.options = options
        self.analyzer = Analyzer()
        self.steps = self.loops = self.depth = 0

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self.loop(stmt)
            case AttrStmt(attr_key="pragma_auto_unroll_max_step"):
                return self.under(stmt, replace(self.options, auto_max_step=_number(stmt.value)))
            case AttrStmt(attr_key="pragma_unroll_explicit"):
                return self.under(stmt, replace(self.options, explicit_unroll=bool(_number(stmt.value))))
            case SeqStmt():
                return self.sequence(stmt)
            case Store() | BufferStore():
                self.steps += 1
                return stmt
            case Tensorized(body=body):  # its formula is not code
                new = self.stmt(body)
                return stmt if new is body else stmt.replace(body=new)
            case Evaluate():
                self.steps += not is_no_op(stmt)
                return stmt
            case _:
                return self.descend(stmt)

    def under(self, pragma: AttrStmt, options: UnrollConfig) -> Stmt:
        outside, self.options = self.options, options
        body = self.stmt(pragma.body)
        self.options = outside
        return body

    def sequence(self, stmt: SeqStmt) -> Stmt:
        steps = loops = depth = 0
        parts = []
        for part in stmt.seq:
            self.steps = self.loops = self.depth = 0
            parts.append(self.stmt(part))
            steps, loops, depth = steps + self.steps, max(loops, self.loops), max(depth, self.depth)
        self.steps, self.loops, self.depth = steps, loops, depth
        return stmt if all(a is b for a, b in zip(parts, stmt.seq)) else seq(*parts)

    def loop(self, loop: For) -> Stmt:
        body = self.stmt(loop.body)
        count = self.count(loop.extent)
        if loop.kind == ForKind.UNROLLED and count is None:
            refuse_to_run(LoweringError(f"loop {loop.loop_var.name} is marked unroll but its extent {script(loop.extent)} is "
                                        "not a constant", hint="split it by a constant factor first, then unroll the inner "
                                        "loop", about=loop))
        changed = loop if body is loop.body else loop.replace(body=body)
        wanted = loop.kind == ForKind.UNROLLED or self.fits(loop.kind, count)
        if not wanted or count is None:
            self.loops += 1
            return changed
        self.steps *= max(count, 0)
        self.depth += 1
        if self.options.explicit_unroll or 0 <= count <= self.options.auto_max_extent:
            return self.copies(changed, count)
        return changed if loop.kind == ForKind.UNROLLED else changed.replace(kind=ForKind.UNROLLED)

    def count(self, extent: Expr) -> int | None:
        """Returns the number of iterations of a loop, None if it is not a constant. Expressions such as (n + 2) - n, which
        handwritten loops may have, are simplified first.
        """
        count = build.as_int(extent)
        return build.as_int(self.analyzer.simplify(extent)) if count is None else count

    def fits(self, kind: ForKind, count: int | None) -> bool:
        """Tells whether the options unroll a serial loop of `count` iterations whose body was just visited."""
        if kind != ForKind.SERIAL or count is None or count < 0 or self.loops or self.depth > self.options.auto_max_depth:
            return False
        return count * self.steps <= self.options.auto_max_step or count <= self.options.auto_max_extent

    def copies(self, loop: For, count: int) -> Stmt:
        if self.steps > LARGEST:
            raise LoweringError(f"unrolling loop {loop.loop_var.name} ({count} iterations) makes {self.steps} statements; "
                                f"the limit is {LARGEST}", hint=f"split {loop.loop_var.name} first, then unroll the inner loop",
                                about=loop)
        low, copy = loop.min, Copier(loop.body, loop.loop_var)
        return seq(*[copy(build.add(low, build.int_imm(low.dtype, k))) for k in range(count)])


def _number(value: Expr) -> int:
    number = build.as_int(value)
    if number is None:
        raise LoweringError(f"an unroll pragma takes an integer, not {value}")
    return number
