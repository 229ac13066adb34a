"""`python -m benchmarks.pass_times [--only TEXT] [--rounds N]`: where the time of a build goes, pass by pass.

For each program: making the schedule, turning it into loops, each pass on loops, writing LLVM IR, and the parts of LLVM. Of
several builds the median of each part.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import tedsl
from benchmarks.programs import PROGRAMS, Program
from tedsl.ir.instrument import PassInstrument

LEAST = 0.01  # of the whole: smaller passes share a line


class _PassTimes(PassInstrument):
    """Adds up the seconds of each pass, without the passes inside of it."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds, self._open = seconds, list[list[float]]()

    def run_before_pass(self, mod: Any, info: Any) -> None:
        self._open.append([time.perf_counter(), 0.0])

    def run_after_pass(self, mod: Any, info: Any) -> None:
        began, inside = self._open.pop()
        whole = time.perf_counter() - began
        self._seconds[f"pass {info.name}"] += whole - inside
        if self._open:
            self._open[-1][1] += whole


@contextlib.contextmanager
def _llvm_times(seconds: dict[str, float]) -> Iterator[None]:
    """Adds up the seconds of LLVM's parts while the block runs."""
    import llvmlite.binding as llvm

    parts = ((llvm, "parse_assembly", "LLVM: parse"), (llvm.ModulePassManager, "run", "LLVM: passes"),
             (llvm.FunctionPassManager, "run", "LLVM: passes"), (llvm.TargetMachine, "emit_object", "LLVM: machine code"))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in parts]

    def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                seconds[part] += time.perf_counter() - began

        return call

    try:
        for owner, name, part in parts:
            setattr(owner, name, timed(getattr(owner, name), part))
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def times_of(program: Program) -> dict[str, float]:
    """Seconds of the parts of one build; "whole" is all of it, "lower" a call of tedsl.lower beside it."""
    seconds: dict[str, float] = defaultdict(float)
    began = time.perf_counter()
    s, arguments = program()
    seconds["schedule"] = time.perf_counter() - began
    with tedsl.transform.PassContext(instruments=[_PassTimes(seconds)]), _llvm_times(seconds):
        began = time.perf_counter()
        tedsl.build(s, arguments)
        built = time.perf_counter() - began
    known = sum(value for name, value in seconds.items() if name != "schedule")
    seconds["loops, LLVM IR, linking"] = built - known
    seconds["whole"] = built + seconds["schedule"]
    return dict(seconds)


def table(program: Program, rounds: int) -> list[tuple[str, float, float]]:
    """(part, median seconds, part of the whole) in descending order, small passes together."""
    samples = [times_of(program) for _ in range(rounds)]
    names = dict.fromkeys(name for sample in samples for name in sample)
    median = {name: statistics.median(sample.get(name, 0.0) for sample in samples) for name in names}
    whole = median.pop("whole")
    small = {name: value for name, value in median.items() if value < LEAST * whole}
    kept = {name: value for name, value in median.items() if name not in small}
    if small:
        kept[f"{len(small)} passes below {LEAST:.0%}"] = sum(small.values())
    ordered = sorted(kept.items(), key=lambda item: -item[1])
    return [("whole", whole, 1.0), *((name, value, value / whole) for name, value in ordered)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pass_times", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose name contains this: " + ", ".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=5, help="builds of each program")
    options = parser.parse_args()
    times_of(PROGRAMS["vector add"])  # LLVM is loaded, and everything imported
    for name, program in PROGRAMS.items():
        if options.only in name:
            print(f"\n{name}")
            for part, seconds, share in table(program, options.rounds):
                print(f"  {part:44s} {1e3 * seconds:9.2f} ms {100 * share:5.1f} %", flush=True)


if __name__ == "__main__":
    main()
