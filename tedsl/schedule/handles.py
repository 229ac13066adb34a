"""What users hold: `Schedule` and `Stage`. Handles check nothing and keep nothing: the directives stand in `primitives`,
the data in `state.py`; here they are called and written into the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError, ScheduleError
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor
from tedsl.schedule.journal import Journal
from tedsl.schedule.primitives.bind import bind
from tedsl.schedule.primitives.cache_read import cache_read
from tedsl.schedule.primitives.cache_write import cache_write
from tedsl.schedule.primitives.compute_at import compute_at
from tedsl.schedule.primitives.compute_inline import compute_inline
from tedsl.schedule.primitives.compute_root import compute_root
from tedsl.schedule.primitives.fuse import fuse
from tedsl.schedule.primitives.nontemporal import nontemporal
from tedsl.schedule.primitives.parallel import parallel
from tedsl.schedule.primitives.pragma import pragma
from tedsl.schedule.primitives.reorder import reorder
from tedsl.schedule.primitives.rfactor import rfactor
from tedsl.schedule.primitives.set_scope import set_scope
from tedsl.schedule.primitives.split import split
from tedsl.schedule.primitives.tile import tile
from tedsl.schedule.primitives.unroll import unroll
from tedsl.schedule.primitives.vectorize import vectorize
from tedsl.schedule.relations import Relation
from tedsl.schedule.show import schedule_text, stage_text
from tedsl.schedule.state import AttachType, IterVarAttr, ScheduleState, StageState, describe


class Stage:
    """One step of the computation and its loops: `s[C]`. Each method changes how it is computed, never what."""

    __slots__ = ("schedule", "state")

    def __init__(self, schedule: Schedule, state: StageState) -> None:
        self.schedule = schedule
        self.state = state

    # --- loops ---

    def split(self, parent: IterVar, factor: Any = None, nparts: Any = None) -> tuple[IterVar, IterVar]:
        """Cut the loop `parent` in two, `factor` iterations inside or `nparts` outside; returns outer, inner."""
        call = self._call("split", self._axis(parent), factor=factor, nparts=nparts)
        outer, inner = split(self.state, parent, factor=factor, nparts=nparts)
        self._record("split", call, (outer, inner))
        return outer, inner

    def fuse(self, *args: IterVar) -> IterVar:
        """One loop for the neighbouring loops `args`; of nothing, a new outermost loop of one iteration."""
        call = self._call("fuse", *map(self._axis, args))
        fused = fuse(self.state, args)
        self._record("fuse", call, (fused,))
        return fused

    def reorder(self, *args: IterVar) -> None:
        """Nest the loops `args` in this order, outermost first."""
        call = self._call("reorder", *map(self._axis, args))
        reorder(self.state, args)
        self._record("reorder", call)

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: Any, y_factor: Any) \
            -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Cut two loops into tiles; returns x_outer, y_outer, x_inner, y_inner."""
        values = map(self.state.schedule.recorder.value, (x_factor, y_factor))
        call = self._call("tile", self._axis(x_parent), self._axis(y_parent), *values)
        loops = tile(self.state, x_parent, y_parent, x_factor, y_factor)
        self._record("tile", call, loops)
        return loops

    # --- annotations ---

    def vectorize(self, var: IterVar) -> None:
        """Run the loop `var`, of constant extent, as vector instructions."""
        call = self._call("vectorize", self._axis(var))
        vectorize(self.state, var)
        self._record("vectorize", call)

    def unroll(self, var: IterVar) -> None:
        """Replace the loop `var` by copies of its body."""
        call = self._call("unroll", self._axis(var))
        unroll(self.state, var)
        self._record("unroll", call)

    def parallel(self, var: IterVar) -> None:
        """Share the iterations of the loop `var` out among threads."""
        call = self._call("parallel", self._axis(var))
        parallel(self.state, var)
        self._record("parallel", call)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Run the iterations of `ivar` as threads of a device."""
        call = self._call("bind", self._axis(ivar), self.state.schedule.recorder.value(thread_ivar))
        bind(self.state, ivar, thread_ivar)
        self._record("bind", call)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Put a note for the passes on the loop `var`."""
        values = [pragma_type] if pragma_value is None else [pragma_type, pragma_value]
        call = self._call("pragma", self._axis(var), *map(self.state.schedule.recorder.value, values))
        pragma(self.state, var, pragma_type, pragma_value)
        self._record("pragma", call)

    # --- place ---

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage at the loop `scope` of `parent`, as much of it as an iteration needs."""
        host: Any = parent.state if isinstance(parent, Stage) else parent
        recorder = self.state.schedule.recorder
        known = isinstance(host, StageState) and host.schedule is self.state.schedule and isinstance(scope, IterVar)
        call = self._call("compute_at", recorder.stage(host), recorder.axis(scope, host)) if known else ""
        compute_at(self.state, host, scope)
        self._record("compute_at", call)

    def compute_inline(self) -> None:
        """Write the formula of this stage into its readers."""
        compute_inline(self.state)
        self._record("compute_inline", self._call("compute_inline"))

    def compute_root(self) -> None:
        """Compute this stage on its own, before its readers."""
        compute_root(self.state)
        self._record("compute_root", self._call("compute_root"))

    def set_scope(self, scope: str) -> Stage:
        """Keep the values of this stage in memory of that scope; returns this stage."""
        set_scope(self.state, scope)
        self._record("set_scope", self._call("set_scope", repr(scope)))
        return self

    def nontemporal(self) -> None:
        """Store this output past the cache."""
        nontemporal(self.state)
        self._record("nontemporal", self._call("nontemporal"))

    # --- what is there now ---

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def op(self) -> Any:
        """The operation now: after cache_write, cache_read or rfactor another than `origin_op`. Usually a ComputeOp."""
        return self.state.op

    @property
    def origin_op(self) -> Operation:
        return self.state.origin_op

    @property
    def leaf_iter_vars(self) -> list[IterVar]:
        """The loops now, outermost first."""
        return list(self.state.leaf_iter_vars)

    @property
    def all_iter_vars(self) -> list[IterVar]:
        """The axes and every loop that was made of them."""
        return list(self.state.all_iter_vars)

    @property
    def relations(self) -> list[Relation]:
        return list(self.state.relations)

    @property
    def scope(self) -> str:
        return self.state.scope

    @property
    def is_output(self) -> bool:
        return self.state.is_output

    @property
    def attach_type(self) -> AttachType:
        return self.state.attach_type

    @property
    def attach_stage(self) -> Stage | None:
        host = self.state.attach_stage
        return None if host is None else self.schedule.handle(host)

    @property
    def attach_ivar(self) -> IterVar | None:
        return self.state.attach_ivar

    @property
    def iter_var_attrs(self) -> dict[IterVar, IterVarAttr]:
        return dict(self.state.iter_var_attrs)

    @property
    def store_predicate(self) -> Expr | None:
        return self.state.store_predicate

    @property
    def group(self) -> None:
        """The group of this stage: there are none yet."""
        return None

    def __repr__(self) -> str:
        return f"stage({self.name})"

    def __str__(self) -> str:
        return stage_text(self.state)

    # --- the journal ---

    def _axis(self, loop: Any) -> str:
        return self.state.schedule.recorder.axis(loop, self.state) if isinstance(loop, IterVar) else repr(loop)

    def _call(self, name: str, *args: str, **named: Any) -> str:
        recorder = self.state.schedule.recorder
        given = [f"{key}={recorder.value(value)}" for key, value in named.items() if value is not None]
        return f"{recorder.stage(self.state)}.{name}({', '.join([*args, *given])})"

    def _record(self, name: str, call: str, results: Sequence[Any] = ()) -> None:
        self.state.schedule.recorder.record(name, call, self.state, results)


class Schedule:
    """How a computation is done: one stage per operation, producers first. `s[C]` is the stage of tensor or operation C."""

    __slots__ = ("_handles", "state")

    def __init__(self, state: ScheduleState) -> None:
        self.state = state
        self._handles: dict[StageState, Stage] = {}

    def handle(self, state: StageState) -> Stage:
        """The one handle of a stage."""
        if state not in self._handles:
            self._handles[state] = Stage(self, state)
        return self._handles[state]

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        return self.handle(stage_of(self.state, key, "s[...]"))

    def __contains__(self, key: object) -> bool:
        op = key.op if isinstance(key, Tensor) else key
        return isinstance(op, Operation) and op in self.state.stage_map

    # --- directives that make stages ---

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of `tensor` in memory of `scope`, read by `readers` (operations or tensors) in its place."""
        source = stage_of(self.state, tensor, "cache_read")
        listed = list(readers) if isinstance(readers, (list, tuple)) else [readers]
        consumers = [stage_of(self.state, reader, "cache_read") for reader in listed]
        recorder = self.state.recorder
        named = recorder.tensor(tensor, source) if isinstance(tensor, Tensor) else ""
        call = f"s.cache_read({named}, {scope!r}, {recorder.operations(consumers)})"
        made = cache_read(source, tensor, scope, consumers)
        recorder.record("cache_read", call, source, (made,), on_schedule=True)
        return made

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Compute `tensor` (or all tensors of one operation) in memory of `scope`; the old stage copies. Returns the new."""
        several = isinstance(tensor, (list, tuple))
        given: list[Any] = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
        if not given:
            raise ArgumentTypeError("cache_write of no tensor", hint="give a tensor, or all tensors of one operation")
        stages = [stage_of(self.state, one, "cache_write") for one in given]
        recorder = self.state.recorder
        names = [recorder.tensor(one, stage) if isinstance(one, Tensor) else "" for one, stage in zip(given, stages)]
        named = f"[{', '.join(names)}]" if several else names[0]
        call = f"s.cache_write({named}, {scope!r})"
        made = cache_write(stages, given, scope)
        recorder.record("cache_write", call, stages[0], made, on_schedule=True)
        return made if several else made[0]

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Make the reduction loop `axis` of `tensor` an axis of a new stage, over which `tensor` then reduces.

        Returns the new tensor; of a tuple reduction the list of them.
        """
        stage = stage_of(self.state, tensor, "rfactor")
        recorder = self.state.recorder
        loop = recorder.axis(axis, stage) if isinstance(axis, IterVar) else ""
        named = recorder.tensor(tensor, stage) if isinstance(tensor, Tensor) else ""
        call = f"s.rfactor({named}, {loop}{f', {factor_axis}' if factor_axis else ''})"
        made = rfactor(stage, tensor, axis, factor_axis)
        recorder.record("rfactor", call, stage, made, on_schedule=True)
        return made if len(made) > 1 else made[0]

    # --- what is there now ---

    @property
    def stages(self) -> list[Stage]:
        """The stages, producers first."""
        return [self.handle(stage) for stage in self.state.stages]

    @property
    def outputs(self) -> list[Operation]:
        """The operations given to create_schedule, as they were then; `s[op].op` is what each has become."""
        return list(self.state.outputs)

    @property
    def stage_map(self) -> dict[Operation, Stage]:
        """The stage of every operation, also of those that were replaced."""
        return {op: self.handle(stage) for op, stage in self.state.stage_map.items()}

    @property
    def journal(self) -> Journal:
        """The directives so far; printed, a Python program over `s`."""
        return Journal(self.state.recorder.directives)

    def copy(self) -> Schedule:
        """The same schedule, changed independently from now on."""
        return Schedule(self.state.copy())

    def normalize(self) -> Schedule:
        """A copy in which inlined stages are written into their readers and every loop starts at 0."""
        from tedsl.schedule.normalize import normalized

        return Schedule(normalized(self.state))

    def __repr__(self) -> str:
        return f"schedule({', '.join(op.name for op in self.state.outputs)})"

    def __str__(self) -> str:
        return schedule_text(self.state)


def stage_of(state: ScheduleState, key: Any, directive: str) -> StageState:
    """The stage of a tensor or operation; refuses what this schedule does not compute."""
    op = key.op if isinstance(key, Tensor) else key
    if isinstance(op, Operation) and op in state.stage_map:
        return state.stage_map[op]
    names = [stage.name for stage in state.stages]
    if not isinstance(op, Operation):
        raise ScheduleError(directive, "?", f"expected a tensor or an operation of this schedule, got {describe(key)}",
                            loops=(), hint=f"stages of this schedule: {', '.join(names)}")
    same = f"; its {op.name} is another operation of the same name" if op.name in names else ""
    raise ScheduleError(directive, op.name, f"{op.name} is not part of this schedule{same}", loops=(),
                        hint=f"stages of this schedule: {', '.join(names)}")


def create_schedule(ops: Any) -> Schedule:
    """A schedule for the outputs `ops`: an operation, a tensor, or a list of them. Every stage starts with plain loops."""
    given = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    if not given:
        raise ArgumentTypeError("create_schedule of nothing", hint="give the operations to compute: te.create_schedule(C.op)")
    outputs: dict[Operation, None] = {}
    for one in given:
        op = one.op if isinstance(one, Tensor) else one
        if not isinstance(op, Operation):
            raise ArgumentTypeError(f"create_schedule takes operations, got {describe(one)}",
                                    hint="write te.create_schedule(C.op)")
        outputs[op] = None
    state = ScheduleState(list(outputs))
    for op in producers_first(state.outputs):
        state.add_stage(op, len(state.stages)).is_output = op in outputs
    return Schedule(state)
