"""`python -m benchmarks.device_build_time [--rounds N] [--target "cuda -arch=sm_80"]`: how long PTX takes beside machine code.

Every kernel of tutorials/12_gpu.py is built for the device and for this processor, in turns. A line has the least time of
each in milliseconds of the processor, and their ratio, which should be at most `GOAL`. The exit status is 1 if one is above.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import tedsl
from tedsl.te import Schedule

TUTORIAL = Path(__file__).parents[1] / "tutorials" / "12_gpu.py"
GOAL = 2.0


class Kernel:
    """A program of the tutorial: its schedule and its arguments."""

    def __init__(self, schedule: Schedule, args: Sequence[Any]) -> None:
        self.schedule, self.args = schedule, args

    def build(self, target: str) -> float:
        """Seconds of the processor that a build of a copy of the schedule takes."""
        copy = self.schedule.copy()
        begin = time.process_time()
        tedsl.build(copy, self.args, target)
        return time.process_time() - begin

    @property
    def name(self) -> str:
        """The result, its shape, and how many directives the schedule has."""
        shape = " x ".join(str(n) for n in self.args[-1].shape)
        return f"{self.args[-1].name} ({shape}), {len(self.schedule.journal)} directives"


def kernels() -> list[Kernel]:
    """What the tutorial builds for devices, each schedule once, in its order."""
    found: dict[Schedule, Kernel] = {}
    build = tedsl.build

    def seen(schedule: Schedule, args: Sequence[Any], target: str) -> Any:
        module = build(schedule, args, target=target)  # what is refused is no kernel
        found.setdefault(schedule, Kernel(schedule, args))
        return module

    with mock.patch.object(tedsl, "build", seen), contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(TUTORIAL))
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_build_time", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="builds of each kernel for each target")
    parser.add_argument("--target", default="cuda -arch=sm_80", help="the device")
    options = parser.parse_args()
    print(f"{'kernel':44s} {'device':>8s} {'processor':>10s} {'ratio':>6s}")
    above = False
    for kernel in kernels():
        turns = [(kernel.build(options.target), kernel.build("llvm")) for _ in range(options.rounds)]
        device, processor = (min(times) for times in zip(*turns))
        above |= device > GOAL * processor
        print(f"{kernel.name:44s} {device * 1e3:5.1f} ms {processor * 1e3:7.1f} ms {device / processor:6.2f}", flush=True)
    sys.exit(above)


if __name__ == "__main__":
    main()
