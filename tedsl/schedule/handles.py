"""The handle of a schedule, `Schedule`, and `create_schedule`.

Like `Stage` it stores nothing: the directives are in `primitives`, the data in `state.py`; the decorator `directive` checks and
records each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tedsl.display.text import Text
from tedsl.errors import ArgumentError, ArgumentTypeError, ScheduleError, entry, missing_attribute
from tedsl.ir.iters import IterVar
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor
from tedsl.schedule.explain import explain, schedule_page
from tedsl.schedule.given_numbers import whole_number
from tedsl.schedule.group import StageGroup
from tedsl.schedule.journal import Journal
from tedsl.schedule.normalize import normalized
from tedsl.schedule.primitives.cache_read import cache_read
from tedsl.schedule.primitives.cache_write import cache_write
from tedsl.schedule.primitives.create_group import create_group
from tedsl.schedule.primitives.reductions.pad_sum import pad_sum
from tedsl.schedule.primitives.reductions.rfactor import rfactor
from tedsl.schedule.primitives.reindex_cache_read import reindex_cache_read
from tedsl.schedule.record.applied import Owner, directive
from tedsl.schedule.record.directive import OF_SCHEDULES, OF_STAGES
from tedsl.schedule.record.replay import replay
from tedsl.schedule.record.term import SCHEDULE
from tedsl.schedule.scan.checks import check_scans
from tedsl.schedule.show import schedule_text
from tedsl.schedule.stage import Stage
from tedsl.schedule.state import ScheduleState, StageState, describe


class Schedule:
    """How a computation is done: a stage for each operation, producers first. `s[C]` is the stage of tensor or operation C."""

    __slots__ = ("_handles", "state")
    _directives: ClassVar[frozenset[str]] = OF_SCHEDULES

    def __init__(self, state: ScheduleState) -> None:
        self.state = state
        self._handles: dict[StageState, Stage] = {}

    def _owner(self, directive: str, args: Sequence[Any]) -> Owner:
        return Owner(SCHEDULE, self.state)

    def handle(self, state: StageState) -> Stage:
        """The handle of a stage: one for each stage."""
        if state not in self._handles:
            self._handles[state] = Stage(self, state)
        return self._handles[state]

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        return self.handle(stage_of(self.state, key, "s[...]"))

    def __contains__(self, key: object) -> bool:
        op = key.op if isinstance(key, Tensor) else key
        return isinstance(op, Operation) and op in self.state.stage_map

    # --- directives that make stages ---

    @directive
    def cache_read(self, tensor: Tensor, scope: str, readers: Any, dtype: Any = None) -> Tensor:
        """Copy `tensor` into memory of `scope`; `readers` (operations or tensors) read the copy. Returns the copy, a new stage.

        dtype: of the copy, one that holds every value of the tensor: what readers cast to it is cast once, in the copy.

        Example (matmul):
            AA = s.cache_read(A, "global", [C])
            s[AA].compute_at(s[C], y)

        Raises ScheduleError for a tensor of another schedule, a reader that does not read it, or a dtype that does not hold
        its values.
        """
        source = stage_of(self.state, tensor, "cache_read", "the first argument")
        listed = list(readers) if isinstance(readers, (list, tuple)) else [readers]
        consumers = [stage_of(self.state, reader, "cache_read", "a reader, the third argument,") for reader in listed]
        return cache_read(source, tensor, scope, consumers, dtype)

    @directive
    def reindex_cache_read(self, tensor: Tensor, scope: str, reader: Any) -> Tensor:
        """Copy what `reader` (an operation or tensor) reads of `tensor` into memory of `scope`, in the order of the axes of
        `reader`. Returns the copy, a new stage with a dimension for each axis that the indices use.

        So windows of an image become the columns of a matrix, and elements that a stride skips are left out.

        Example (window):
            AA = s.reindex_cache_read(A, "global", C)
            s[AA].compute_at(s[C], C.op.axis[0])

        Raises ScheduleError for a tensor of another schedule, and if `reader` does not read it, or at several places.
        """
        source = stage_of(self.state, tensor, "reindex_cache_read", "the first argument")
        consumer = stage_of(self.state, reader, "reindex_cache_read", "the reader, the third argument,")
        return reindex_cache_read(source, tensor, scope, consumer)

    @directive
    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Compute `tensor` in a new stage in memory of `scope`, from which the old stage copies. Returns the new tensor.

        Of an operation with several tensors, which are computed together, all are computed there; for a list of them a list is
        returned.

        Example (matmul):
            CC = s.cache_write(C, "global")
            s[CC].compute_at(s[C], y)

        Raises ScheduleError for a tensor of another schedule, or one without a formula.
        """
        several = isinstance(tensor, (list, tuple))
        given: list[Any] = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
        if not given:
            raise ArgumentTypeError("cache_write of no tensor", hint="give a tensor, or all tensors of one operation")
        stages = [stage_of(self.state, one, "cache_write", "the first argument") for one in given]
        copies = cache_write(stages, given, scope)
        return copies if several else copies[0]

    @directive
    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0, *, along: IterVar | None = None) -> Any:
        """Reduce in two steps: a new stage has a partial result for each value of the loop `axis`; `tensor` reduces over these.

        factor_axis: the place of the new axis among those of the new stage. along: an axis of `tensor` along which windows
        overlap: partial results that are equal are one element of the new stage, whose axis for them has the place of that one.
        Returns the new tensor; for a reduction of several values the list of them.

        Example (rowsum):
            ko, ki = s[B].split(k, factor=16)
            BF = s.rfactor(B, ki)

        Example (pool):
            rows = s.rfactor(P, ky, along=y)

        Raises ScheduleError for an axis that is not a reduction axis of the stage, and for `along` if partial results of
        different elements are not equal.
        """
        stage = stage_of(self.state, tensor, "rfactor", "the first argument")
        factored = rfactor(stage, tensor, axis, factor_axis, along)
        return factored if len(factored) > 1 else factored[0]

    @directive
    def pad_sum(self, tensor: Tensor, axis: IterVar, multiple: Any) -> list[Tensor]:
        """Sum over more terms: the extent of `axis` of the formula of `tensor` becomes a multiple of `multiple`. What is read
        along it is read from copies that have zeros there. Returns the copies, new stages.

        So instructions that add up several terms take all of them.

        Example (matmul):
            AA, BB = s.pad_sum(C, k, 24)

        Raises ScheduleError for what is not a sum of products, and for an axis that is not an index of all that is read
        along it.
        """
        return pad_sum(stage_of(self.state, tensor, "pad_sum", "the first argument"), tensor, axis, multiple)

    @directive(by_name=("include_inputs",))
    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> StageGroup:
        """Group the stages between `inputs` and `outputs` (tensors or operations); compute_at of the group places all of them.

        Example (chain):
            group = s.create_group(outputs=B, inputs=A)
            group.compute_at(s[C], y)

        Raises ScheduleError for a tensor of another schedule.
        """
        ends = []
        for what, given in (("outputs", outputs), ("inputs", inputs)):
            ends.append([stage_of(self.state, one, "create_group", f"each of {what}")
                         for one in (given if isinstance(given, (list, tuple)) else [given])])
            if not ends[-1]:
                raise ArgumentTypeError(f"create_group: no {what} are given", hint="list the tensors at which the group ends "
                                        "and begins: s.create_group(outputs=[C], inputs=[A])")
        if not isinstance(include_inputs, (bool, int)):
            raise ArgumentTypeError(f"create_group: include_inputs is True or False, got {include_inputs!r}")
        return StageGroup(self, create_group(self.state, ends[0], ends[1], bool(include_inputs)))

    # --- what is there now ---

    @property
    def groups(self) -> list[StageGroup]:
        """The groups, in the order in which they were made."""
        return [StageGroup(self, group) for group in self.state.groups]

    @property
    def stages(self) -> list[Stage]:
        """The stages, producers first."""
        return [self.handle(stage) for stage in self.state.stages]

    @property
    def outputs(self) -> list[Operation]:
        """The operations that were given to create_schedule; `s[op].op` is the current operation of each."""
        return list(self.state.outputs)

    @property
    def stage_map(self) -> dict[Operation, Stage]:
        """The stage of each operation, also of operations that were replaced."""
        return {op: self.handle(stage) for op, stage in self.state.stage_map.items()}

    @property
    def journal(self) -> Journal:
        """The directives so far. Printed, they are a Python program over `s`."""
        return self.state.recorder.journal(self.state)

    @property
    def schedule_record(self) -> list[Schedule]:
        """Copies of this schedule as it was: before the first directive, and after each. The last is as it is now."""
        made = [self.copy()]
        while len(made[-1].journal):
            before = made[-1].copy()
            before.undo()
            made.append(before)
        return made[::-1]

    @property
    def primitive_record(self) -> list[str]:
        """The name of what led to each schedule of `schedule_record`: "vanilla" is the schedule without directives."""
        return ["vanilla", *(directive.name for directive in self.journal)]

    def undo(self, n: int = 1) -> Journal:
        """Take back the last `n` directives and return them. Tensors and loops from before are valid again.

        Raises ArgumentError for more directives than there are, ArgumentTypeError for what is not an integer.
        """
        recorder = self.state.recorder
        count = whole_number(n)
        if count is None:
            raise ArgumentTypeError(f"undo(n): n is a number of directives, an integer, got {describe(n)}; this schedule has "
                                    f"{len(recorder.directives)}", hint="write s.undo() for the last one, s.undo(2) for two")
        if not 0 <= count <= len(recorder.directives):
            raise ArgumentError(f"undo of {count} directives; this schedule has {len(recorder.directives)}",
                                hint="print(s.journal) lists them")
        return recorder.take_back(self.state, count)

    def replay(self, journal: Journal) -> None:
        """Apply the directives of `journal`, in order: all of them or, if one is refused, none.

        A journal refers to stages and sizes by their names and to axes by their numbers. It fits every program that has these,
        whatever its shapes, dtypes and formulas. Factors stay as they were written.
        """
        replay(self, journal)

    def explain(self) -> Text:
        """Report the loops of every stage with extents, places and memory, and the reason for each guard.

        Returns a str that displays as its text: `s.explain()` in a notebook or at the prompt needs no print.
        """
        return explain(self)

    def copy(self) -> Schedule:
        """A copy of this schedule; directives on one do not change the other."""
        return Schedule(self.state.copy())

    def normalize(self) -> Schedule:
        """A copy in which inlined stages are written into their readers and every loop starts at 0."""
        return Schedule(normalized(self.state))

    def __parts__(self) -> tuple[Any, ...]:
        """What `ir.save_json` writes of it: the operations that it computes, as before the first directive, and its journal."""
        plain = self.copy()
        plain.undo(len(plain.journal))
        return "Schedule", tuple(plain.outputs), self.journal.to_json(None)

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves

        def __getattr__(self, name: str) -> Any:
            if name in Schedule.__slots__:  # not yet: it is being copied
                raise AttributeError(name)
            output = self.state.stages[-1].written
            raise missing_attribute("a schedule", name, Schedule, {one: f"{output}.{one}(...)" for one in OF_STAGES})

        def __setitem__(self, key: object, value: object) -> None:
            raise ArgumentTypeError("the stages of a schedule cannot be set or deleted: each operation has one",
                                    hint="s[C].compute_inline() leaves a stage to its readers; s.undo() takes a directive back")

        def __delitem__(self, key: object) -> None:
            self.__setitem__(key, None)

        def __len__(self) -> int:
            raise ArgumentTypeError("a schedule has no len()", hint="its stages are s.stages")

        def __bool__(self) -> bool:
            return True

        def __call__(self, *args: Any, **named: Any) -> Any:
            raise ArgumentTypeError("a schedule cannot be called: it describes how to compute, and is not compiled yet",
                                    hint="f = tedsl.build(s, [A, B]), then f(a, b)")

    def _repr_html_(self) -> str:
        return schedule_page(self)

    def __repr__(self) -> str:
        return f"schedule({', '.join(op.name for op in self.state.outputs)})"

    def __str__(self) -> str:
        return schedule_text(self.state)


def stage_of(state: ScheduleState, key: Any, directive: str, argument: str = "the key") -> StageState:
    """The stage of the tensor or operation `key`; refuses one that this schedule does not compute.

    directive, argument: where the user passed `key`, for the error.
    """
    op = key.op if isinstance(key, Tensor) else key
    if isinstance(op, Operation) and op in state.stage_map:
        return state.stage_map[op]
    names = [stage.name for stage in state.stages]
    if not isinstance(op, Operation):
        instead = ""
        if isinstance(key, Stage):
            instead = f"write the tensor, {key.state.tensor_written}, not its stage; "
        elif isinstance(key, str) and key in names:
            instead = f"write the tensor that has this name, {key}, not the name; "
        raise ScheduleError(directive, "?", f"{argument} is a tensor or an operation of this schedule, got {describe(key)}",
                            loops=(), hint=f"{instead}stages of this schedule: {', '.join(names)}")
    same = f"; its {op.name} is another operation of the same name" if op.name in names else ""
    raise ScheduleError(directive, op.name, f"{op.name} is not part of this schedule{same}", loops=(),
                        hint=f"stages of this schedule: {', '.join(names)}")


@entry
def create_schedule(ops: Any) -> Schedule:
    """A schedule for the outputs `ops`: an operation, a tensor, or a list of them. Every stage starts with plain loops.

    Raises ArgumentTypeError for what is neither an operation nor a tensor.
    """
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
    state = ScheduleState(tuple(outputs))
    state.stages = tuple([state.new_stage(op) for op in producers_first(outputs)])
    for op in outputs:
        state.stage_map[op].is_output = True
    check_scans(state)
    state.recorder.history.take(state)
    return Schedule(state)


def of_parts(outputs: Sequence[Operation], journal: str) -> Schedule:
    """The schedule of which `__parts__` gave the parts."""
    schedule = create_schedule(list(outputs))
    schedule.replay(Journal.from_json(journal))
    return schedule
