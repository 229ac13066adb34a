"""The directives of a schedule as they are applied, and the names of the objects that they created.

Stages and tensors have the names that the program gave them where these are unique Python names, else they are named by
position, `s.stages[2]`. An argument that the language of journals cannot express (an intrinsic, a function) has a name under
which it is kept in `objects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from tedsl.errors import ScheduleError
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.source_line import SourceLine, user_line
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor
from tedsl.schedule.journal import Journal
from tedsl.schedule.record import term as terms
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.history import History
from tedsl.schedule.record.names import free_name, is_plain
from tedsl.schedule.record.symbols import symbols_of
from tedsl.schedule.record.term import SCHEDULE, Apply, Name, Term, stage_named, text_of

if TYPE_CHECKING:
    from tedsl.schedule.state import ScheduleState, StageState


@dataclass(eq=False)
class Recorder:
    """The directives of one schedule; `history` has the state of the schedule after each.

    names: the name of each loop, tensor, version, group, thread axis or other object that a directive created or was given.
    objects: the arguments that have no text, by name. line: while a journal is replayed, the line of the directive in it.
    pending: names for the arguments of the present directive, with the object to be kept; they become valid when it is
    recorded. given: the names that there are in `names`.
    """

    identity_fields: ClassVar[tuple[str, ...]] = ("names",)  # what messages of kernels quote; the rest is for errors and undo
    identity_lookups: ClassVar[tuple[str, ...]] = ("names",)

    directives: list[Directive] = field(default_factory=list)
    names: dict[Any, str] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    history: History = field(default_factory=History)
    line: SourceLine | None = None
    pending: dict[Any, tuple[str, Any]] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    outputs: dict[Operation, Tensor] = field(default_factory=dict)  # the first one of each that was asked for

    def copy(self, twins: dict[StageState, StageState]) -> Recorder:
        """The same records for the copies `twins` of the stages."""
        stages = {id(stage): twin for stage, twin in twins.items()}
        names = {stages.get(id(thing), thing): name for thing, name in self.names.items()}
        return Recorder(list(self.directives), names, dict(self.objects), self.history.copied(twins), given=set(self.given))

    # --- the directives ---

    def record(self, schedule: ScheduleState, call: Directive, made: Sequence[Any]) -> None:
        """Adds the directive `call`, which has been applied, and gives names to the objects `made` by it: loops, tensors,
        ...
        """
        self._keep_names(call)
        results = tuple([self._bind(one, schedule) for one in made])
        self.directives.append(Directive(call.name, call.stage, call.on, call.arguments, call.named, results, call.several,
                                         self.line or user_line()))
        schedule.sync_versions()
        self.history.take(schedule)

    def journal(self, state: ScheduleState, start: int = 0) -> Journal:
        """The directives of `state` from number `start` on."""
        kept = {var for thing in self.objects.values() if isinstance(thing, Expr) for var in variables(thing)}
        threads = {axis.var: name for axis, name in self.names.items() if isinstance(axis, IterVar) and axis.thread_tag
                   and axis.var in kept and name not in self.objects} if kept else {}
        given = [name for name, thing in self.objects.items() if isinstance(thing, Var) and thing.name == name]
        symbols = {var.name for var in symbols_of(stage.origin_op for stage in state.stages)} if given else set()
        return Journal(self.directives[start:], self.objects, threads, [name for name in given if name not in symbols])

    def take_back(self, state: ScheduleState, count: int) -> Journal:
        """Restores `state` to before its last `count` directives and returns these."""
        undone = self.journal(state, len(self.directives) - count)
        self.return_to(state, len(self.directives) - count)
        return undone

    def return_to(self, state: ScheduleState, number: int | None = None) -> None:
        """Restores `state` to after its first `number` directives; None: to before the directive that just failed."""
        history = self.history
        history.return_to(state, number)
        if number is None:
            number = len(history.snapshots) - 1
        else:
            history.forget_after(number)
        assert history.rest is not None
        del self.directives[number:]
        self.names = dict(islice(self.names.items(), history.rest.names))
        self.objects = dict(islice(self.objects.items(), history.rest.objects))
        self.given = set(self.names.values())
        self.pending = {}

    # --- names ---

    def _keep_names(self, call: Directive) -> None:
        """Keeps the pending names that `call` uses, and drops those that were given for refused directives."""
        said = call.names_said() if self.pending else set()
        for key, (name, thing) in self.pending.items():
            if name in said:
                self._give(key, name)
                if thing is not None:
                    self.objects[name] = thing
        self.pending = {}

    def _bind(self, made: Any, schedule: ScheduleState) -> str:
        """The name of an object that a directive created: a new one unless it has one."""
        if made not in self.names:
            wish = f"{made.name}_special" if getattr(made, "version_of", None) is not None else made.name
            self._give(made, self.free_name(wish, schedule))
        return self.names[made]

    def _give(self, thing: Any, name: str) -> None:
        self.names[thing] = name
        self.given.add(name)

    def free_name(self, wish: str, schedule: ScheduleState) -> str:
        """A Python identifier derived from `wish` that no object and no stage of `schedule` has."""
        return free_name(wish, self.given, {name for name, _ in self.pending.values()}, schedule.order.names)

    # --- what the language of journals calls the parts of a schedule ---

    def stage(self, stage: StageState, directive: str = "a directive") -> Term:
        """The term for a stage: `s[C]`, or `s.stages[2]` where its name is not unique. Refuses a stage that undo removed."""
        if stage.undone:
            origin = f"the version of {stage.name} where {shown(stage.condition)} was made by a specialize" \
                if stage.version_of is not None else f"{stage.name} was made by a directive"
            raise ScheduleError(directive, stage.name, f"{origin} that undo took back", loops=(),
                                hint="apply that directive again, and use what it returns")
        return self.handle(stage)

    def handle(self, stage: StageState) -> Term:
        """The term for a stage, without a check; for a version, the name that specialize gave it."""
        return Name(self.names.get(stage, stage.name)) if stage.version_of is not None else self._stage(stage)

    def _stage(self, stage: StageState) -> Term:
        name = self._name_of(stage) or (stage.name if stage.undone else None)
        return stage_named(name) if name else terms.field(SCHEDULE, "stages", stage.schedule.position(stage))

    def tensor(self, tensor: Tensor, stage: StageState) -> Term:
        """The term for a tensor whose stage is `stage`."""
        name = self.names.get(tensor) or self._own_name(stage)
        return Name(name) if name else Apply("output", (self._op(stage), tensor.value_index))

    def operation(self, stage: StageState) -> Term:
        """The term for the operation of `stage`, or for its tensor if that has a name."""
        name = self._name_of(stage)
        return Name(name) if name else self._op(stage)

    def _op(self, stage: StageState) -> Term:
        return terms.field(terms.field(SCHEDULE, "stages", stage.schedule.position(stage)), "op")

    def _name_of(self, stage: StageState) -> str | None:
        op = stage.origin_op
        tensor = self.outputs.get(op)
        if tensor is None:
            tensor = self.outputs[op] = op.output(0)
        return self.names.get(tensor) or self._own_name(stage)

    def _own_name(self, stage: StageState) -> str | None:
        name = stage.name
        usable = is_plain(name) and name not in self.given and stage.origin_op.num_outputs == 1 \
            and stage.schedule.order.names.get(name) == 1
        return name if usable else None

    # --- the same for hints ---

    def written(self, stage: StageState) -> str:
        """The Python text for a stage, which may be one that undo removed."""
        return text_of(self._stage(stage))

    def placed(self, stage: StageState) -> str:
        """The text of the directive that determines where `stage` is computed."""
        number = self.history.last_change(stage, lambda said: (said["attach_type"], said["attach_stage"], said["attach_ivar"]))
        return self.directives[number - 1].call if number else f"{self.written(stage)}.compute_at"
