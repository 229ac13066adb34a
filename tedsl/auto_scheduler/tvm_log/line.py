"""A line of a log of TVM's auto_scheduler: a trial as JSON.

    {"i": [[workload_key, target, ...], [[], steps]], "r": [costs, error_no, all_cost, timestamp], "v": "v0.6"}

What stands behind the target (limits of the hardware, the host, how layouts are rewritten) is kept as it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from tedsl.errors import ArgumentError
from tedsl.record import record
from tedsl.tune import Outcome, Record
from tedsl.tune.measure import Failure

FIELD = "tvm"  # in the candidate of a record: the line
_ERRORS = {1: "refused", 2: "compile", 3: "compile", 4: "run", 5: "wrong", 6: "timeout", 7: "timeout"}


class _Number(float):
    """A number with its text: C++ and Python write the same one in different ways."""

    text: str

    def __new__(cls, text: str) -> _Number:
        made = super().__new__(cls, text)
        made.text = text
        return made


@record
class Line:
    """A trial. workload: its key; steps: what makes the schedule, each a list that begins with its name;
    version: of the format; data: the whole line.
    """

    workload: str
    target: str
    steps: tuple[Sequence[Any], ...]
    costs: tuple[float, ...]
    error_no: int
    all_cost: float
    timestamp: float
    version: str
    data: dict[str, Any]

    def encode(self) -> str:
        """The line as TVM wrote it."""
        return _text(self.data)

    def with_result(self, costs: Sequence[float], error_no: int, all_cost: float, timestamp: float) -> Line:
        """The same schedule with another result; this very line where it is the same one."""
        if (tuple(costs), error_no, all_cost, timestamp) == (self.costs, self.error_no, self.all_cost, self.timestamp):
            return self
        return parse(_text(self.data | {"r": [list(costs), error_no, all_cost, int(timestamp)]}))

    def to_record(self) -> Record:
        """The trial as a record, whose task is the key of the workload."""
        failure = Failure(_ERRORS.get(self.error_no, "run"), f"error {self.error_no} of TVM") if self.error_no else None
        outcome = Outcome(() if failure else self.costs, failure, 0.0, self.all_cost, self.timestamp)
        return Record(self.workload, self.target, "", f"TVM, logs {self.version}", {FIELD: self.encode()}, outcome)


def is_line(text: str) -> bool:
    """Whether a text looks like a line of TVM's auto_scheduler."""
    return text.lstrip().startswith("{") and '"i"' in text and '"r"' in text and '"format"' not in text


def line_of(one: Record) -> Line | None:
    """The line that a record was made of; None if it is one of tedsl."""
    text = one.candidate.get(FIELD) if isinstance(one.candidate, dict) else None
    return parse(text) if isinstance(text, str) else None


def record_of_line(text: str) -> Record:
    """The record in a line of either form. Raises ArgumentError if it is none."""
    return parse(text).to_record() if is_line(text) else Record.from_json(text)


def parse(text: str) -> Line:
    """The trial in a line. Raises ArgumentError for what is none."""
    try:
        data = json.loads(text, parse_float=_Number)
        (workload, target, *_), (_, steps) = data["i"]
        costs, error_no, all_cost, timestamp = data["r"]
        made = Line(workload, target, tuple([tuple(step) for step in steps]), tuple([float(cost) for cost in costs]),
                    int(error_no), float(all_cost), float(timestamp), data["v"], data)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ArgumentError(f"this is not a line of TVM's auto_scheduler: {error!r}") from None
    texts = (made.workload, made.target, made.version, *[step[0] if step else None for step in made.steps])
    numbers = (*made.costs, made.all_cost, made.timestamp)
    if not all(isinstance(one, str) for one in texts) or not all(0 <= one < math.inf for one in numbers):
        raise ArgumentError("this is not a line of TVM's auto_scheduler: keys, targets and names of steps are texts, times are "
                            "numbers of at least 0")
    if not costs and not error_no:
        raise ArgumentError("this is not a line of TVM's auto_scheduler: there are neither costs nor an error")
    return made


def _text(value: Any) -> str:
    """A value as JSON in TVM's spacing, numbers as they were read."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(name)}: {_text(one)}" for name, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_text, value)) + "]"
        case _Number():
            return value.text
        case _:
            return json.dumps(value)
