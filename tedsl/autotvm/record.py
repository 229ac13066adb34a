"""Records of measurements as lines of JSON, in the format of TVM v0.8."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Hashable, Iterable, Iterator
from os import PathLike, fspath
from typing import Any, TextIO, TypeGuard

from tedsl.autotvm.measure.batch import outcome_of
from tedsl.autotvm.measure.inputs import MeasureErrorNo, MeasureInput, MeasureResult
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError, entries, type_in_words
from tedsl.ir.source_line import user_level
from tedsl.target.target import Target
from tedsl.tune.records import fastest_first, last_of_each
from tedsl.tune.records.lines import lines_of

__all__ = ["decode", "encode", "load_from_buffer", "load_from_file", "measure_str_key", "pick_best", "split_workload"]
Pair = tuple[MeasureInput, MeasureResult]
AUTOTVM_LOG_VERSION = 0.2
_FORMAT_OF = "0.8.0"  # of TVM: whose format it is


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A text that is the same for the same target, task and, unless include_config is False, configuration."""
    return f"{inp.target}{inp.task.name}{inp.task.args}{inp.config if include_config else ''}"


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """A measurement as a line of JSON. Raises ArgumentError for another protocol."""
    _check_protocol(protocol)
    if not isinstance(inp, MeasureInput) or not isinstance(result, MeasureResult):
        raise ArgumentTypeError(f"encode takes a MeasureInput and a MeasureResult, not {type_in_words(inp)} and "
                                f"{type_in_words(result)}")
    costs = list(result.costs) if result.error_no == 0 else [1e9]
    target, version = inp.config.written or (str(inp.target), _FORMAT_OF)
    line = {"input": [target, inp.task.name, inp.task.args, inp.task.kwargs], "config": inp.config.to_json_dict(),
            "result": [costs, result.error_no, result.all_cost, result.timestamp],
            "version": AUTOTVM_LOG_VERSION, "tvm_version": version}
    return json.dumps(line)


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult] | None:
    """The measurement of a line; None for lines of versions before 0.2, and after a warning for
    targets that tedsl does not have.

    Raises ArgumentError for a line that is no record.
    """
    _check_protocol(protocol)
    if not isinstance(row, str):
        raise ArgumentTypeError(f"decode takes a line of JSON as a text, not {type_in_words(row)}")
    try:
        made = json.loads(row)
    except ValueError as error:
        raise _no_record(row, f"it is no JSON: {error}") from None
    if not isinstance(made, dict):
        raise _no_record(row, f"it is {type_in_words(made)}, and not an object")
    version = made.get("v", made.get("version", 0))
    if not _is_number(version):
        raise _no_record(row, f"its version is a number, not {version!r}")
    if version < AUTOTVM_LOG_VERSION or "config" not in made:
        return None
    target, name, args, kwargs = _fields(row, made, "input", {"target": str, "name": str, "arguments": list, "options": dict})
    result = _result_of(row, *_fields(row, made, "result", {"costs": list, "error number": int, "seconds of measuring": float,
                                                            "time": float}))
    try:
        config = ConfigEntity.from_json_dict(made["config"])
    except ArgumentError as error:
        raise _no_record(row, error.problem) from None
    task = Task(name, args)
    config.written = target, str(made.get("tvm_version", _FORMAT_OF))
    try:
        task.kwargs, task.target = kwargs, Target(target)
    except TedslError as why:
        warnings.warn(f"a record for the target {target!r} is left out: {why}", stacklevel=user_level())
        return None
    return MeasureInput(task.target, task, config), result


def _no_record(row: str, why: str) -> ArgumentError:
    return ArgumentError(f"this line is no record of autotvm: {why}: {row[:80]!r}",
                         hint="autotvm.record.encode, and autotvm.callback.log_to_file while tuning, write such lines")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_WORDS = {str: "a text", list: "a list", dict: "an object", int: "an int", float: "a number"}


def _fields(row: str, made: dict[str, Any], part: str, fields: dict[str, type]) -> list[Any]:
    """The fields of "input" or of "result", each of its type. Raises ArgumentError if one is not."""
    given = made.get(part)
    if not isinstance(given, list) or len(given) != len(fields):
        raise _no_record(row, f'"{part}" is a list of {", ".join(fields)}'
                              f'{", not " + repr(given) if part in made else ", and it has none"}')
    for (name, kind), value in zip(fields.items(), given):
        if not (_is_number(value) if kind is float else type(value) is kind):
            raise _no_record(row, f"the {name} in \"{part}\" is {_WORDS[kind]}, not {value!r}")
    return given


def _result_of(row: str, costs: list[Any], error_no: int, seconds: float, timestamp: float) -> MeasureResult:
    """The result of a line: costs are times, unless the error number says that there are none."""
    if not MeasureErrorNo.NO_ERROR <= error_no <= MeasureErrorNo.UNKNOWN_ERROR:
        raise _no_record(row, f"there is no error number {error_no}: they go from {MeasureErrorNo.NO_ERROR} to "
                              f"{MeasureErrorNo.UNKNOWN_ERROR}")
    wrong = [cost for cost in costs if not (_is_number(cost) and 0 < cost < math.inf)]
    if error_no == MeasureErrorNo.NO_ERROR and (wrong or not costs):
        raise _no_record(row, "the costs of a trial without error are seconds, one for each repetition, not "
                              f"{wrong[0] if wrong else costs!r}")
    return MeasureResult(tuple(costs), error_no, seconds, timestamp)


def _check_protocol(protocol: str) -> None:
    if protocol != "json":
        raise ArgumentError(f'records are lines of "json", not of {protocol!r}')


def load_from_file(filepath: str | PathLike[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a file, without those that `decode` leaves out. Lines that are none, as one that a program which was
    killed has left unfinished, are skipped, with a warning that names the first. Raises ArgumentError if it cannot be read.
    """
    return (pair for pair in lines_of(filepath, _of_row, "load_from_file") if pair is not None)


def load_from_buffer(file: TextIO) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The measurements in an open file, such as an io.StringIO; lines that begin with # are comments."""
    if not hasattr(file, "read"):
        raise ArgumentTypeError(f"load_from_buffer takes an open file, not {type_in_words(file)}",
                                hint="load_from_file(path), or load_from_buffer(io.StringIO(text))")
    yield from _of_rows(file)


def _of_rows(rows: Iterable[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    return (pair for pair in map(_of_row, rows) if pair is not None)


def _of_row(row: str) -> Pair | None:
    return decode(row) if row.strip() and not row.startswith("#") else None


def pick_best(in_file: str | PathLike[str], out_file: str | PathLike[str]) -> None:
    """Writes the best record of each task and target."""
    found: dict[str, list[Pair]] = {}
    for pair in load_from_file(in_file):
        found.setdefault(measure_str_key(pair[0], False), []).append(pair)
    best = [ranked[0] for pairs in found.values() if (ranked := fastest_pairs(pairs))]
    _write(out_file, best, "pick_best")


def split_workload(in_file: str | PathLike[str], clean: bool = True) -> None:
    """Writes the records of each task and target to a file of its own, `in_file` with .000.wkl, .001.wkl, ... behind it.

    clean: of the records of one configuration only the last.
    """
    found: dict[str, list[Pair]] = {}
    for pair in load_from_file(in_file):
        found.setdefault(measure_str_key(pair[0], False), []).append(pair)
    for number, pairs in enumerate(found.values()):
        kept = last_of_each(pairs, config_of, lambda pair: outcome_of(pair[1])) if clean else pairs
        _write(f"{fspath(in_file)}.{number:03d}.wkl", kept, "split_workload")


def _write(path: str | PathLike[str], pairs: Iterable[Pair], what: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{encode(*pair)}\n" for pair in pairs)
    except OSError as error:
        raise ArgumentError(f"{what}: {path} cannot be written: {error.strerror or error}") from None


def pairs_in(given: Any, what: str) -> list[Pair]:
    """The pairs of input and result that a caller has given. Raises ArgumentTypeError for anything else."""
    pairs = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, PathLike)) else [given]
    wrong = [one for one in pairs if not (isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], MeasureInput)
                                          and isinstance(one[1], MeasureResult))]
    if wrong:
        raise ArgumentTypeError(f"{what} takes pairs of a MeasureInput and a MeasureResult, not {wrong[0]!r}",
                                hint="autotvm.record.load_from_file(path)")
    return pairs


def fastest_pairs(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs with times, the best first, as `tedsl.tune.records` orders trials: by the median of the times, of which the
    last one of each configuration counts.
    """
    return fastest_first(pairs, config_of, lambda pair: outcome_of(pair[1]))


def config_of(pair: Pair) -> Hashable:
    """What a pair has measured."""
    return pair[0].task, pair[0].config


entries(globals())
