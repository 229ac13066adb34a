"""One schedule that a search considers."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import cached_property

from tedsl.auto_scheduler.cost.device import device_features, launches_of
from tedsl.auto_scheduler.cost.estimate import seconds_of
from tedsl.auto_scheduler.cost.features import features_of, nests_of
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.auto_scheduler.sketch.choices import Choices, Decision, Decisions
from tedsl.auto_scheduler.sketch.write import sketched
from tedsl.driver import lower
from tedsl.errors import ArgumentError, TedslError
from tedsl.lang.tensor import Tensor
from tedsl.passes.device.verify_gpu_code import verify_gpu_code
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.tune.records.history import JOURNAL
from topi.schedules.gpu.limits import limits_of

DEFAULT, SKETCH = "default", "sketch"
_REGISTERS = 255  # of 32 bits, of a thread: CUDA's programming guide


class Proposal:
    """A schedule as the directives that make it. A candidate of `tedsl.tune`.

    sketch: DEFAULT or SKETCH. decisions: what was decided; free: the decisions that could have been others.
    """

    def __init__(self, problem: Problem, sketch: str, choices: Choices, made: Schedule) -> None:
        self.problem, self.sketch = problem, sketch
        self.decisions: Decisions = choices.made
        self.free = choices.free
        self.journal = made.journal
        self._made: Schedule | None = made  # until its features are known

    def schedule(self) -> tuple[Schedule, Sequence[Tensor]]:
        """The schedule, and the arguments of its function."""
        sch = create_schedule([out.op for out in self.problem.outs])
        sch.replay(self.journal)
        return sch, self.problem.args

    def to_json(self) -> object:
        try:
            journal = json.loads(self.journal.to_json())
        except ArgumentError:  # an object of this process is in it
            return {"sketch": self.sketch, "decisions": self.decisions}
        for directive in journal["directives"]:
            directive.pop("file", None)
            directive.pop("line", None)
        return {"sketch": self.sketch, "decisions": self.decisions, JOURNAL: journal}

    @cached_property
    def text(self) -> str:
        """The directives: equal for equal schedules."""
        return str(self.journal)

    @cached_property
    def features(self) -> list[float]:
        """What its loops do, for the model of costs. Raises TedslError where there are no loops."""
        made, self._made = self._made, None
        target = self.problem.target
        sch = self.schedule()[0] if made is None else made
        if target.is_device:
            return device_features(launches_of(sch, self.problem.args))
        nests = nests_of(sch, self.problem.args, target)
        return features_of(nests, seconds_of(nests, target))

    @cached_property
    def has_loops(self) -> bool:
        """Whether the schedule can be lowered, before any pass."""
        try:
            return bool(self.features)
        except TedslError:
            return False

    @cached_property
    def compiles(self) -> bool:
        """Whether the schedule becomes loops that no pass refuses, and kernels that a device has room for."""
        target = self.problem.target
        try:
            sch, args = self.schedule()
            with target:
                module = lower(sch, args, simple_mode=True)
            return not target.is_device or all(verify_gpu_code(one, _room(self.problem)) for one in module.functions.values())
        except TedslError:
            return False


def _room(problem: Problem) -> dict[str, int]:
    """What a block of a device has at most; local memory is that which registers hold."""
    limits = limits_of(problem.target)
    return {"max_threads_per_block": limits.threads, "max_shared_memory_per_block": limits.shared,
            "max_local_memory_per_block": _REGISTERS * 4} | problem.limits


def proposed(problem: Problem, sketch: str, choices: Choices) -> Proposal | None:
    """The schedule by these choices; None where a directive refuses it."""
    try:
        made = problem.default.changed(choices) if sketch == DEFAULT else sketched(problem.outs, problem.target, choices)
    except TedslError:
        return None
    return Proposal(problem, sketch, choices, made)


def default_proposal(problem: Problem) -> Proposal:
    """The default schedule as it is."""
    return Proposal(problem, DEFAULT, Choices(random.Random(0)), problem.default.schedule)


def proposal_of(problem: Problem, candidate: object) -> Proposal | None:
    """The proposal that `to_json` wrote; None if it is not of this problem."""
    if not isinstance(candidate, Mapping) or candidate.get("sketch") not in (DEFAULT, SKETCH) \
            or not isinstance(candidate.get("decisions"), Mapping):
        return None
    given: dict[str, Decision] = {str(name): value for name, value in candidate["decisions"].items()
                                  if isinstance(value, (int, str))}
    if candidate["sketch"] == DEFAULT and not given:
        default = default_proposal(problem)
        return default if candidate == default.to_json() else None  # that of other rules, by now
    made = proposed(problem, candidate["sketch"], Choices(random.Random(0), given))
    return made if made is not None and made.has_loops else None
