"""Random directives, drawn on a live schedule: what it refuses is counted and left out, and must have changed nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tedsl import te
from tedsl.driver import schedule_to_module
from tedsl.errors import ScheduleError, TedslError
from tedsl.fuzz.case import Case
from tedsl.fuzz.directives import intrinsics
from tedsl.fuzz.directives.table import DIRECTIVES, RARE
from tedsl.fuzz.directives.wild import wild
from tedsl.fuzz.draw import Draw
from tedsl.ir.build import as_int
from tedsl.lang.operation import ComputeOp
from tedsl.lang.tensor import Tensor
from tedsl.schedule.attach import misplaced
from tedsl.schedule.domains import written_tiling
from tedsl.schedule.journal import Journal
from tedsl.schedule.relations import Split
from tedsl.schedule.state import AttachType, StageState

LONGEST = 15  # directives
# Accepted by the schedule, and often refused by lowering, which knows the regions.
DOUBTFUL = frozenset(("tensorize", "rolling_buffer", "prefetch", "bind", "bind_vthread", "env_threads", "set_store_predicate",
                      "double_buffer", "unroll", "vectorize", "decompose_reduction"))


class Changed(AssertionError):
    """A directive was refused, and the schedule is not what it was before."""


def declared(case: Case) -> dict[str, Any]:
    """The names that the lines of a case define, as tedsl's objects."""
    names: dict[str, Any] = {"te": te}
    for text in case.lines:
        exec(text, names)
    return names


def with_schedule(case: Case, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The names with a fresh schedule `s`, and what directives use besides: `loop(T, 2)` is loop number 2 of tensor T,
    `replayed(s)` a fresh schedule with the journal of `s`, which becomes JSON on the way."""
    names = dict(declared)

    def fresh() -> Any:
        return te.create_schedule([names[name].op for name in case.outputs])

    def replayed(s: Any) -> Any:
        made = fresh()
        journal = s.journal
        made.replay(Journal.from_json(journal.to_json()) if portable(journal) else journal)
        if str(made) != str(s):
            raise Changed(f"the replayed schedule is another one:\n{s}\n{made}")
        return made

    names.update(s=fresh(), replayed=replayed, intrinsics=intrinsics,
                 loop=lambda tensor, number: names["s"][tensor].leaf_iter_vars[number])
    return names


def portable(journal: Journal) -> bool:
    """Whether its texts say it all: an intrinsic is an object of the program."""
    return not any(directive.name == "tensorize" for directive in journal)


def scheduled(case: Case, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The names with the schedule applied; directives that are refused are left out."""
    names = with_schedule(case, declared(case) if given is None else given)
    for text in case.schedule:
        try:
            exec(text, names)
        except (TedslError, NameError, LookupError, AttributeError):  # what an earlier directive made is not there
            continue
    return names


class Scheduler:
    """Draws directives as text, applies them, keeps those that were accepted."""

    def __init__(self, case: Case, draw: Draw, declared: Mapping[str, Any]) -> None:
        self.case, self.draw = case, draw
        self.names = with_schedule(case, declared)
        self.given = declared
        self.doubted: list[str] = []  # directives that lowering refused, and that were taken back
        self.groups = [line.split(" = ")[0].split(", ") for line in case.lines if " = te.compute(" in line]
        self.tensors = [group[0] for group in self.groups]
        self.inputs = [name for name in case.data if self.names[name].op in self.s.state.stage_map]
        self.tensors = [name for name in self.tensors if self.names[name].op in self.s.state.stage_map]
        self.refused: list[str] = []
        favourites = draw.sample(RARE, 2) if draw.chance(30) else draw.sample(DIRECTIVES, 3)  # so that rare ones meet
        self.weights = {propose: weight * (5 if propose in favourites else 1) for propose, weight in DIRECTIVES.items()}

    # --- what there is ---

    @property
    def s(self) -> Any:
        """The schedule: `copy` and `replay` make another."""
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
        """A tensor and the number of one of the `places` of its stage; in so many of 100 cases the first or last of them."""
        name = self.pick_stage(lambda stage: bool(places(stage)))
        if name is None:
            return None
        found = places(self.state(name))
        if self.draw.chance(first):
            return name, found[0]
        return name, found[-1] if self.draw.chance(last) else self.draw.choice(found)

    # --- what is done ---

    def attempt(self, kind: str, text: str) -> bool:
        """Whether the directive was accepted. Changed if it was refused and has left something behind."""
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
        """Leaves out the tensors that the schedule does not have any more."""
        self.tensors = [name for name in self.tensors if self.names[name].op in self.s.state.stage_map]

    def step(self) -> None:
        """One more directive, if one of those drawn finds a place."""
        for _ in range(6):
            propose = self.draw.weighted(self.weights)
            found = propose(self)
            if found is not None:
                for kind, text in found if isinstance(found, list) else [(propose.__name__, found)]:
                    if not self.attempt(kind, text):
                        break
                return

    def draw_all(self, longest: int = LONGEST) -> None:
        for _ in range(self.draw.between(1, longest)):
            if self.draw.chance(5):
                text = wild(self)
                if text is not None:
                    self.attempt("wild", text)
            else:
                self.step()
        self.settle()

    def repair(self) -> None:
        """Leaves out directives without which lowering accepts the schedule, the last one first; keeps it if there is none."""
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
        """Producers that do not stand before all their readers go to the root: lowering would refuse them."""
        while wrong := misplaced(self.s.state):
            stage = wrong[0].producer
            at = next((at for at, group in enumerate(self.s.state.groups) if group in self.s.state.group_hosts
                       and stage.group is not None and group in stage.group.chain()), None)
            other = f"s.stages[{stage.schedule.position(stage)}]"
            name = next((f"s[{n}]" for n in self.tensors if self.state(n) is stage), other)
            self.attempt("compute_root", f"{name}.compute_root()" if at is None else f"s.groups[{at}].compute_root()")


def snapshot(state: Any) -> tuple[Any, ...]:
    """Everything that a schedule consists of, to be compared: the same objects in the same places."""
    stages = [tuple(_frozen(getattr(stage, field.name)) for field in dataclasses.fields(stage)) for stage in state.stages]
    rest = [_frozen(getattr(state, field.name)) for field in dataclasses.fields(state) if field.name != "recorder"]
    return (tuple(stages), tuple(rest), len(state.recorder.directives))


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(id, value))
    if isinstance(value, dict):
        return tuple((id(key), id(item)) for key, item in value.items())
    return value if isinstance(value, (int, str)) else id(value)


def measure(case: Case, s: Any) -> None:
    """Notes of which kind the program is."""
    stages = [stage.state for stage in s.stages]
    case.counts["attached"] = int(any(stage.attach_type == AttachType.SCOPE for stage in stages))
    case.counts["not dividing"] = int(any(_uneven(stage) for stage in stages))


def _uneven(stage: StageState) -> bool:
    """Whether a split of the stage leaves a remainder, or may for some size."""
    splits = [relation for relation in stage.relations if isinstance(relation, Split)]
    extents = written_tiling(stage).extents if splits else {}
    for relation in splits:
        extent = as_int(extents[relation.parent]) if relation.parent in extents else None
        by = as_int(relation.factor if relation.factor is not None else relation.nparts)
        if extent is None or (by and extent % by):
            return True
    return False


OPTIONS: dict[str, Callable[[Draw], Any]] = {
    "tir.LoopPartition": lambda draw: {"partition_const_loop": True} if draw.chance(20) else None,
    "tir.UnrollLoop": lambda draw: {"auto_max_step": draw.choice([4, 16]), "explicit_unroll": draw.chance(70)}
    if draw.chance(10) else None,
    "tir.disable_vectorize": lambda draw: draw.chance(4) or None,
    "tir.noalias": lambda draw: False if draw.chance(5) else None,
}


def draw_schedule(case: Case, draw: Draw, names: Mapping[str, Any] | None = None) -> Scheduler:
    """Adds a schedule and options to the case. `names`: its tensors, if they have been declared."""
    scheduler = Scheduler(case, draw, declared(case) if names is None else names)
    scheduler.draw_all()
    if draw.chance(80):
        scheduler.repair()
    measure(case, scheduler.s)
    for option, choose in OPTIONS.items():
        value = choose(draw)
        if value is not None:
            case.config[option] = value
    case.simple_mode = draw.chance(10)
    return scheduler
