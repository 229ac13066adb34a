"""One trial as data, and as a line of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.record import record
from tedsl.target.current import as_target
from tedsl.tune.measure.machine import machine_model, tool_versions
from tedsl.tune.measure.outcome import FAILURES, Candidate, Failure, Outcome, candidates_in

FORMAT, VERSION = "tedsl trial", 1
_TEXTS = ("task", "target", "machine", "tools")


@record
class Record:
    """One trial: what was tried for which task, and its outcome.

    task: its key, as of `task_key`. target: its notation. machine: the model of the one that ran it. tools: the versions of
    tedsl and its compiler. candidate: what the candidate's `to_json` returned.
    """

    task: str
    target: str
    machine: str
    tools: str
    candidate: object
    outcome: Outcome

    @property
    def cost(self) -> float:
        """Seconds per call; infinity after a failure."""
        return self.outcome.cost

    def to_json(self) -> str:
        """The record as one line of JSON. Raises ArgumentTypeError if the candidate is not made of what JSON has."""
        outcome = self.outcome
        failure = None if outcome.failure is None else [outcome.failure.kind, outcome.failure.message]
        data = {"format": FORMAT, "version": VERSION, "task": self.task, "target": self.target, "machine": self.machine,
                "tools": self.tools, "candidate": self.candidate, "costs": list(outcome.costs), "failure": failure,
                "build_seconds": outcome.build_seconds, "all_seconds": outcome.all_seconds, "timestamp": outcome.timestamp}
        try:
            return json.dumps(data, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentTypeError(f"the candidate {self.candidate!r} cannot be written as JSON: {error}",
                                    hint="to_json of a candidate returns numbers, texts, lists and dicts") from None

    @staticmethod
    def from_json(text: str) -> Record:
        """The record that `to_json` wrote; ArgumentError says why another text is none."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError, TypeError) as error:
            raise ArgumentError(f"this is not a record of a trial: it is not JSON ({error})") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ArgumentError(f'this is not a record of a trial: it is not an object with "format": "{FORMAT}"',
                                hint=_hint(data))
        if data.get("version") != VERSION:
            raise ArgumentError(f"this is a record of version {data.get('version')!r}, and version {VERSION} is read here")
        try:
            return _record(data)
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"this is not a record of a trial: {error!r}") from None


def _record(data: dict[str, Any]) -> Record:
    task, target, machine, tools = [data[name] for name in _TEXTS]
    if not all(isinstance(text, str) for text in (task, target, machine, tools)):
        raise TypeError(f"{', '.join(_TEXTS)} are texts")
    failure = None
    if data["failure"] is not None:
        kind, message = data["failure"]
        if kind not in FAILURES or not isinstance(message, str):
            raise ValueError(f"{data['failure']!r} is not a failure")
        failure = Failure(kind, message)
    costs = tuple([_seconds(cost) for cost in data["costs"]])
    if not costs and failure is None:
        raise ValueError("there are neither costs nor a failure")
    build_seconds, all_seconds, timestamp = [_seconds(data[name]) for name in ("build_seconds", "all_seconds", "timestamp")]
    outcome = Outcome(costs, failure, build_seconds, all_seconds, timestamp)
    return Record(task, target, machine, tools, data["candidate"], outcome)


def _hint(data: object) -> str:
    """Who reads a line of another form."""
    if isinstance(data, dict) and {"i", "r"} <= data.keys():
        return "TVM's auto_scheduler wrote it: task.apply_best(path) and auto_scheduler.load_records(path) read it"
    if isinstance(data, dict) and "input" in data:
        return "autotvm wrote it: autotvm.apply_history_best(path) and autotvm.record.load_from_file(path) read it"
    return ""


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is not a time in seconds")
    return float(value)


def records_in(given: object, what: str) -> Iterator[Record]:
    """The records that a caller has given, one by one. Raises ArgumentTypeError for what is none."""
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{what} takes records, a list or an iterator of them, not {given!r}")
    return (_one(one, what) for one in given)


def _one(one: object, what: str) -> Record:
    if not isinstance(one, Record):
        raise ArgumentTypeError(f"{what}: {one!r} is no Record", hint="tune.record_of(task, candidate, outcome) makes one")
    return one


def record_of(task: str, candidate: Candidate, outcome: Outcome, target: Any = None) -> Record:
    """The record of a candidate that was measured for `target` (None: the current one), on the machine that the outcome
    names, else on this one.
    """
    (tried,) = candidates_in([candidate], "record_of", ["to_json"])
    if not isinstance(task, str) or not isinstance(outcome, Outcome):
        raise ArgumentTypeError(f"record_of takes the key of a task and an Outcome, not {task!r} and {outcome!r}",
                                hint="tune.task_key(outs) is a key")
    chosen = as_target(target)
    machine = outcome.machine or machine_model(chosen)
    return Record(task, str(chosen), machine, tool_versions(), tried.to_json(), replace(outcome, machine=""))
