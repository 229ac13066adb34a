"""The schedule that random directives, given as text, are applied to; accepted ones are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tedsl.driver import schedule_to_module
from tedsl.errors import ScheduleError, TedslError
from tedsl.fuzz.applied import Changed, scheduled, with_schedule
from tedsl.fuzz.case import Case
from tedsl.fuzz.draw import Draw
from tedsl.lang.operation import ComputeOp
from tedsl.lang.tensor import Tensor
from tedsl.schedule.attach import misplaced
from tedsl.schedule.memory_options import Storage
from tedsl.schedule.state import StageState

# Accepted by the schedule, and often refused by lowering, which knows the regions.
DOUBTFUL = frozenset(("tensorize", "rolling_buffer", "prefetch", "bind", "bind_vthread", "env_threads", "set_store_predicate",
                      "double_buffer", "unroll", "vectorize", "decompose_reduction", "skip_zeros", "compute_with"))


class Scheduler:
    """Applies directives given as text and keeps those that were accepted; picks stages and loops for further ones."""

    def __init__(self, case: Case, draw: Draw, declared: Mapping[str, Any]) -> None:
        self.case, self.draw = case, draw
        self.names = with_schedule(case, declared)
        self.given = declared
        self.doubted: list[str] = []  # directives that lowering refused, and that were taken back
        self.groups = [line.split(" = ")[0].split(", ") for line in case.lines
                       if " = te.compute(" in line or " = te.scan(" in line]
        self.tensors = [group[0] for group in self.groups]
        self.inputs = [name for name in case.data if self.names[name].op in self.s.state.stage_map]
        self.tensors = [name for name in self.tensors if self.names[name].op in self.s.state.stage_map]
        self.refused: list[str] = []

    # --- what there is ---

    @property
    def s(self) -> Any:
        """The current schedule, which `copy` and `replay` replace."""
        return self.names["s"]

    def state(self, name: str) -> StageState:
        found: StageState = self.s[self.names[name]].state
        return found

    def number_of(self, name: str) -> int:
        number: int = self.names[name].value_index
        return number

    def group_of(self, name: str) -> list[str]:
        """The names of all outputs of the operation that makes `name`."""
        return next((group for group in self.groups if name in group), [name])

    def fresh(self, letter: str) -> str:
        return f"{letter}{len(self.case.schedule)}{letter}"

    def pick_stage(self, fits: Callable[[Any], bool]) -> str | None:
        """A tensor whose stage `fits`."""
        fitting = [name for name in self.tensors if isinstance(self.state(name).op, ComputeOp) and fits(self.state(name))]
        return self.draw.choice(fitting) if fitting else None

    def pick(self, places: Callable[[StageState], list[int]], *, first: int = 0, last: int = 0) -> tuple[str, int] | None:
        """A tensor and one of the `places` (loop numbers) of its stage; `first`, `last`: the percentage with which the first or
        last one is chosen.
        """
        name = self.pick_stage(lambda stage: bool(places(stage)))
        if name is None:
            return None
        numbers = places(self.state(name))
        if self.draw.chance(first):
            return name, numbers[0]
        return name, numbers[-1] if self.draw.chance(last) else self.draw.choice(numbers)

    # --- what is done ---

    def attempt(self, kind: str, text: str) -> bool:
        """Apply a directive; returns whether it was accepted. Raises Changed if it was refused and has changed the schedule."""
        before, names = snapshot(self.s.state), set(self.names)
        try:
            exec(text, self.names)
        except ScheduleError as error:
            self.refused.append(kind)
            if snapshot(self.s.state) != before:
                raise Changed(f"refused, and yet the schedule is another one: {text}\n{error}") from error
            return False
        except IndexError:  # no loop of that number
            return False
        self.case.schedule.append(text)
        self.case.kinds.append(kind)
        made = [name for name in self.names if name not in names and isinstance(self.names[name], Tensor)]
        if made:
            self.groups.append(made)
            self.tensors.append(made[0])
        if kind in ("undo", "copy", "replay"):
            self.forget()
        return True

    def accepts(self, text: str) -> bool:
        """Whether the schedule would accept the directive."""
        try:
            exec(text, {**self.names, "s": self.s.copy()})
        except (ScheduleError, IndexError):
            return False
        return True

    def forget(self) -> None:
        """Drops the names of tensors that the schedule no longer has."""
        self.tensors = [name for name in self.tensors if self.names[name].op in self.s.state.stage_map]

    def repair(self) -> None:
        """Drops one directive, tried from the last, without which lowering accepts the schedule; keeps all if there is none."""
        if self.lowers(self.names):
            return
        for at in reversed(range(len(self.case.schedule))):
            if self.case.kinds[at] in DOUBTFUL:
                fewer = replace(self.case, schedule=self.case.schedule[:at] + self.case.schedule[at + 1:])
                names = scheduled(fewer, self.given)
                if self.lowers(names):
                    self.doubted.append(self.case.kinds.pop(at))
                    self.case.schedule.pop(at)
                    self.names = names
                    return

    def lowers(self, names: Mapping[str, Any]) -> bool:
        try:
            schedule_to_module(names["s"], [names[name] for name in self.case.args])
        except TedslError:
            return False
        return True

    def settle(self) -> None:
        """Moves to the root producers that are not computed before all their readers, which lowering would refuse."""
        while wrong := misplaced(self.s.state):
            stage = wrong[0].producer
            at = next((at for at, group in enumerate(self.s.state.groups) if group in self.s.state.group_hosts
                       and group in stage.schedule.groups_around(stage.group)), None)
            other = f"s.stages[{stage.schedule.position(stage)}]"
            name = next((f"s[{n}]" for n in self.tensors if self.state(n) is stage), other)
            self.attempt("compute_root", f"{name}.compute_root()" if at is None else f"s.groups[{at}].compute_root()")


def snapshot(state: Any) -> tuple[Any, ...]:
    """The whole state of a schedule, for comparison by identity of its objects, by value of what holds numbers alone."""
    stages = [tuple(_frozen(getattr(stage, field.name)) for field in dataclasses.fields(stage)) for stage in state.stages]
    rest = [_frozen(getattr(state, field.name)) for field in dataclasses.fields(state) if field.name != "recorder"]
    return (tuple(stages), tuple(rest), len(state.recorder.directives))


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(id, value))
    if isinstance(value, dict):
        return tuple((id(key), id(item)) for key, item in value.items())
    return value if isinstance(value, (int, str, Storage)) else id(value)
