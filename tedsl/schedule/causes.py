"""The directive that caused a fact: errors of lowering and explanations name it.

Lowering knows what is wrong with which stage and loop, but not which directive caused it. It attaches a `Cause` to its error;
the history of the schedule determines the directive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from tedsl.errors import LoweringError
from tedsl.ir.expr import StringImm, Var
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.stmt import BufferStore, For, ForKind, Store
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.scan.operation import ScanOp
from tedsl.record import record
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.history import Fields
from tedsl.schedule.relations import Relation, Split
from tedsl.schedule.state import IterVarAttr, ScheduleState, StageState

KINDS = {ForKind.PARALLEL: IterType.PARALLELIZED, ForKind.VECTORIZED: IterType.VECTORIZED, ForKind.UNROLLED: IterType.UNROLLED}


# What a directive can have said: a field of a stage, of how its memory is kept, of one of its loops.
StageField = Literal["op", "leaf_iter_vars", "relations", "scope", "attach_type", "attach_stage", "attach_ivar",
                     "iter_var_attrs", "storage", "store_predicate", "env_threads", "init_at", "condition"]
MemoryField = Literal["alignments", "double_buffer", "rolling"]
LoopField = Literal["iter_type", "bind_thread", "pragma_keys", "tensor_intrin", "prefetched", "skips_zeros"]


@record(eq=False)
class Cause:
    """A fact about `stage`, by which the directive that caused it is found.

    read: returns the fact from the fields of the stage; the cause is the last directive that changed its result. holds: if
    given, the cause is instead the first directive after which it returns True. loop: the loop that the fact is about.
    """

    stage: StageState
    read: Callable[[Fields], tuple[object, ...]] = lambda fields: ()
    holds: Callable[[Fields], bool] | None = None
    loop: IterVar | None = None


def said(stage: StageState, *names: StageField) -> Cause:
    """The fact given by the fields `names` of the stage; for a list, by its items."""
    return Cause(stage, lambda fields: tuple([item for name in names for item in _items(fields[name])]))


def attached(stage: StageState) -> Cause:
    """The place of the stage, which compute_at, compute_inline, ... choose."""
    return said(stage, "attach_type", "attach_stage", "attach_ivar")


def kept(stage: StageState, name: MemoryField) -> Cause:
    """A property `name` of the memory of the stage, which storage_align, double_buffer and rolling_buffer set."""
    return Cause(stage, lambda fields: (vars(fields["storage"])[name],))


def annotated(stage: StageState, loop: IterVar, name: LoopField | None = None) -> Cause:
    """The annotations of one loop, which vectorize, parallel, pragma, ... set. name: only that field of IterVarAttr."""

    def read(fields: Fields) -> tuple[object, ...]:
        attr = fields["iter_var_attrs"].get(loop)
        return (attr if name is None or attr is None else vars(attr)[name],)

    return Cause(stage, read, loop=loop)


def related(stage: StageState, relation: Relation) -> Cause:
    """A relation of the stage, which split, tile or fuse added."""
    return Cause(stage, holds=lambda fields: any(one is relation for one in fields["relations"]))


def imported(stage: StageState, code: str) -> Cause:
    """The pragma that added the source `code` of a function."""
    return Cause(stage, holds=lambda fields: _imports(fields["iter_var_attrs"], code))


def directive_behind(state: ScheduleState, fact: object) -> Directive | None:
    """The directive that caused `fact`; None if no directive did.

    fact: a Cause, or what a pass can name: a loop, a thread axis, the buffer of an intrinsic, the code of a pragma, an unbound
    variable.
    """
    cause = fact if isinstance(fact, Cause) else _known_to_passes(state, fact)
    if cause is None:
        return None
    history = state.recorder.history
    number = history.last_change(cause.stage, cause.read) if cause.holds is None else history.first(cause.stage, cause.holds)
    return None if number is None else state.recorder.directives[number - 1]


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, tuple) else [value]


def _known_to_passes(state: ScheduleState, cause: object) -> Cause | None:
    match cause:
        case For():
            causes = _of_loop(state, cause)
            return causes[0] if len(causes) == 1 else None
        case str():
            return _of_threads(state, cause) or _of_intrinsic(state, cause)
        case StringImm():
            return _of_code(state, cause)
        case Var():
            return _of_variable(state, cause)
    return None


def _of_loop(state: ScheduleState, loop: For) -> list[Cause]:
    """The annotations of the schedule's loops that may have become `loop`: those of its name and kind, of stages that store
    inside it.

    For a serial loop only loops with a pragma count, since passes report no others (auto_unroll_max_step).
    """
    name, kind = loop.loop_var.name.removesuffix(".init"), KINDS.get(loop.kind)
    part: LoopField = "pragma_keys" if kind is None else "iter_type"
    causes = [annotated(stage, leaf, part) for stage in state.with_versions() for leaf in stage.leaf_iter_vars
              if leaf.name == name and (attr := stage.attr_of(leaf))
              and (attr.pragma_keys if kind is None else attr.iter_type == kind)]
    stored = {node.buffer.name if isinstance(node, BufferStore) else node.buffer_var.name
              for node in post_order(loop.body) if isinstance(node, (BufferStore, Store))}
    if stored:
        causes = [cause for cause in causes if not stored.isdisjoint(_memory_of(cause.stage))]
    outside = {cause.stage for cause in causes}
    # a stage that is computed inside the loop of another cause stores there as well
    return [cause for cause in causes if cause.stage.attach_stage not in outside]


def _memory_of(stage: StageState) -> set[str]:
    """The names of the buffers to which a stage stores."""
    tensors = [stage.op.output(i) for i in range(stage.op.num_outputs)]
    scans = [one.op for one in stage.schedule.stages if isinstance(one.op, ScanOp)]
    return {tensor.name for tensor in tensors} | {scan.output(i).name for scan in scans for i in range(scan.num_outputs)
                                                  if scan.init[i] in tensors or scan.update[i] in tensors}


def _of_code(state: ScheduleState, code: StringImm) -> Cause | None:
    """The fact that a pragma added `code`; None if none did."""
    return next((imported(stage, code.value) for stage in state.with_versions()
                 if _imports(stage.iter_var_attrs, code.value)), None)


def _imports(attrs: Mapping[IterVar, IterVarAttr], code: str) -> bool:
    return any(isinstance(value, StringImm) and value.value == code for attr in attrs.values() for value in attr.pragma_values)


def _of_variable(state: ScheduleState, var: Var) -> Cause | None:
    """The first fact that reads `var`: the factor of a split, the condition of a version, ..."""
    for stage in state.with_versions():
        for relation in stage.relations:
            part = (relation.factor, relation.nparts) if isinstance(relation, Split) else ()
            if any(one is not None and var in variables(one) for one in part):
                return related(stage, relation)
        for loop in stage.leaf_iter_vars:
            if any(var in variables(one.offset) for one in stage.attr_of(loop).prefetched):
                return annotated(stage, loop, "prefetched")
        if stage.condition is not None and var in variables(stage.condition):
            return said(stage, "condition")
        if stage.store_predicate is not None and var in variables(stage.store_predicate):
            return said(stage, "store_predicate")
    return None


def _of_threads(state: ScheduleState, tag: str) -> Cause | None:
    """The binding to the threads `tag` of the last stage that has one."""
    for stage in reversed(state.with_versions()):
        for loop in stage.leaf_iter_vars:
            thread = stage.attr_of(loop).bind_thread
            if thread is not None and tag in (thread.thread_tag, thread.name):
                return annotated(stage, loop, "bind_thread")
        if any(tag == thread.thread_tag for thread in stage.env_threads):
            return said(stage, "env_threads")
    return None


def _of_intrinsic(state: ScheduleState, name: str) -> Cause | None:
    """The tensorize whose intrinsic has a buffer called `name`, if there is exactly one."""
    causes = [annotated(stage, loop) for stage in state.with_versions() for loop in stage.leaf_iter_vars
              if any(buffer.name == name for buffer in getattr(stage.attr_of(loop).tensor_intrin, "buffers", ()))]
    return causes[0] if len(causes) == 1 else None


def _script_line(state: ScheduleState, loop: object) -> str:
    """The line of a hybrid script with the annotated loop `loop`; "" if it belongs to no script."""
    causes = _of_loop(state, loop) if isinstance(loop, For) else []
    ops = {cause.stage.op for cause in causes}
    op = ops.pop() if len(ops) == 1 else None
    if not isinstance(op, HybridOp):
        return ""
    axes = {axis.var: axis for axis in op.axis}
    loops = [stmt for stmt in op.lines if isinstance(stmt, For) and axes.get(stmt.loop_var) is causes[0].loop]
    return op.line_of(loops[0] if len(causes) == len(loops) == 1 else None)


@contextmanager
def blaming(state: ScheduleState) -> Iterator[None]:
    """Context manager that adds, to a LoweringError raised inside, the directive that caused it or the line of a script."""
    try:
        yield
    except LoweringError as error:
        blame(state, error)
        raise


def blame(state: ScheduleState, error: LoweringError) -> None:
    """Adds to `error` the directive that caused it or the line of a script."""
    directive = directive_behind(state, error.about)
    origin = directive.origin if directive is not None else _script_line(state, error.about)
    if origin:
        error.blame(origin)
    error.about = None  # it holds the schedule, and an error may live long or travel between processes
