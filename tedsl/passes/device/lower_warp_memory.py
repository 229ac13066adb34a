"""Memory of a warp becomes registers of its threads, whose values the others get by shuffles; or else shared memory.

before:  allocate(W, [32], warp);  W[threadIdx.x] = A[threadIdx.x];  B[threadIdx.x] = W[31 - threadIdx.x]
after:   allocate(W, [1], local);  W[0] = A[threadIdx.x]
         B[threadIdx.x] = tvm_warp_shuffle(mask, W[0], 31 - threadIdx.x, 32, 32)

A warp is a row of threads along threadIdx.x. Its memory is dealt out in turns of m elements, so that each thread stores to its
own part: element e lies in thread (e // m) % n, at (e // (m*n))*m + e % m. A load must be run by all threads, and from the same
place of each thread's part. Where that does not hold, or a row is not a part of a hardware warp, the memory becomes shared
memory with one part for each row; the barriers that it needs are inserted after this pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import INT32, dtype
from tedsl.ir.expr import Broadcast, Call, Expr, IntImm, Load, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE, WARP_SHUFFLE
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, Evaluate, For, IfThenElse, Stmt, Store, While
from tedsl.ir.types import PointerType, PrimType
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.threads.gather_threads import Kernel, Thread, with_kernel_bodies
from tedsl.passes.threads.uniform import Uniformity
from tedsl.record import record
from tedsl.target.target import Target


def lower_warp_memory(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func`, whose launches are gathered, without memory of warps; itself if it has none."""
    if not any(_is_of_warp(node) for node in post_order(func.body)):
        return func
    return with_kernel_bodies(func, lambda kernel: _Allocations(kernel, target.thread_warp_size)(kernel.body))


def _is_of_warp(node: Node) -> bool:
    return isinstance(node, Allocate) and scope_of(node.buffer_var.type_annotation) == "warp"


class _Allocations(ScopedRewriter):
    """Replaces the memory of warps of one kernel."""

    def __init__(self, kernel: Kernel, warp: int) -> None:
        self.kernel, self.warp = kernel, warp

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if isinstance(stmt, Allocate) and _is_of_warp(stmt):
            stmt = _in_registers(stmt, self.kernel, self.warp) or _in_shared(stmt, self.kernel)
        return self.descend(stmt)


def _size(stmt: Allocate) -> int:
    size = stmt.dtype.lanes
    for extent in stmt.extents:
        known = build.as_int(extent)
        if known is None:
            raise LoweringError(f"the size of {stmt.buffer_var.name}, {shown(extent)}, is not a constant: memory of a warp "
                                "has a fixed size", hint="split the loop by a constant")
        size *= known
    return size


def _renamed(memory: Var, scope: str) -> Var:
    annotation = memory.type_annotation
    assert isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType)
    return pointer_var(memory.name, annotation.element_type.dtype, scope)


# --- shared memory ----------------------------------------------------------------------------------------------------


def _in_shared(stmt: Allocate, kernel: Kernel) -> Allocate:
    """Returns the allocation in shared memory, with a part for each row of threads."""
    size, row, rows = _size(stmt), build.const(0, INT32), 1
    for thread in reversed(kernel.threads):
        if thread.axis.thread_tag != "threadIdx.x":
            row = build.add(row, build.mul(build.cast(INT32, thread.var), rows))
            count = build.as_int(thread.count)
            if count is None:
                raise LoweringError(f"memory of a warp needs a constant number of threads, and {thread.axis.thread_tag} has "
                                    f"{shown(thread.count)}", about=thread.axis.thread_tag)
            rows *= count
    memory = _renamed(stmt.buffer_var, "shared")
    moved = _Moved(stmt.buffer_var, memory, build.mul(row, size))
    return stmt.replace(buffer_var=memory, extents=(build.const(size * rows, INT32),), body=moved(stmt.body))


class _Moved(Rewriter):
    """Replaces a memory by another one, in which its elements begin at `start`."""

    def __init__(self, old: Var, new: Var, start: Expr) -> None:
        super().__init__()
        self.old, self.new, self.start = old, new, start

    def rewrite(self, node: Node) -> Node:
        if isinstance(node, (Load, Store)) and node.buffer_var is self.old:
            start = build.cast(node.index.dtype.element, self.start)
            start = start if node.index.dtype.lanes == 1 else Broadcast(start, node.index.dtype.lanes)
            return node.replace(buffer_var=self.new, index=build.add(node.index, start))
        return node


# --- registers --------------------------------------------------------------------------------------------------------


@record(eq=False)
class _Deal:
    """How the elements of a memory are dealt out to the `count` threads of a row along `thread`: `turn` elements at a time."""

    thread: Var
    count: int
    turn: int
    analyzer: Analyzer

    def owner(self, index: Expr) -> Expr:
        return self.analyzer.simplify(build.floormod(build.floordiv(index, self.turn), self.count))

    def place(self, index: Expr) -> Expr:
        rows = build.mul(build.floordiv(index, self.turn * self.count), self.turn)
        return self.analyzer.simplify(build.add(rows, build.floormod(index, self.turn)))

    def is_own(self, index: Expr) -> bool:
        return self.analyzer.can_prove(build.equal(self.owner(index), build.cast(index.dtype, self.thread)))


def _in_registers(stmt: Allocate, kernel: Kernel, warp: int) -> Allocate | None:
    """Returns the allocation in registers of the threads; None if they cannot hold it."""
    size, row = _size(stmt), next((t for t in kernel.threads if t.axis.thread_tag == "threadIdx.x"), None)
    count = None if row is None else build.as_int(row.count)
    if row is None or count is None or warp % count or stmt.dtype.lanes > 1:
        return None
    nodes = list(post_order(stmt.body))
    if any(node is stmt.buffer_var for node in nodes):  # handed to a call
        return None
    uses = [node for node in nodes if isinstance(node, (Load, Store)) and node.buffer_var is stmt.buffer_var]
    if any(node.index.dtype.lanes > 1 or node.predicate is not None for node in uses):
        return None
    mask = _mask(kernel, warp)
    analyzer = _ranges(kernel, stmt.body)
    deal = _dealt(row, count, [node.index for node in uses if isinstance(node, Store)], analyzer)
    if deal is None or mask is None:
        return None
    memory = _renamed(stmt.buffer_var, "local")
    rewriter = _Dealt(stmt.buffer_var, memory, deal, mask, warp)
    uniform = Uniformity(kernel)
    others = [node for node in uses if isinstance(node, Load) and not deal.is_own(node.index)]
    if not all(_same_place(deal, node.index, uniform) for node in others) or not _all_take_part(stmt.body, others, uniform):
        return None
    part = -(-size // (deal.turn * count)) * deal.turn
    return stmt.replace(buffer_var=memory, extents=(build.const(part, INT32),), body=rewriter(stmt.body))


def _mask(kernel: Kernel, warp: int) -> Expr | None:
    """Returns the mask of the threads of a warp; None if the last warp of a block is not full."""
    total = 1
    for thread in kernel.threads:
        count = build.as_int(thread.count)
        if count is None:
            return None
        total *= count
    if total % warp and total > warp:
        return None
    return IntImm(dtype("uint32"), (1 << min(total, warp)) - 1)


def _ranges(kernel: Kernel, body: Stmt) -> Analyzer:
    analyzer = Analyzer()
    for thread in kernel.axes:
        analyzer.bind(thread.var, Range.from_min_extent(IntImm(thread.var.dtype, 0), thread.count))
    for node in reversed(list(post_order(body))):
        if isinstance(node, For):
            analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent))
    return analyzer


def _dealt(row: Thread, count: int, stores: Sequence[Expr], analyzer: Analyzer) -> _Deal | None:
    """Returns the deal in which every thread stores to its own part; None if there is none."""
    turns = {_coefficient(index, row.var, analyzer) for index in stores}
    if len(turns) != 1 or (turn := turns.pop()) is None or turn < 1:
        return None
    deal = _Deal(row.var, count, turn, analyzer)
    return deal if all(deal.is_own(index) for index in stores) else None


def _coefficient(index: Expr, var: Var, analyzer: Analyzer) -> int | None:
    """Returns by how much `index` grows from thread to thread, if that is a constant."""
    step = build.sub(substitute(index, {var: build.add(var, IntImm(var.dtype, 1))}), index)
    return build.as_int(analyzer.simplify(step))


def _same_place(deal: _Deal, index: Expr, uniform: Uniformity) -> bool:
    """Tells whether all threads of the row name the same place of their parts."""
    place = deal.place(index)
    return deal.thread not in variables(place) and not uniform.varies(place)


def _all_take_part(body: Stmt, loads: Sequence[Load], uniform: Uniformity) -> bool:
    """Tells whether no load of `loads` stands under a condition, or in a loop, that differs among the threads."""
    wanted = set(loads)

    def inside(node: Node) -> bool:
        return any(inner in wanted for inner in post_order(node))

    for node in post_order(body):
        match node:
            case IfThenElse(condition=condition) | While(condition=condition):
                apart = uniform.varies(condition) and inside(node)
            case For(min=low, extent=extent):
                apart = (uniform.varies(low) or uniform.varies(extent)) and inside(node)
            case Call(op=op, args=args) if op is IF_THEN_ELSE:
                apart = uniform.varies(args[0]) and inside(node)
            case _:
                apart = False
        if apart:
            return False
    return True


class _Dealt(Rewriter):
    """Replaces the accesses to a memory of a warp by those of the registers of its threads."""

    def __init__(self, old: Var, new: Var, deal: _Deal, mask: Expr, warp: int) -> None:
        super().__init__()
        self.old, self.new, self.deal, self.mask, self.warp = old, new, deal, mask, warp

    def rewrite(self, node: Node) -> Node:
        if not isinstance(node, (Load, Store)) or node.buffer_var is not self.old:
            return node
        index = self.deal.place(node.index)
        if isinstance(node, Store):
            return node.replace(buffer_var=self.new, index=index)
        own = node.replace(buffer_var=self.new, index=index)
        if self.deal.is_own(node.index):
            return own
        width, size = build.const(self.deal.count, INT32), build.const(self.warp, INT32)
        lane = build.cast(INT32, self.deal.owner(node.index))
        return Call(node.dtype, WARP_SHUFFLE, (self.mask, own, lane, width, size))
