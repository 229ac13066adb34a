"""Directives on the memory of a stage (storage_align, double_buffer, ...) as attributes that the passes read.

    attr [P] "buffer_dim_align" = (0, 16, 0);  realize P(region) {
      attr [P] "rolling_buffer_scope" = True;  { attr [P] "double_buffer_scope" = 1; P...;  C... } }
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.moving import moving_dimension
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import BufferLoad, Call
from tedsl.ir.iters import IterType, Range
from tedsl.ir.ops import TUPLE
from tedsl.ir.stmt import AttrStmt, BufferRealize, Stmt
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lower.compute import BufferOf
from tedsl.lower.plan import Program, StagePlan
from tedsl.schedule.attach import at_reader
from tedsl.schedule.causes import MemoryField, annotated, kept
from tedsl.schedule.memory_options import PLAIN


def produced(plan: StagePlan, program: Program, buffers: Sequence[Buffer], loops: Stmt) -> Stmt:
    """The loops that compute a stage, under an attribute if its memory is double-buffered."""
    if not plan.stage.storage.double_buffer:
        return loops
    _check_early(plan, program)
    for buffer in reversed(buffers):
        loops = AttrStmt(buffer, "double_buffer_scope", build.const(1, "int32"), loops)
    return loops


def _check_early(plan: StagePlan, program: Program) -> None:
    """Refuses a double buffer that cannot be filled one iteration ahead."""
    host = plan.host
    if host is None:
        raise _refused(plan, "double_buffer",
                       f"{plan.name} is double-buffered and computed at the root: there is no next iteration to fill",
                       f"call {at_reader(plan.stage)}: the copies change with that loop")
    loop = host.loops[plan.position]
    where = f"{plan.name} is double-buffered at loop {loop.leaf.name} of {host.name}"
    if loop.attr.iter_type == IterType.PARALLELIZED or loop.attr.bind_thread is not None:
        raise _refused(plan, "double_buffer",
                       f"{where}, which is {loop.attr.describe()}: its iterations do not follow one another",
                       f"split {loop.leaf.name} and compute {plan.name} at the inner, serial loop")
    if any(loop.var in set(variables(plan.extents[axis])) for axis in plan.data_axes):
        raise _refused(plan, "double_buffer", f"{where}, and how much of it is computed changes from one iteration to the next",
                       "choose a loop along which the region keeps its size")
    stages = plan.stage.schedule.stage_map
    needed = {stages[read.tensor.op] for reader in (plan, *program.inside(plan)) for read in reader.reads}
    for other in program.guests_at(host, plan.position):
        if other.stage in needed and not other.stage.storage.double_buffer:
            rolling = other.stage.storage.rolling
            raise _refused(plan, "double_buffer", f"{where}, and reads {other.name}, which is computed in the same iteration: "
                           f"what the next iteration needs of {other.name} is not there yet",
                           f"leave {plan.stage.written}.double_buffer() out, or {other.stage.written}.rolling_buffer(), and "
                           f"then call {other.stage.written}.compute_root()" if rolling else
                           f"double-buffer {other.name} too, or call {other.stage.written}.compute_root()")


def realized(plan: StagePlan, buffer: Buffer, region: tuple[Range, ...], body: Stmt,
             analyzer: Analyzer | None = None) -> Stmt:
    """`body` inside the allocation of one output of a stage, under the attributes of that memory."""
    said = plan.stage.storage
    if said.rolling:
        _check_rolling(plan, region, analyzer or Analyzer())
        body = AttrStmt(buffer, "rolling_buffer_scope", build.true(), body)
    stmt: Stmt = BufferRealize(buffer, region, build.true(), body)
    for alignment in said.alignments:
        numbers = tuple([build.const(value, "int32") for value in (alignment.dim, alignment.factor, alignment.offset)])
        stmt = AttrStmt(buffer, "buffer_dim_align", Call(HANDLE, TUPLE, numbers), stmt)
    return stmt


def _check_rolling(plan: StagePlan, region: tuple[Range, ...], analyzer: Analyzer) -> None:
    """Refuses a rolling buffer unless a fixed part of the region is reused by the next iteration."""
    host = plan.host
    if host is None:
        raise _refused(plan, "rolling",
                       f"{plan.name} is in a rolling buffer and computed at the root: nothing of it is computed twice",
                       f"call {at_reader(plan.stage)}, at the loop along which it rolls")
    loop = host.loops[plan.position]
    where = f"{plan.name} cannot roll along loop {loop.leaf.name} of {host.name}"
    if loop.attr.iter_type == IterType.PARALLELIZED or loop.attr.bind_thread is not None:
        raise _refused(plan, "rolling", f"{where}, which is {loop.attr.describe()}: its iterations do not follow one another",
                       f"split {loop.leaf.name} and compute {plan.name} at the inner, serial loop")
    if plan.padded:
        raise _refused(plan, "rolling", f"{where}: its own loops run beyond the region that is needed (round_up)",
                       "split them with another tail")
    if loop.var is not None:
        reason = moving_dimension(region, loop.var, analyzer)
        if isinstance(reason, str):
            raise _refused(plan, "rolling", f"{where}: {reason}", "compute it at another loop, one along which its region "
                           "slides in one dimension, or leave rolling_buffer out")


def _refused(plan: StagePlan, part: MemoryField, problem: str, hint: str) -> LoweringError:
    """An error about one directive on the memory of a stage; `part` is the field of its Storage."""
    return LoweringError(problem, hint=hint, about=kept(plan.stage, part))


def prefetching(plan: StagePlan, at: int, body: Stmt, memory: BufferOf) -> Stmt:
    """`body` of loop number `at` of a stage, under the attributes of the prefetches at that loop."""
    loop = plan.loops[at]
    for prefetched in reversed(loop.attr.prefetched):
        buffer = memory(prefetched.tensor)
        nodes = list(post_order(body))
        problem = ""
        if any(isinstance(node, BufferRealize) and node.buffer is buffer for node in nodes):
            problem = "is computed inside that loop: its values are not there yet"
        elif not any(isinstance(node, BufferLoad) and node.buffer is buffer for node in nodes):
            problem = "is not read inside that loop"
        if problem:
            raise LoweringError(f"{plan.name} prefetches {buffer.name} at loop {loop.leaf.name}, and {buffer.name} {problem}",
                                hint="prefetch at a loop around the reads, a tensor that is computed before it",
                                about=annotated(plan.stage, loop.leaf))
        if loop.var is not None:
            scope = "prefetch_spread_scope" if prefetched.is_spread else "prefetch_scope"
            body = AttrStmt(buffer, scope, prefetched.offset, body)
            if prefetched.into is not None:
                body = AttrStmt(memory(prefetched.into), "prefetch_into", build.const(1, "int32"), body)
    return body


def check_argument(plan: StagePlan, buffer: Buffer) -> None:
    """Refuses directives on the memory of a stage that is an argument of the function: the caller allocates that memory."""
    said = plan.stage.storage
    if said != PLAIN:  # equal, not the same: a schedule may have been pickled
        part: MemoryField = "alignments" if said.alignments else "double_buffer" if said.double_buffer else "rolling"
        what = {"alignments": "aligned", "double_buffer": "double-buffered", "rolling": "in a rolling buffer"}[part]
        raise _refused(plan, part, f"{plan.name} is {what}, and {buffer.name} is an argument: its memory is the caller's",
                       f"drop {buffer.name} from the arguments")
