"""Reductions across threads as exchanges of values: by shuffles inside of a warp, through shared memory beyond.

before:  attr [sum] "reduce_scope" { tvm_thread_allreduce(1, L[0], condition, R, threadIdx.x) }           on 64 threads
after:   if (condition) { R[0] = L[0] } else { R[0] = 0 }
         let t = tvm_warp_shuffle_down(mask, R[0], 16, 32, 32) { R[0] = R[0] + t }       and by 8, 4, 2, 1
         if (lane == 0) { S[warp] = R[0] }
         tvm_storage_sync("shared")
         R[0] = S[lane % 2];  let t = tvm_warp_shuffle_down(mask, R[0], 1, 2, 32) { R[0] = R[0] + t }
         R[0] = tvm_warp_shuffle(mask, R[0], 0, 32, 32)

Each thread holds its value in R, where the result stands for all in the end. Threads that are reduced together and lie in one
part of a warp need no memory; those of several whole warps, or of a whole block, leave one value per warp in shared memory,
which each warp then combines. All others, and devices without warps, halve the values in shared memory, with a barrier for each
step.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import INT32, DType, dtype
from tedsl.ir.expr import Call, CommReducer, Expr, IntImm, Load, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.ops import WARP_SHUFFLE, WARP_SHUFFLE_DOWN, Op
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, For, IfThenElse, LetStmt, Stmt, Store, While, seq
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.threads.allreduce import combined
from tedsl.passes.threads.gather_threads import Kernel, with_kernel_bodies
from tedsl.passes.threads.meetings import barrier, is_allreduce, reduction_parts
from tedsl.record import record
from tedsl.target.target import Target

UINT32 = dtype("uint32")


def lower_allreduce(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with the reductions across threads of its launches lowered; itself if there are none."""
    if not any(isinstance(node, Evaluate) and is_allreduce(node) for node in post_order(func.body)):
        return func
    return with_kernel_bodies(func, lambda kernel: _lowered(kernel, target.thread_warp_size))


def _lowered(kernel: Kernel, warp: int) -> Stmt:
    """Returns the body of the kernel with its reductions lowered, and the shared memory that they need."""
    reductions = _Reductions(kernel, warp)
    body = reductions(kernel.body)
    for memory, of, size in reductions.shared:
        body = Allocate(memory, of, (build.const(size, INT32),), build.true(), body)
    return body


@record(eq=False)
class _Group:
    """The threads whose values are combined: `count` of them in each of `groups` groups of the block.

    thread: the number of a thread in the block, as warps count; rank: in its group; group: the number of the group.
    adjacent: the threads of a group follow each other.
    """

    count: int
    groups: int
    thread: Expr
    rank: Expr
    group: Expr
    adjacent: bool


class _Reductions(ScopedRewriter):
    """Lowers the reductions of one kernel. shared: the memory that they need, with dtype and size."""

    def __init__(self, kernel: Kernel, warp: int) -> None:
        self.kernel, self.warp = kernel, warp
        self.shared: list[tuple[Var, DType, int]] = []
        self.loops = 0
        self.analyzer = Analyzer()
        for thread in kernel.threads:
            self.analyzer.bind(thread.var, Range.from_min_extent(IntImm(thread.var.dtype, 0), thread.count))

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                return stmt
            case AttrStmt() if isinstance(stmt.body, Evaluate) and is_allreduce(stmt.body):
                return self.reduction(stmt)
            case For() | While():
                self.loops += 1
                stmt = self.descend(stmt)
                self.loops -= 1
                return stmt
            case _:
                return self.descend(stmt)

    def reduction(self, stmt: AttrStmt) -> Stmt:
        assert isinstance(stmt.body, Evaluate)
        if not isinstance(stmt.node, CommReducer):
            raise LoweringError('tvm_thread_allreduce stands under a "reduce_scope" that is not a reducer of te.comm_reducer')
        (*values, condition), results, reduced = reduction_parts(stmt.body)
        group = self.group(reduced)
        own = _Values(stmt.node, results, [value.dtype for value in values])
        start = own.store(values)
        if not build.is_true(condition):
            start = IfThenElse(condition, start, own.store(stmt.node.identity_element))
        return seq(start, *self.across(own, group)) if group.count > 1 else start

    def across(self, own: _Values, group: _Group) -> list[Stmt]:
        if self.warp > 1 and group.adjacent and group.count <= self.warp and (_is_power(group.count) or group.groups == 1):
            return self.in_warp(own, group, group.rank, group.count)
        if self.warp > 1 and group.adjacent and group.count > self.warp and (
                group.count % self.warp == 0 or group.groups == 1) and group.count <= self.warp**2:
            return self.by_warps(own, group)
        return self.in_memory(own, group)

    def group(self, reduced: set[Var]) -> _Group:
        """Returns the groups of threads that differ along the axes `reduced` alone."""
        thread, rank, group = (build.const(0, INT32) for _ in range(3))
        total = count = groups = 1
        adjacent, others = True, False
        for axis in reversed(self.kernel.threads):
            size = build.as_int(axis.count)
            if size is None:
                tag = axis.axis.thread_tag
                raise LoweringError(f"a reduction across threads needs a constant number of them, and {tag} has "
                                    f"{shown(axis.count)}", hint="split the bound loop by a constant factor", about=tag)
            var = build.cast(INT32, axis.var)
            thread = build.add(thread, build.mul(var, total))
            if axis.var in reduced:
                adjacent, rank, count = adjacent and not others, build.add(rank, build.mul(var, count)), count * size
            else:
                others, group, groups = True, build.add(group, build.mul(var, groups)), groups * size
            total *= size
        return _Group(count, groups, self.simple(thread), self.simple(rank), self.simple(group), adjacent)

    def simple(self, e: Expr) -> Expr:
        return self.analyzer.simplify(e)

    # --- shuffles ---

    def mask(self, group: _Group) -> Expr:
        """Returns the mask of the threads of a warp: all, but in the last warp of a block that is not full."""
        total, everybody = group.count * group.groups, (1 << self.warp) - 1
        rest = total % self.warp
        if total < self.warp:
            return IntImm(UINT32, (1 << rest) - 1)
        if not rest:
            return IntImm(UINT32, everybody)
        return build.select(build.less(group.thread, total - rest), IntImm(UINT32, everybody), IntImm(UINT32, (1 << rest) - 1))

    def shuffle(self, op: Op, group: _Group, value: Expr, lane: Expr, width: int) -> Expr:
        of = build.const(width, INT32), build.const(self.warp, INT32)
        return Call(value.dtype, op, (self.mask(group), value, lane, *of))

    def distance(self, group: _Group, step: int) -> Expr:
        """Returns how far behind a thread the one is whose value it gets: `step`, or 0 where the block has none there."""
        total, far = group.count * group.groups, build.const(step, INT32)
        if total % self.warp == 0:
            return far
        return build.select(build.less(group.thread, total - step), far, build.const(0, INT32))

    def in_warp(self, own: _Values, group: _Group, rank: Expr, count: int) -> list[Stmt]:
        """Combines the values of the threads with ranks 0 to count - 1 of each part of a warp."""
        width = _power_above(count)
        return [*self.halved(own, group, width, rank, count), self.from_first(own, group, width)]

    def halved(self, own: _Values, group: _Group, width: int, rank: Expr, count: int) -> list[Stmt]:
        """Combines the values of each part of `width` threads in its first one; only ranks below `count` have values."""
        stmts, step = [], width // 2
        while step:
            distance = self.distance(group, step)
            news = [self.shuffle(WARP_SHUFFLE_DOWN, group, value, distance, width) for value in own.loads()]
            guard = None if count % width == 0 else self.simple(build.less(build.add(rank, step), count))
            stmts.append(own.take(news, guard))
            step //= 2
        return stmts

    def from_first(self, own: _Values, group: _Group, width: int) -> Stmt:
        """Returns the statement that gives the values of the first thread of each part of `width` threads to all of it."""
        first = build.const(0, INT32)
        return own.store([self.shuffle(WARP_SHUFFLE, group, value, first, width) for value in own.loads()])

    def by_warps(self, own: _Values, group: _Group) -> list[Stmt]:
        """Combines the values of each warp, then those of the warps of a group, which stand in shared memory."""
        warps = -(-group.count // self.warp)
        lane = self.simple(build.floormod(group.thread, self.warp))
        number = self.simple(build.floordiv(group.thread, self.warp))
        rest, width = group.count % self.warp, _power_above(warps)
        memories = self.memory(own, warps * group.groups + (0 < rest < width))
        put = IfThenElse(build.equal(lane, 0), seq(*[Store(m, v, number) for m, v in zip(memories, own.loads())]))
        part = build.floormod(lane, width) if width == warps else build.minimum(lane, warps - 1)
        first = build.mul(build.floordiv(number, warps), warps) if group.groups > 1 else build.const(0, INT32)
        at = self.simple(build.add(first, part))
        get = own.store([Load(of, m, at) for m, of in zip(memories, own.dtypes)])
        stmts = [*self.halved(own, group, self.warp, group.rank, group.count), *self.wait_for_readers(), put, barrier(), get]
        stmts += self.halved(own, group, width, lane, warps)
        if not 0 < rest < width:
            return [*stmts, self.from_first(own, group, self.warp)]
        result = build.const(warps, INT32)  # the last warp has too few threads: it gets the result of the first one
        give = IfThenElse(build.equal(group.thread, 0), seq(*[Store(m, v, result) for m, v in zip(memories, own.loads())]))
        return [*stmts, give, barrier(), own.store([Load(of, m, result) for m, of in zip(memories, own.dtypes)])]

    # --- shared memory ---

    def in_memory(self, own: _Values, group: _Group) -> list[Stmt]:
        """Combines values in shared memory: half of the threads take the values of the other half, then half of those."""
        memories = self.memory(own, group.count * group.groups)
        stride = 1 if group.adjacent else group.groups

        def place(rank: Expr) -> Expr:
            return self.simple(build.add(build.mul(group.group, group.count), rank) if group.adjacent
                               else build.add(build.mul(rank, stride), group.group))

        at = place(group.rank)
        stmts = [*self.wait_for_readers(), seq(*[Store(m, v, at) for m, v in zip(memories, own.loads())]), barrier()]
        left = group.count
        while left > 1:
            step = _power_above(left) // 2
            others = [Load(of, m, self.simple(build.add(at, step * stride))) for m, of in zip(memories, own.dtypes)]
            guard = build.less(group.rank, left - step)
            stmts += [IfThenElse(guard, combined(own.combiner, others, memories, at)), barrier()]
            left = step
        first = place(build.const(0, INT32))
        return [*stmts, own.store([Load(of, m, first) for m, of in zip(memories, own.dtypes)])]

    def memory(self, own: _Values, size: int) -> list[Var]:
        memories = [pointer_var(f"red_buf{len(self.shared) + k}", of, "shared") for k, of in enumerate(own.dtypes)]
        self.shared += [(memory, of, size) for memory, of in zip(memories, own.dtypes)]
        return memories

    def wait_for_readers(self) -> list[Stmt]:
        """Returns the barrier after which nobody reads what the iteration before left in the memory of a reduction."""
        return [barrier()] if self.loops else []


@record(eq=False)
class _Values:
    """What one thread has: a value in each of the memories `results`."""

    combiner: CommReducer
    results: Sequence[Var]
    dtypes: Sequence[DType]

    def loads(self) -> list[Expr]:
        return [Load(of, var, build.const(0, INT32)) for var, of in zip(self.results, self.dtypes)]

    def store(self, values: Sequence[Expr]) -> Stmt:
        return seq(*[Store(var, value, build.const(0, INT32)) for var, value in zip(self.results, values)])

    def take(self, values: Sequence[Expr], guard: Expr | None) -> Stmt:
        """Returns the statement that combines the values with `values`, which all threads compute; where `guard` holds."""
        names = [Var(f"t{k}", value.dtype) for k, value in enumerate(values)]
        body = combined(self.combiner, names, self.results, build.const(0, INT32))
        if guard is not None and not build.is_true(guard):
            body = IfThenElse(guard, body)
        for name, value in zip(reversed(names), reversed(values)):
            body = LetStmt(name, value, body)
        return body


def _is_power(count: int) -> bool:
    return count & (count - 1) == 0


def _power_above(count: int) -> int:
    """Returns the smallest power of two that is at least `count`."""
    return 1 << (count - 1).bit_length()
