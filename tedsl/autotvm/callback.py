"""What a tuner calls after each batch: `callback(tuner, inputs, results)`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TextIO

from tedsl.autotvm.measure.batch import flops_of
from tedsl.autotvm.measure.inputs import MeasureInput, MeasureResult
from tedsl.autotvm.record import encode
from tedsl.autotvm.utils import scale_of
from tedsl.errors import ArgumentTypeError, entries, type_in_words
from tedsl.tune.measure.machine import ESTIMATED, is_estimated
from tedsl.tune.records.lines import append_text, require_lines

__all__ = ["Monitor", "log_to_file", "progress_bar"]
Callback = Callable[[Any, Sequence[MeasureInput], Sequence[MeasureResult]], None]


def log_to_file(file_out: str | PathLike[str] | TextIO, protocol: str = "json") -> Callback:
    """Appends a line for each measurement to a file, whole lines at once: a program that is killed leaves no part of one.
    Raises ArgumentError for a file of something else than records.
    """
    if not isinstance(file_out, (str, PathLike)) and not hasattr(file_out, "write"):
        raise ArgumentTypeError(f"log_to_file takes a path or an open file, not {type_in_words(file_out)}")

    path = require_lines(file_out, "log_to_file") if isinstance(file_out, (str, PathLike)) else None

    def callback(_: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        lines = [encode(inp, result, protocol) for inp, result in zip(inputs, results)]
        if path is not None:
            append_text(path, "\n".join(lines), "log_to_file")
        elif not isinstance(file_out, (str, PathLike)):
            file_out.write("".join(f"{line}\n" for line in lines))

    return callback


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """Shows how many of `total` trials are done, the last and the best rate, and the time; by tqdm where it is installed."""
    scale = scale_of(si_prefix)
    if isinstance(total, bool) or not isinstance(total, int) or total < 0:
        raise ArgumentTypeError(f"progress_bar: total is the number of trials, not {total!r}")
    begin, state = time.time(), {"done": 0, "failed": 0, "best": 0.0}
    try:
        from tqdm import tqdm

        bar = tqdm(total=total, desc=prefix.strip() or None, file=sys.stderr)
    except ImportError:
        bar = None

    def callback(_: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        rates = [flops_of(inp, result) for inp, result in zip(inputs, results)]
        state["done"] += len(rates)
        state["failed"] += sum(rate == 0 for rate in rates)
        state["best"] = max([state["best"], *rates])
        word = f" {ESTIMATED}" if inputs and is_estimated(inputs[0].target) else ""
        said = (f"now {max(rates, default=0.0) / scale:.2f}, best {state['best'] / scale:.2f} {si_prefix}FLOPS{word}, "
                f"{state['failed']} failed")
        if bar is not None:
            bar.set_postfix_str(said)
            bar.update(len(rates))
            if state["done"] >= total:
                bar.close()
        else:
            end = "\n" if state["done"] >= total else ""
            print(f"\r{prefix} {said} | {state['done']}/{total} | {time.time() - begin:.1f} s", end=end, file=sys.stderr)

    return callback


class Monitor:
    """Keeps the rates and times of all trials."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            self.scores.append(flops_of(inp, result))
            self.timestamps.append(result.timestamp)

    def reset(self) -> None:
        self.scores, self.timestamps = [], []

    def trial_scores(self) -> list[float]:
        """Operations per second of each trial, 0 of failures."""
        return self.scores

    def trial_timestamps(self) -> list[float]:
        return self.timestamps


entries(globals())
