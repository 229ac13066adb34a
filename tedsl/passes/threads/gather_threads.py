"""One launch per kernel: every thread axis is declared once, outermost, and has one variable.

before:  attr [blockIdx.x] "thread_extent" = 4 { for (k: 0, 8) {
           attr [threadIdx.x] "thread_extent" = 16 { S[threadIdx.x] = ... };
           attr [threadIdx.x_1] "thread_extent" = 16 { ... = S[threadIdx.x_1] } } }
after:   attr [blockIdx.x] "thread_extent" = 4; attr [threadIdx.x] "thread_extent" = 16 {
           for (k: 0, 8) { S[threadIdx.x] = ...; ... = S[threadIdx.x] } }

All threads of a launch run all of its statements; a statement that names no thread axis is run by each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Let, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.stmt import LAUNCH, Allocate, AttrStmt, Evaluate, For, ForKind, LetStmt, Stmt, Store
from tedsl.ir.walk.around import Loop
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import BLOCK_TAGS, THREAD_TAGS, has_launch, launched
from tedsl.passes.races.may_meet import Axes
from tedsl.record import record

ORDER = (*BLOCK_TAGS, *THREAD_TAGS)


@record(eq=False)
class Thread:
    """A thread axis of a kernel and its number of threads."""

    axis: IterVar
    count: Expr

    @property
    def var(self) -> Var:
        return self.axis.var

    @property
    def loop(self) -> Loop:
        """Returns the threads as a loop over them."""
        return Loop(self.var, IntImm(self.var.dtype, 0), self.count)

    @property
    def is_block(self) -> bool:
        return self.axis.thread_tag in BLOCK_TAGS

    @property
    def is_single(self) -> bool:
        return build.as_int(self.count) == 1


@record(eq=False)
class Kernel:
    """A launch: its axes, those of blockIdx.z to threadIdx.x that it has, and the statements that each thread runs."""

    axes: tuple[Thread, ...]
    body: Stmt

    @property
    def blocks(self) -> list[Thread]:
        return [thread for thread in self.axes if thread.is_block]

    @property
    def threads(self) -> list[Thread]:
        """The axes of a block that have more than one thread, the last one fastest."""
        return [thread for thread in self.axes if not thread.is_block and not thread.is_single]

    def distinct_threads(self) -> Axes:
        """The threads of one block as axes for `may_meet`."""
        shared = [thread for thread in self.axes if thread.is_block or thread.is_single]
        return Axes([thread.loop for thread in self.threads], [thread.loop for thread in shared])

    @property
    def running(self) -> Kernel:
        """The kernel with 0 substituted for axes that have a single thread."""
        single: dict[Var, Expr] = {thread.var: IntImm(thread.var.dtype, 0) for thread in self.axes if thread.is_single}
        return Kernel(self.axes, substitute(self.body, single) if single else self.body)

    def launched(self, body: Stmt) -> Stmt:
        """Returns `body` on the threads of this kernel."""
        for thread in reversed(self.axes):
            body = AttrStmt(thread.axis, LAUNCH, thread.count, body)
        return body


def loops_over(axes: Sequence[Thread], body: Stmt) -> Stmt:
    """Returns loops that run `body` once for each thread of `axes`, the last axis fastest."""
    for thread in reversed(axes):
        var = copy_var(thread.var)
        body = For(var, IntImm(var.dtype, 0), thread.count, ForKind.SERIAL, substitute(body, {thread.var: var}))
    return body


def gather_threads(func: PrimFunc) -> PrimFunc:
    """Moves the launches of each kernel to its outside; a function without kernels is returned unchanged."""
    return func.with_body(_Gatherer()(func.body)) if has_launch(func.body) else func


class _Gatherer(ScopedRewriter):
    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if launched(stmt) is None:
            return self.descend(stmt)
        kernel = _gathered(stmt)
        return kernel.launched(kernel.body)


def kernel_of(stmt: Stmt) -> Kernel:
    """Returns the kernel that begins at the launch `stmt`, after `gather_threads`."""
    axes = []
    while isinstance(stmt, AttrStmt) and (axis := launched(stmt)) is not None:
        axes.append(Thread(axis, stmt.value))
        stmt = stmt.body
    return Kernel(tuple(axes), stmt)


def with_kernel_bodies(func: PrimFunc, change: Callable[[Kernel], Stmt]) -> PrimFunc:
    """Returns `func`, whose launches are gathered, with the body of each of its kernels replaced by what `change` makes of the
    kernel; `func` itself if nothing changes.
    """
    return func.with_body(_Bodies(change)(func.body)) if has_launch(func.body) else func


class _Bodies(ScopedRewriter):
    def __init__(self, change: Callable[[Kernel], Stmt]) -> None:
        self.change = change

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if launched(stmt) is None:
            return self.descend(stmt)
        kernel = kernel_of(stmt)
        body = self.change(kernel)
        return stmt if body is kernel.body else kernel.launched(body)


def _gathered(stmt: Stmt) -> Kernel:
    threads: dict[str, Thread] = {}
    renamed: dict[Var, Expr] = {}
    analyzer = Analyzer()
    for node in _outside_in(stmt):
        axis = launched(node)
        assert axis is not None
        tag, count = axis.thread_tag, node.value
        if tag not in ORDER:
            raise LoweringError(f"the kernel launches {axis.name} with the tag {tag!r}; known are {', '.join(ORDER)}",
                                about=tag)
        known = threads.setdefault(tag, Thread(axis, count))
        if known.var is not axis.var:
            renamed[axis.var] = known.var
        if not analyzer.can_prove(build.equal(*build.match_operands(known.count, count))):
            raise LoweringError(f"the kernel launches {shown(known.count)} threads of {tag} and then {shown(count)}: a launch "
                                "has one number",
                                hint="give the loops that are bound to it the same number of iterations, and guard the body",
                                about=tag)
    _check_counts(stmt, threads)
    body = _Bare()(stmt)
    return Kernel(tuple(threads[tag] for tag in ORDER if tag in threads), substitute(body, renamed) if renamed else body)


def _outside_in(stmt: Stmt) -> list[AttrStmt]:
    """Returns the launches in `stmt`, outer ones before inner ones."""
    return [node for node in reversed(list(post_order(stmt))) if isinstance(node, AttrStmt) and launched(node) is not None]


def _check_counts(stmt: Stmt, threads: dict[str, Thread]) -> None:
    """Raise LoweringError for a number of threads that depends on a variable of the kernel: it is needed before the launch."""
    inside: set[Var] = {thread.var for thread in threads.values()}
    for node in post_order(stmt):
        match node:
            case For(loop_var=v) | LetStmt(var=v) | Let(var=v) | Allocate(buffer_var=v):
                inside.add(v)
    for thread in threads.values():
        wrong = [v.name for v in variables(thread.count) if v in inside]
        if wrong:
            raise LoweringError(f"the number of threads of {thread.axis.thread_tag}, {shown(thread.count)}, depends on "
                                f"{wrong[0]}, which the kernel itself defines: it is not known when the threads are launched",
                                hint="split the bound loop by a constant and bind the inner loop", about=thread.axis.thread_tag)


class _Bare(ScopedRewriter):
    """Removes launches and keeps their bodies."""

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        bare = self.descend(stmt)
        return bare.body if isinstance(bare, AttrStmt) and launched(bare) is not None else bare
