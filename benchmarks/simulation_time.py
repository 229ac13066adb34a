"""`python -m benchmarks.simulation_time [--rounds N]`: how long the simulator takes for kernels of which its page names times.

A line has the least of N times in seconds, with reports and without, and what it should be at most with reports. The exit
status is 1 if one is above.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tedsl
import topi
from tedsl import simulate, te
from tedsl.te import Schedule, Tensor

TARGET = "cuda -arch=sm_80"


def product() -> tuple[Schedule, list[Tensor]]:
    """A product of 256 x 256 matrices."""
    a, b = te.placeholder((256, 256), name="a"), te.placeholder((256, 256), name="b")
    out = topi.nn.dense(a, b)
    return topi.cuda.schedule_dense([out]), [a, b, out]


def convolution() -> tuple[Schedule, list[Tensor]]:
    """Ten windows of 5 x 5 over an image of three channels."""
    data, weights = te.placeholder((1, 3, 224, 224), name="data"), te.placeholder((10, 3, 5, 5), name="weights")
    out = topi.nn.conv2d_nchw(data, weights, 1, 2, 1)
    return topi.cuda.schedule_conv2d_nchw([out]), [data, weights, out]


# the program, and the most seconds that it should take
PROGRAMS: dict[str, tuple[Callable[[], tuple[Schedule, list[Tensor]]], float]] = {
    "product (256, 256) x (256, 256)": (product, 2.0), "convolution (1,3,224,224) x (10,3,5,5)": (convolution, 10.0)}


def simulated(function: Any, arrays: Sequence[Any], mode: str, rounds: int) -> float:
    """Seconds of the fastest of several launches."""
    times = []
    with simulate.mode(mode):
        for _ in range(rounds):
            simulate.reset()
            function(*arrays)
            times.append(sum(report.wall for report in simulate.report()))
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation_time", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="launches of each kernel in each mode")
    options = parser.parse_args()
    device, draw, above = tedsl.sim(0), np.random.default_rng(0), False
    print(f"{'kernel':42s} {'reports':>9s} {'none':>9s} {'at most':>9s}")
    for name, (program, most) in PROGRAMS.items():
        with tedsl.Target(TARGET):
            schedule, args = program()
        function = tedsl.build(schedule, args, TARGET)
        shapes = [[int(n) for n in arg.shape] for arg in args]
        arrays = [tedsl.nd.array(draw.random(shape, "float32"), device) for shape in shapes]
        reports, none = (simulated(function, arrays, mode, options.rounds) for mode in ("report", "fast"))
        above |= reports > most
        print(f"{name:42s} {reports:7.2f} s {none:7.2f} s {most:7.0f} s", flush=True)
    sys.exit(above)


if __name__ == "__main__":
    main()
