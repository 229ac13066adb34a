"""The data of a schedule: directives change it and lowering reads it.

`ScheduleState` owns a list of `StageState`s, producers first. The user's handles (`handles.py`) store nothing themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from tedsl.errors import ScheduleError, type_in_words
from tedsl.ir.expr import Expr, StringImm, Var
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.script import shown
from tedsl.ir.stmt import Stmt
from tedsl.lang.extern import ExternOp
from tedsl.lang.operation import Operation, PlaceholderOp, root_axes
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.schedule.memory_options import PLAIN, Prefetched, Storage
from tedsl.schedule.record.history import fields_of, with_twins
from tedsl.schedule.record.recorder import Recorder
from tedsl.schedule.record.term import text_of
from tedsl.schedule.relations import Fuse, Rebase, Relation, Split


class AttachType(IntEnum):
    """How a stage is placed; the numbers are those of TVM."""

    ROOT = 1
    INLINE = 2  # its formula is written into its consumers
    INLINED = 3  # the same, after normalize has done it
    SCOPE = 4  # at a loop of another stage


EXTERN = "{} is made by te.extern: its loops are in the statements that it was given"
ANNOTATIONS = {IterType.UNROLLED: "unrolled", IterType.VECTORIZED: "vectorized", IterType.PARALLELIZED: "parallel",
               IterType.TENSORIZED: "tensorized"}

# The annotations that change how a loop runs and no value, and the directive of each.
MARKS = {IterType.UNROLLED: "unroll", IterType.VECTORIZED: "vectorize", IterType.PARALLELIZED: "parallel"}


@record(eq=False)
class IterVarAttr:
    """The annotations of one loop. iter_type: UNROLLED, VECTORIZED, PARALLELIZED, or DATA_PAR for none of these."""

    iter_type: IterType = IterType.DATA_PAR
    bind_thread: IterVar | None = None
    pragma_keys: tuple[StringImm, ...] = ()
    pragma_values: tuple[Expr | None, ...] = ()
    tensor_intrin: Any = None
    prefetched: tuple[Prefetched, ...] = ()
    skips_zeros: bool = False

    def describe(self) -> str | None:
        """The annotation in words ("vectorized", "bound to threadIdx.x"), None if there is none that changes the loop."""
        if self.bind_thread is not None:
            return f"bound to {self.bind_thread.thread_tag}"
        return ANNOTATIONS.get(self.iter_type)


JOINED = "joined"  # a pragma; its value is the name of the loops that compute_with makes one
PLAIN_LOOP = IterVarAttr()
WRITTEN = {kind: IterVarAttr(kind) for kind in ANNOTATIONS}  # loops of hybrid scripts are written with their kind


def first_loops(op: Operation) -> tuple[IterVar, ...]:
    """The loops of an operation before any directive: all axes but those inside the calls of an intrinsic."""
    inside = op.without_loops
    return tuple([axis for axis in root_axes(op) if axis not in inside]) if inside else root_axes(op)


def find(loops: Sequence[IterVar], loop: object) -> int | None:
    """The position of `loop` by identity, or None."""
    return next((at for at, one in enumerate(loops) if one is loop), None)


@record(eq=False)
class Group:
    """A set of stages that compute_at places together.

    Each stage refers to its group. The group around this one and the place are stored in the schedule.
    """

    name: str


@dataclass(eq=False)
class StageState:
    """One operation and its loops, outermost first. `origin_op` is the operation that the user wrote, `op` the current one.

    The values of the fields never change; a field gets another value, which the history of the schedule takes note of.
    """

    op: Operation
    origin_op: Operation
    schedule: ScheduleState
    all_iter_vars: tuple[IterVar, ...]
    leaf_iter_vars: tuple[IterVar, ...]
    relations: tuple[Relation, ...] = ()
    scope: str = ""
    is_output: bool = False
    attach_type: AttachType = AttachType.ROOT
    attach_stage: StageState | None = None
    attach_ivar: IterVar | None = None
    iter_var_attrs: Mapping[IterVar, IterVarAttr] = field(default_factory=dict)
    nontemporal: bool = False
    statements: Stmt | None = None  # of te.extern, instead of those of the operation
    storage: Storage = PLAIN
    store_predicate: Expr | None = None
    env_threads: tuple[IterVar, ...] = ()  # launched around all loops; they stand among the loops too
    init_at: IterVar | None = None  # the loop before which the start values of a reduction stand; None: as far in as possible
    group: Group | None = None
    versions: tuple[StageState, ...] = ()  # loops for calls in which their condition holds
    version_of: StageState | None = None
    condition: Expr | None = None  # of a version
    factored: tuple[tuple[Operation, tuple[Relation, ...]], ...] = ()  # the loops from which rfactor made other operations
    retired: Mapping[IterVar, tuple[str, str]] = field(default_factory=dict)  # loops gone since: what became of them, a hint
    undone: bool = False  # made by a directive that was taken back

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        schedule = self.__dict__.get("schedule")
        if schedule is not None:
            schedule.recorder.history.changed.add(self)

    @property
    def name(self) -> str:
        return self.origin_op.name

    @property
    def is_placeholder(self) -> bool:
        return isinstance(self.op, PlaceholderOp)

    @property
    def scan_of_state(self) -> StageState | None:
        """The scan of which this placeholder is a state; None for all other stages."""
        if not self.is_placeholder:
            return None
        return next((stage for stage in self.schedule.stages
                     if isinstance(stage.op, ScanOp) and any(t.op is self.op for t in stage.op.state_placeholder)), None)

    @property
    def written(self) -> str:
        """The Python expression for this stage, or for the stage of which it is a version: `s[C]`, `s[C_local]`,
        `s.stages[2]`.
        """
        return self.schedule.recorder.written(self.version_of or self)

    @property
    def handle(self) -> str:
        """The Python expression on which its directives are called; for a version, its name."""
        return self.written if self.version_of is None else self.schedule.recorder.names.get(self, self.name)

    @property
    def early(self) -> str:
        """Words for a hint that proposes a directive which creates a new stage: before specialize, if this stage has versions
        to lose.
        """
        return ", written before specialize" if self.versions or self.version_of is not None else ""

    @property
    def tensor_written(self) -> str:
        """The Python expression for the tensor of this stage, the first of several."""
        stage = self.version_of or self
        return text_of(stage.schedule.recorder.tensor(stage.origin_op.output(0), stage))

    def loop_names(self) -> list[str]:
        return [loop.name for loop in self.leaf_iter_vars]

    def attr_of(self, loop: IterVar) -> IterVarAttr:
        attr = self.iter_var_attrs.get(loop)
        return attr if attr is not None else WRITTEN.get(loop.iter_type, PLAIN_LOOP)

    def annotation_of(self, loop: IterVar) -> str | None:
        """"vectorized", "parallel", "unrolled", "bound to ..." or None."""
        return self.attr_of(loop).describe()

    def set_attr(self, loop: IterVar, **changed: Any) -> None:
        self.iter_var_attrs = {**self.iter_var_attrs, loop: replace(self.attr_of(loop), **changed)}

    def restart(self, op: Operation) -> None:
        """Makes `op` the operation of this stage, with fresh loops."""
        self.op = op
        self.all_iter_vars = root_axes(op)
        self.leaf_iter_vars = first_loops(op)
        self.relations = ()
        self.iter_var_attrs = {}
        self.init_at = None

    # --- looking before a change ---

    def refuse(self, directive: str, problem: str, *, hint: str = "") -> ScheduleError:
        """The error for `directive` on this stage, with the loops that there are."""
        return ScheduleError(directive, self.name, problem, loops=self.loop_names(), hint=hint)

    def must_have_loops(self, directive: str) -> None:
        """Refuses placeholders."""
        scan = self.scan_of_state
        if scan is not None:
            assert isinstance(scan.op, ScanOp)
            raise self.refuse(directive, f"{self.name} is a state of {scan.name}: it stands for the rows that earlier steps "
                              "have computed, no loop of its own computes them",
                              hint=f"schedule the update, {self.schedule.stage_map[scan.op.update[0].op].written}, or the "
                                   f'steps, {scan.written}; or copy it: s.cache_read({self.tensor_written}, "local", readers)')
        if self.is_placeholder:
            raise self.refuse(directive, f"{self.name} is a placeholder: its values are given by the caller, "
                              "no loop computes them",
                              hint=f"schedule a stage that reads {self.name}, or make one that copies it: "
                                   f's.cache_read({self.tensor_written}, "local", readers)')

    def must_not_be_extern(self, directive: str) -> None:
        """Refuses a stage of te.extern, whose loops are in statements of the user's."""
        if isinstance(self.op, ExternOp):
            problem, hint = self._why_not_a_loop(None)
            raise self.refuse(directive, problem, hint=hint)

    def is_joined(self, loop: IterVar) -> bool:
        """Whether compute_with has made `loop` one with a loop of another stage."""
        return any(key.value == JOINED for key in self.attr_of(loop).pragma_keys)

    def must_not_be_joined(self, loops: Iterable[IterVar], directive: str) -> None:
        """Refuses loops that compute_with has made one with those of another stage."""
        one = next((loop for loop in loops if self.is_joined(loop)), None)
        if one is not None:
            raise self.refuse(directive, f"{one.name} is one with a loop of another stage since compute_with",
                              hint="do this first, to the loops of both stages, and compute_with last")

    def position_of(self, loop: Any, directive: str) -> int:
        """The position of `loop` among the present loops; if it is not one of them, the error says what became of it."""
        self.must_have_loops(directive)
        at = find(self.leaf_iter_vars, loop)
        if at is None:
            problem, hint = self._why_not_a_loop(loop)
            raise self.refuse(directive, problem, hint=hint)
        return at

    def _why_not_a_loop(self, loop: Any) -> tuple[str, str]:
        if isinstance(self.op, ExternOp):
            return EXTERN.format(self.name), "write them there as they are to run: ib.for_range(0, n, kind='parallel')"
        if isinstance(self.op, ScanOp) and find(self.op.spatial_axis_, loop) is not None:
            updates = ", ".join(f"{self.schedule.stage_map[tensor.op].written}.op.axis" for tensor in self.op.update)
            return (f"{loop.name} is a dimension of a state, and the loops over the elements of a row are those of the update",
                    f"take them from {updates}; the loop over the steps is {self.written}.op.scan_axis")
        take = (f"take the axis from {self.written}.op.axis or {self.written}.op.reduce_axis, "
                "or from what split and fuse returned")
        if not isinstance(loop, IterVar):
            return f"expected an axis, got {describe(loop)}", take
        for relation in reversed(self.relations):
            match relation:
                case Split(parent=p, outer=o, inner=i) if p is loop:
                    return f"{loop.name} was split into {o.name}, {i.name}", "use one of these loops"
                case Fuse(outer=o, inner=i, fused=f) if loop is o or loop is i:
                    return f"{o.name} and {i.name} were fused into {f.name}", f"use {f.name}"
                case Rebase(parent=p, rebased=r) if p is loop:
                    return f"{loop.name} was replaced by the loop {r.name} that starts at 0", f"use {r.name}"
        if loop in self.retired:
            problem, hint = self.retired[loop]
            return problem, hint or f"use {self.written}.op.axis and {self.written}.op.reduce_axis of the new operation"
        for stage in self.schedule.stages:
            for one in (stage, *stage.versions):
                if find(one.all_iter_vars, loop) is not None:
                    where = "" if one is stage else f" in its version where {shown(one.condition)}"
                    return f"{loop.name} is a loop of stage {stage.name}{where}", f"write {one.handle} instead, or {take}"
        if any(one.name == loop.name for one in self.all_iter_vars):
            return (f"the loop {loop.name} given is not the {loop.name} of this stage: it was made by another schedule or "
                    "belongs to another operation", take)
        return f"{loop.name} is not a loop of this schedule", take

    def retire(self, loop: IterVar, fate: str, hint: str = "") -> None:
        """Records, for errors, what became of a loop that this stage no longer has, and what to use instead."""
        self.retired = {**self.retired, loop: (f"{loop.name} {fate}", hint)}

    def must_be_plain(self, loop: IterVar, directive: str, hint: str, *, but_for_marks: bool = False) -> None:
        """Refuses a loop with an annotation, binding or pragma, which the directive would lose.

        `but_for_marks` accepts parallel, vectorize and unroll: without them the values are the same (`drop_marks`).
        """
        said = self.annotation_of(loop)
        if but_for_marks and self.attr_of(loop).iter_type in MARKS:
            said = None
        if said is None and self.attr_of(loop).pragma_keys:
            key = self.attr_of(loop).pragma_keys[0].value
            said = "one with the loop of another stage (compute_with)" if key == JOINED else f"marked with the pragma {key}"
        if said is None and self.attr_of(loop).prefetched:
            said = f"prefetching {self.attr_of(loop).prefetched[0].tensor.name}"
        if said is None and self.attr_of(loop).skips_zeros:
            said = "skipping zeros"
        if said is None and self.init_at is loop:
            said = "the place of the start values"
        if said is not None:
            if find(list(self.env_threads), loop) is not None:
                hint = "the loops of env_threads are launched as they are: choose another loop, or other thread axes"
            raise self.refuse(directive, f"{loop.name} is already {said}", hint=hint)

    def must_have_no_guests(self, loops: Iterable[IterVar], directive: str) -> None:
        """Refuses if another stage is computed at one of `loops`."""
        around = self.guests()
        for loop in loops:
            held = self.schedule.group_loops.items()  # first: its stages come back to this loop when they are moved alone
            groups = [group.name for group, at in held if at is loop and self.schedule.group_hosts[group] is self]
            if groups:
                raise self.refuse(directive, f"{groups[0]} is computed at {loop.name}: that loop must stay",
                                  hint=f"do this before {groups[0]}.compute_at, or call {groups[0]}.compute_root() first")
            guests = [s for s in around if s.attach_ivar is loop]
            if guests:
                placed = self.schedule.recorder.placed(guests[0])
                raise self.refuse(
                    directive, f"{', '.join(s.name for s in guests)} is computed at {loop.name}: that loop must stay",
                    hint=f"do this before {placed}, or call {guests[0].written}.compute_root() first")

    def guests(self) -> list[StageState]:
        """The stages that are computed at a loop of this one; for a version, at a loop of its stage."""
        host = self.version_of or self
        return [s for s in self.schedule.stages if s.attach_stage is host and s.attach_type == AttachType.SCOPE]

    def version(self, condition: Expr) -> StageState:
        """A version of this stage with the present loops; the caller adds it to the versions."""
        return replace(self, versions=(), version_of=self, condition=condition)

    def become(self, op: Operation) -> None:
        """Replaces the operation of this stage and its versions by `op`, which has the same axes."""
        for stage in (self, *self.versions):
            stage.op = op


class Order(NamedTuple):
    """Where each of some stages stands, and how many there are of each name."""

    stages: tuple[StageState, ...]
    positions: Mapping[StageState, int]
    names: Mapping[str, int]

    @staticmethod
    def of(stages: tuple[StageState, ...]) -> Order:
        return Order(stages, {stage: at for at, stage in enumerate(stages)}, Counter([stage.name for stage in stages]))


# The fields of a stage that its versions share.
OF_STAGE = ("op", "scope", "is_output", "attach_type", "attach_stage", "attach_ivar", "nontemporal", "statements",
            "storage", "store_predicate", "env_threads", "group")


@dataclass(eq=False)
class ScheduleState:
    """Stages, producers first. `outputs` are the operations that the user asked for; `stage_map` maps these, their
    replacements and every operation in between to stages: it only grows, until directives are taken back.
    """

    identity_lookups: ClassVar[tuple[str, ...]] = ("stage_map",)

    outputs: tuple[Operation, ...]
    stages: tuple[StageState, ...] = ()
    stage_map: dict[Operation, StageState] = field(default_factory=dict)
    recorder: Recorder = field(default_factory=Recorder)
    groups: tuple[Group, ...] = ()
    group_parents: Mapping[Group, Group] = field(default_factory=dict)  # the group around a group
    group_hosts: Mapping[Group, StageState] = field(default_factory=dict)  # where a group is computed
    group_loops: Mapping[Group, IterVar] = field(default_factory=dict)

    def add_stage(self, op: Operation, at: int, *, scope: str = "") -> StageState:
        """Inserts a fresh stage for `op` at position `at`."""
        stage = self.new_stage(op, scope)
        self.stages = (*self.stages[:at], stage, *self.stages[at:])
        return stage

    def new_stage(self, op: Operation, scope: str = "") -> StageState:
        """A fresh stage for `op`, which the caller puts among the others."""
        stage = self.stage_map[op] = StageState(op, op, self, root_axes(op), first_loops(op), scope=scope)
        return stage

    def groups_around(self, group: Group | None) -> list[Group]:
        """`group` and those around it, innermost first; none for None."""
        around = []
        while group is not None:
            around.append(group)
            group = self.group_parents.get(group)
        return around

    def put_group(self, group: Group, host: StageState | None, loop: IterVar | None) -> None:
        """Computes `group` at a loop of `host`; nowhere in particular if they are None."""
        if host is not None and loop is not None:
            self.group_hosts, self.group_loops = {**self.group_hosts, group: host}, {**self.group_loops, group: loop}
        else:
            self.group_hosts = {one: where for one, where in self.group_hosts.items() if one is not group}
            self.group_loops = {one: where for one, where in self.group_loops.items() if one is not group}

    def with_versions(self) -> list[StageState]:
        """The stages, each followed by its versions."""
        return [one for stage in self.stages for one in (stage, *stage.versions)]

    def sync_versions(self) -> None:
        """Gives the versions of each stage that changed the fields that hold for the stage as a whole, such as its place."""
        for stage in [one.version_of or one for one in self.recorder.history.changed]:
            for version in stage.versions:
                for name in OF_STAGE:
                    setattr(version, name, getattr(stage, name))

    @property
    def order(self) -> Order:
        """The positions and names of the present stages."""
        known = self.__dict__.get("_order")
        if known is None or known.stages is not self.stages:
            known = self.__dict__["_order"] = Order.of(self.stages)
        return known

    def position(self, stage: StageState) -> int:
        return self.order.positions[stage]

    def consumers(self) -> dict[StageState, list[StageState]]:
        """For each stage the stages whose operations read it now, in order."""
        readers: dict[StageState, list[StageState]] = {stage: [] for stage in self.stages}
        for stage in self.stages:
            for producer in {self.stage_map[op] for op in stage.op.sources}:
                readers[producer].append(stage)
        return readers

    def readers_of(self, op: Operation) -> list[StageState]:
        """The stages whose operations read `op` itself, in order."""
        return [stage for stage in self.stages if op in stage.op.sources]

    def rewired(self, made: Mapping[StageState, Operation]) -> dict[StageState, Operation]:
        """The new operations `made` of some stages, and those of the stages that read what these replace, directly or not.

        A new operation that still reads a stage before it is redirected too. The schedule is not changed.
        """
        operations: dict[StageState, Operation] = {}
        replaced: dict[Operation, Operation] = {}
        for stage in self.stages[min(map(self.position, made)):]:
            old, op = stage.op, made.get(stage, stage.op)
            if not op.sources.isdisjoint(replaced):
                op = op.following(replaced)
            if op is not old:
                operations[stage] = replaced[old] = op
        return operations

    def rewire(self, made: Mapping[StageState, Operation]) -> None:
        """Sets the given operations of stages. They have the axes of the old ones, so loops and relations stay valid."""
        for stage, op in made.items():
            stage.become(op)
            self.stage_map[op] = stage

    def copy(self) -> ScheduleState:
        """The same schedule, changed independently from now on. Operations and loops are shared: they never change."""
        twins = {stage: object.__new__(StageState) for stage in self.with_versions()}
        copied = ScheduleState((), recorder=self.recorder.copy(twins))
        copied.__dict__.update(with_twins(fields_of(self), twins))
        copied.stage_map = with_twins(self.stage_map, twins)
        for stage, twin in twins.items():
            twin.__dict__.update(with_twins(fields_of(stage), twins), schedule=copied, undone=stage.undone)
        return copied


def outputs_of(old: Operation, new: Operation) -> dict[Tensor, Tensor]:
    """Maps each output of `old` to the output of `new` that replaces it."""
    return {old.output(i): new.output(i) for i in range(old.num_outputs)}


def describe(value: Any) -> str:
    """A description of a wrong argument for an error: "the int 0", "the tensor A"."""
    if isinstance(value, Tensor):
        return f"the tensor {value.name}"
    if isinstance(value, Operation):
        return f"the operation {value.name}"
    if isinstance(value, Var):
        return f"the variable {value.name}"
    if isinstance(value, (list, tuple)):
        return f"{type_in_words(value)} of {len(value)}"
    if value is None:
        return "None"
    name = getattr(value, "name", None)
    return f"the {type(value).__name__} {name if isinstance(name, str) else shown(value)}"


def show(value: Any) -> str:
    """The text of an argument in the text of a directive."""
    name = getattr(value, "name", None)
    if isinstance(name, str):
        return name
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(show, value))}]"
    return shown(value)
