"""Checks of the statements that a user wrote for an intrinsic, made where it is used; certain errors are refused.

    b.vstore([i + 1], ...)  for b of 4 elements, i in 0..4      element 4 of b is outside, whatever b stands for
    attr [threadIdx.x] "thread_extent" = 4 { b[threadIdx.x] }   in a loop that is bound to threadIdx.x: one thread each is left
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Call, Expr, Load, Ramp, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.script import shown
from tedsl.ir.stmt import LAUNCH, AttrStmt, BufferStore, Stmt, Store
from tedsl.ir.walk.around import Facts
from tedsl.ir.walk.substitute import Substitution, bind_once
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrin
from tedsl.lower.intrinsics.match import Use
from tedsl.lower.plan import Loop, StagePlan
from tedsl.lower.threads.around import hosts
from tedsl.lower.threads.written_memory import check_launches
from tedsl.lower.written.known_memory import BoundedIndex, MemoryTable, position
from tedsl.lower.written.statements import StatementChecker
from tedsl.schedule.causes import annotated


def check_part(part: str, use: Use, plan: StagePlan, at: int, buffers: Sequence[Buffer]) -> None:
    """Refuses one part (BODY, RESET or UPDATE) of an intrinsic if it is certainly wrong in place of the loops of `plan` from
    number `at` on, which compute `buffers`.
    """
    stmt: Stmt = getattr(use.intrin, part)
    cause = annotated(plan.stage, plan.loops[at].leaf) if at < len(plan.loops) else None
    for launch, tag in _launches(stmt):
        around = _bound_around(plan, at, tag)
        if around is not None:
            raise _launched_again(use.intrin, part, plan, launch, around, cause)
        check_launches(plan, launch, buffers)
    if plan.accesses is not Accesses.AT_RUN_TIME:
        check_accesses(part, use, plan.name, cause)


# --- threads ---------------------------------------------------------------------------------------------------------

def _launches(stmt: Stmt) -> Iterator[tuple[AttrStmt, str]]:
    """The thread launches in `stmt`, each with its tag."""
    for node in post_order(stmt):
        if isinstance(node, AttrStmt) and node.attr_key == LAUNCH and isinstance(node.node, IterVar):
            yield node, node.node.thread_tag


def _bound_around(plan: StagePlan, at: int, tag: str) -> tuple[StagePlan, Loop] | None:
    """The loop around loop number `at` of `plan` that is bound to threads of `tag`, with its stage."""
    for host, until in ((plan, at - 1), *hosts(plan)):
        for loop in host.loops[:until + 1]:
            if loop.attr.bind_thread is not None and loop.attr.bind_thread.thread_tag == tag:
                return host, loop
    return None


def _launched_again(intrin: TensorIntrin, part: str, plan: StagePlan, launch: AttrStmt, around: tuple[StagePlan, Loop],
                    cause: object) -> LoweringError:
    host, loop = around
    axis: IterVar = launch.node
    tag = axis.thread_tag
    loops = ", ".join(own.leaf.name for own in plan.loops)
    return LoweringError(
        f"the {part} of the intrinsic {intrin.name} in {plan.name} launches {shown(launch.value)} threads of {tag}, and loop "
        f"{loop.leaf.name} of {host.name} around it is bound to {tag}: each of these threads would do only its own part of "
        f"each region\n  loops: {loops}",
        hint=f"leave loop {loop.leaf.name} unbound or bind it to another axis, or write the {part} with a serial loop: "
             "with ib.for_range(...)", about=cause)


# --- accesses --------------------------------------------------------------------------------------------------------

def check_accesses(part: str, use: Use, stage: str, cause: object) -> None:
    """Refuses an access that is certain to leave the buffer that the intrinsic declares."""
    place = Substitution({var: build.cast(var.dtype, value) for var, value in use.values.items()})
    stmt: Stmt = bind_once(place(getattr(use.intrin, part)))
    if not any(isinstance(node, (Load, Store, BufferLoad, BufferStore)) for node in post_order(stmt)):
        return
    buffers = tuple(map(place.buffer, use.intrin.buffers))
    analyzer = Analyzer()
    analyzer.bind_sizes([dim for buffer in buffers for dim in buffer.shape], at_least=0)
    words = f"the {part} of the intrinsic {use.intrin.name} in {stage}"
    try:
        _WindowChecker(_Windows(buffers), analyzer, words)(stmt)
    except LoweringError as error:
        error.about = error.about or cause
        raise


class _WindowChecker(StatementChecker):
    """Refuses accesses of an intrinsic that are certain to leave their buffers; accesses that calls make through pointers are
    not checked.
    """

    def __init__(self, table: MemoryTable, analyzer: Analyzer, words: str) -> None:
        super().__init__(table, analyzer, may_return=False, accesses=Accesses.AT_RUN_TIME)
        self.words = words

    def check_pointer(self, call: Call, facts: Facts | None) -> None:
        """Checks a pointer unless its memory is strided."""

    def check_array(self, call: Call, facts: Facts | None) -> None:
        """Checks an array unless its memory is strided."""

    def placed(self, access: Node) -> str:
        return f"{self.words}: {super().placed(access)}"


class _Windows(MemoryTable):
    """The memory table of an intrinsic's buffers. An index into flat memory is bounds-checked only if the buffer's strides are
    constants: other strides are known only at the place of use.
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        super().__init__(tuple(buffers))
        self.windows: Mapping[Var, Buffer] = {buffer.data: buffer for buffer in buffers}

    def places(self, access: Load | Store | BufferLoad | BufferStore) -> list[BoundedIndex]:
        if isinstance(access, (Load, Store)):
            data = access.buffer_var
            return super().places(access) if data in self.known and _is_placed(self.windows.get(data)) else []
        buffer = access.buffer
        if self.windows.get(buffer.data) is buffer:
            return _places(buffer, access.indices)
        return super().places(access) if buffer.data in self.known and buffer.data not in self.windows else []


def _is_placed(buffer: Buffer | None) -> bool:
    """Whether the strides of `buffer` are constants, so that a flat index determines an element."""
    return buffer is None or all(build.as_int(stride) is not None for stride in buffer.strides)


def _places(buffer: Buffer, indices: tuple[Expr, ...]) -> list[BoundedIndex]:
    """The indices of an access, each with the range that it must stay in.

    A vector in the last dimension may continue in the next row. It is then bounds-checked as one flat index into the memory of
    the buffer, or, if the strides are not constants, not in that dimension.
    """
    zero = build.const(0, "int32")
    bounded = [BoundedIndex(index, zero, extent, f"dimension {k} of {buffer.name}", k)
            for k, (index, extent) in enumerate(zip(indices, buffer.shape))]
    if len(indices) < 2 or indices[-1].dtype.lanes == 1:
        return bounded
    last = indices[-1]
    if not isinstance(last, Ramp) or not _is_placed(buffer):
        return bounded[:-1]
    here = buffer.replace(elem_offset=zero)
    memory = MemoryTable((here,)).memory(buffer.data)
    step = build.mul(last.stride, buffer.strides[-1]) if buffer.strides else last.stride
    at = Ramp(position(here, (*indices[:-1], last.base)), step, last.lanes)
    return [*bounded[:-1], BoundedIndex(at, memory.low, memory.size, buffer.name)]
