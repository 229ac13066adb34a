"""The journal of a schedule: every directive that was applied, as a frozen record with its text in Python.

Run over a fresh schedule `s` of the same operations, the texts build the same schedule. They name tensors by their own
names where these are unique Python names, else by position (`s.stages[2]`), and loops by the names given here. An argument
that Python text cannot say (an intrinsic, a function) stands there by a name, and the journal keeps it in `objects`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from tedsl.errors import ArgumentError, ArgumentTypeError, InternalError, ScheduleError
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Expr, IntImm, StringImm, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.operators import LazyEqual
from tedsl.ir.source_line import SourceLine, user_line
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import thread_axis_of
from tedsl.lang.tensor import Tensor
from tedsl.schedule.arguments import whole_number
from tedsl.schedule.record.history import History
from tedsl.schedule.record.names import free_name, is_plain, names_said
from tedsl.schedule.record.spelling import spelled

if TYPE_CHECKING:
    from tedsl.schedule.state import ScheduleState, StageState

PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Directive:
    """One directive that was applied: its name, the name of its stage ("" for the schedule), its text as Python, and the
    line of the program that called it (which does not count when records are compared)."""

    name: str
    stage: str
    text: str
    where: SourceLine | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def origin(self) -> str:
        """How errors and pages point to it: `s[B].split(s[B].op.axis[0], factor=8)  (prog.py:12)`."""
        return self.text + (f"  ({self.where.short})" if self.where is not None else "")


class Journal(tuple[Directive, ...]):
    """The directives of a schedule in order; printed, a Python program over `s`. `s.replay(journal)` applies it.

    objects: what the texts name and cannot say, for a replay in this process.
    threads: variables in these that belong to thread axes which a text makes, with the names that it gives them.
    loose: names of variables among these by which no schedule finds them again: no shape, formula or statement has them.
    """

    objects: Mapping[str, Any]
    threads: Mapping[Var, str]
    loose: frozenset[str]

    def __new__(cls, directives: Sequence[Directive] = (), objects: Mapping[str, Any] | None = None,
                threads: Mapping[Var, str] | None = None, loose: Collection[str] = ()) -> Journal:
        directives = tuple(directives)
        wrong = next((one for one in directives if not isinstance(one, Directive)), None)
        if wrong is not None:
            raise ArgumentTypeError(f"a journal is made of directives, and {wrong!r} is none", hint="take it from s.journal")
        made = super().__new__(cls, directives)
        made.objects, made.threads, made.loose = dict(objects or {}), dict(threads or {}), frozenset(loose)
        return made

    @overload
    def __getitem__(self, index: SupportsIndex) -> Directive: ...
    @overload
    def __getitem__(self, index: slice) -> Journal: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Directive | Journal:
        if isinstance(index, slice):
            return Journal(super().__getitem__(index), self.objects, self.threads, self.loose)
        return super().__getitem__(index)

    def __add__(self, other: object) -> Journal:
        """The directives of both, one after the other."""
        if not isinstance(other, tuple) or not all(isinstance(one, Directive) for one in other):
            return NotImplemented
        objects = dict(other.objects) if isinstance(other, Journal) else {}
        twice = next((name for name, thing in objects.items() if self.objects.get(name, thing) is not thing), None)
        if twice is not None:
            raise ArgumentError(f"both journals speak of {twice}, and mean different objects of this process",
                                hint="replay them one after the other")
        threads, loose = (other.threads, other.loose) if isinstance(other, Journal) else ({}, frozenset())
        return Journal(tuple(self) + tuple(other), {**self.objects, **objects}, {**threads, **self.threads}, self.loose | loose)

    def __mul__(self, times: SupportsIndex) -> Journal:
        return Journal(super().__mul__(times), self.objects, self.threads, self.loose)

    __rmul__ = __mul__

    def __str__(self) -> str:
        return "\n".join(d.text for d in self)

    def __repr__(self) -> str:
        return f"<journal of {len(self)} directive{'s' * (len(self) != 1)}; print it, or s.replay it>"

    def to_json(self, indent: int | None = 2) -> str:
        """The journal as JSON. Refuses a directive one of whose arguments lives in this process only."""
        if indent is not None and not isinstance(indent, (int, str)):
            raise ArgumentTypeError(f"to_json: indent is a number of blanks, got {indent!r}")
        from tedsl.schedule.record.journal_json import written

        return written(self, indent)

    @staticmethod
    def from_json(text: str | bytes) -> Journal:
        """The journal that `to_json` wrote. Anything else is an ArgumentError; nothing in it is ever run as Python."""
        from tedsl.schedule.record.journal_json import read

        return read(text)


@dataclass(eq=False)
class Recorder:
    """Writes the journal: gives names to what directives make, and writes arguments as Python."""

    directives: list[Directive] = field(default_factory=list)
    names: dict[Any, str] = field(default_factory=dict)  # IterVar, Tensor or another object → its Python name
    objects: dict[str, Any] = field(default_factory=dict)  # what a text names and cannot say
    history: History = field(default_factory=History)
    line: SourceLine | None = None  # while a journal is replayed: the line of the directive that is applied
    pending: dict[Any, tuple[str, Any]] = field(default_factory=dict)  # names that count once their directive is recorded

    def copy(self, twins: dict[StageState, StageState]) -> Recorder:
        """The same records, about the stages `twins`."""
        names = {twins[thing] if id(thing) in map(id, twins) else thing: name for thing, name in self.names.items()}
        return Recorder(list(self.directives), names, dict(self.objects), self.history.copied(twins))

    def record(self, name: str, call: str, stage: StageState, results: Any = (), *, on_schedule: bool = False) -> None:
        """Adds the directive `call`, which returned `results`: loops, tensors, ... (a list or tuple of them as such)."""
        if not call:
            raise InternalError(f"{name} on stage {stage.name} was applied, and nothing says how: were its arguments checked?")
        self._keep_names(call)
        several = isinstance(results, (list, tuple))
        made = [self.bind(r, stage) for r in (results if several else (results,))]
        text = f"{', '.join(made)}{',' * (several and len(made) == 1)} = {call}" if made else call
        self.directives.append(Directive(name, "" if on_schedule else stage.name, text, self.line or user_line()))
        stage.schedule.sync_versions()
        self.history.take(stage.schedule)

    def journal(self, state: ScheduleState, start: int = 0) -> Journal:
        """The directives of `state` from number `start` on."""
        from tedsl.schedule.record.symbols import symbols_of  # it looks into operations, and so stands above

        kept = {var for thing in self.objects.values() if isinstance(thing, Expr) for var in variables(thing)}
        threads = {axis.var: name for axis, name in self.names.items() if isinstance(axis, IterVar) and axis.thread_tag
                   and axis.var in kept and name not in self.objects} if kept else {}
        given = [name for name, thing in self.objects.items() if isinstance(thing, Var) and thing.name == name]
        found = {var.name for var in symbols_of(stage.origin_op for stage in state.stages)} if given else set()
        return Journal(self.directives[start:], self.objects, threads, [name for name in given if name not in found])

    def take_back(self, state: ScheduleState, count: int) -> Journal:
        """Makes `state` what it was before its last `count` directives; returns these."""
        undone = self.journal(state, len(self.directives) - count)
        del self.directives[len(self.directives) - count:]
        snapshot = self.history.snapshots[len(self.directives)]
        self.history.put_back(state, len(self.directives))
        del self.history.snapshots[len(self.directives) + 1:]
        self.names = dict(list(self.names.items())[:snapshot.names])
        self.objects = dict(list(self.objects.items())[:snapshot.objects])
        return undone

    def _keep_names(self, call: str) -> None:
        """The names that were given to arguments of `call` stay; those given for directives that were refused go."""
        said = names_said(call) if self.pending else set()
        for key, (name, thing) in self.pending.items():
            if name in said:
                self.names[key] = name
                if thing is not None:
                    self.objects[name] = thing
        self.pending = {}

    def bind(self, made: Any, stage: StageState) -> str:
        """A new Python name for a loop or tensor that a directive made."""
        if made not in self.names:
            wish = f"{made.name}_special" if getattr(made, "version_of", None) is not None else made.name
            self.names[made] = self._free_name(wish, {s.name for s in stage.schedule.stages})
        return self.names[made]

    def _free_name(self, wish: str, others: set[str]) -> str:
        return free_name(wish, {*self.names.values(), *(name for name, _ in self.pending.values()), *others})

    # --- arguments as Python ---

    def stage(self, stage: StageState, directive: str = "a directive") -> str:
        """`s[C]`, or `s.stages[2]` where no name tells the stage. Refuses a stage that undo took back."""
        if stage.undone:
            made = f"the version of {stage.name} where {stage.condition!r} was made by a specialize" \
                if stage.version_of is not None else f"{stage.name} was made by a directive"
            raise ScheduleError(directive, stage.name, f"{made} that undo took back", loops=(),
                                hint="apply that directive again, and use what it returns")
        return self._text(stage)

    def _text(self, stage: StageState) -> str:
        return self.names.get(stage, stage.name) if stage.version_of is not None else self.written(stage)

    def written(self, stage: StageState) -> str:
        """The same for a hint, which may speak of a stage that is no more."""
        name = self.names.get(stage.origin_op.output(0)) or self._own_name(stage)
        name = name or (stage.name if stage.undone else None)
        return f"s[{name}]" if name else f"s.stages[{stage.schedule.position(stage)}]"

    def placed(self, stage: StageState) -> str:
        """The call that says where `stage` is computed."""
        number = self.history.last_change(stage, lambda said: (said["attach_type"], said["attach_stage"], said["attach_ivar"]))
        return self.directives[number - 1].text.split(" = ")[-1] if number else f"{self.written(stage)}.compute_at"

    def _own_name(self, stage: StageState) -> str | None:
        name = stage.name
        usable = is_plain(name) and name not in self.names.values() and stage.origin_op.num_outputs == 1 \
            and sum(s.name == name for s in stage.schedule.stages) == 1
        return name if usable else None

    def tensor(self, tensor: Tensor, stage: StageState) -> str:
        """The Python of a tensor whose stage is `stage`."""
        name = self.names.get(tensor) or self._own_name(stage)
        return name or f"s.stages[{stage.schedule.position(stage)}].op.output({tensor.value_index})"

    def axis(self, loop: IterVar, stage: StageState) -> str:
        """The Python of a loop of `stage`."""
        if loop in self.names:
            return self.names[loop]
        for kind in ("axis", "reduce_axis"):
            for at, one in enumerate(getattr(stage.op, kind, ())):
                if one is loop:
                    return f"{self._text(stage)}.op.{kind}[{at}]"
        if getattr(stage.op, "scan_axis", None) is loop:
            return f"{self._text(stage)}.op.scan_axis"
        return loop.name

    def value(self, value: Any) -> str:
        """The Python of a number, a string, a thread axis, an expression or a list of such; a name for any other object."""
        if isinstance(value, PLAIN):
            return repr(value)
        number = None if isinstance(value, IntImm) and value.dtype is not INT32 else whole_number(value)
        if number is not None:
            return str(number)
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            inner = ", ".join(map(self.value, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
        if isinstance(value, StringImm):
            return repr(value.value)
        if isinstance(value, IterVar):
            return self._thread_axis(value)
        expr = value.asobject() if isinstance(value, LazyEqual) else value
        text = self._formula(expr) if isinstance(expr, Expr) else None
        return text if text is not None else self.object(value)

    def _formula(self, expr: Expr) -> str | None:
        """The Python of `expr`, None where there is none. A thread axis that no directive has named yet is made in it, where
        its variable first stands, so that the directive that binds it takes the same one."""
        made: set[IterVar] = set()

        def variable(var: Var) -> str | None:
            axis = thread_axis_of(var)
            if axis is None or axis in self.names or self._in_objects(var):
                return self._variable(var)
            if axis in made:
                return f"{self.pending[axis][0]}.var"
            made.add(axis)
            return f"({self._thread_axis(axis)}).var"

        before = dict(self.pending)
        text = spelled(expr, variable)
        if text is None:
            self.pending = before
        return text

    def function(self, parameters: Sequence[Var], result: Sequence[Any], given: Any) -> str:
        """The Python of a function of `parameters` that returns the list `result`; a name for `given` where it is too long."""
        used = [v for one in result if isinstance(one, Expr) for v in variables(one)]
        others = {v: self._variable(v) for v in used if v not in parameters}
        names: dict[Var, str] = {}
        for one in parameters:  # none hides a name of the journal
            names[one] = free_name(one.name, {*names.values(), *(name.split(".")[0] for name in others.values())})
        known = {**others, **names}
        parts = [spelled(one, known.get) if isinstance(one, Expr) else repr(one) for one in result]
        said = [part for part in parts if part is not None]
        if len(said) < len(parts):
            return self.object(given)
        return f"lambda {', '.join(names.values())}: [{', '.join(said)}]"

    def object(self, value: Any) -> str:
        """A name under which the journal keeps `value`, for what Python text cannot say."""
        key = value if type(value).__hash__ is not None else id(value)
        if key in self.names:
            return self.names[key]
        if key not in self.pending:
            wish = getattr(value, "name", None) or getattr(value, "__name__", None) or type(value).__name__
            self.pending[key] = self._free_name(str(wish), self._stage_names()), value
        return self.pending[key][0]

    def _stage_names(self) -> set[str]:
        """The stages of the schedule, to which no other name may stand."""
        return {stage.name for stage in self.history.snapshots[-1].stages} if self.history.snapshots else set()

    def _variable(self, var: Var) -> str:
        """The name of a variable of an expression: that of the axis it belongs to, or its own."""
        for axis, name in self.names.items():
            if isinstance(axis, IterVar) and axis.var is var:
                return f"{name}.var"
        return self.object(var)

    def _thread_axis(self, axis: IterVar) -> str:
        """A thread axis: made where it is first named, so that every use is the same one; an object where its variable stands
        in one already, which a new axis would not have."""
        if axis in self.names or not axis.thread_tag or self._in_objects(axis.var):
            return self.object(axis)
        dom = self._domain(axis.dom)
        given = [*([dom] if dom else []), repr(axis.thread_tag)]
        if axis.name != axis.thread_tag:
            given.append(f"name={axis.name!r}")
        if axis not in self.pending:
            self.pending[axis] = self._free_name(axis.name, self._stage_names()), None
        return f"{self.pending[axis][0]} := te.thread_axis({', '.join(given)})"

    def _in_objects(self, var: Var) -> bool:
        return any(var in variables(kept) for kept in self.objects.values() if isinstance(kept, Expr))

    def _domain(self, dom: Range | None) -> str:
        if dom is None or dom.extent is None:
            return ""
        return self.value((dom.min, dom.min + dom.extent))

    def operations(self, stages: Sequence[StageState]) -> str:
        """A list of stages as arguments: `[B, C]`."""
        return f"[{', '.join(self.operation(s) for s in stages)}]"

    def operation(self, stage: StageState) -> str:
        """The Python of the operation of a stage."""
        name = self.names.get(stage.origin_op.output(0)) or self._own_name(stage)
        return name or f"s.stages[{stage.schedule.position(stage)}].op"
