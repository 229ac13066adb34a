"""Times of devices that are not here: those of the model of the simulator, which are estimated, not measured.

A simulated device runs a sample of the blocks of each kernel, counts for all of them, and its model says a time. The same
candidate always has the same time, so that one run is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import simulate
from tedsl.runtime.array import NDArray
from tedsl.runtime.module import Module
from tedsl.tune.measure.check import Expected
from tedsl.tune.measure.inputs import is_unwritten


def estimated_seconds(module: Module, args: Callable[[], Sequence[Any]], expected: Expected | None) -> tuple[float, str]:
    """Seconds of a call by the model, and where its results differ from those expected, "" if they do not.

    args: makes the arguments of a call, results full of what nothing computes. Of a single kernel the results of the sample
    are compared; where kernels read what others write, all blocks run once more for that.
    """
    there = args()
    simulate.reset()
    with simulate.mode("sampled"), module.timed(module.entry_name, *there) as run:
        seconds = run(1)
    if expected is None:
        return seconds, ""
    launches = simulate.report()
    if all(one.blocks == one.grid[0] * one.grid[1] * one.grid[2] for one in launches):
        return seconds, expected.difference(there)
    if len(launches) == 1:
        return seconds, expected.restricted(_written(there, expected)).difference(there)
    there = args()
    with simulate.mode("fast"):
        module(*there)
    return seconds, expected.difference(there)


def _written(args: Sequence[Any], expected: Expected) -> dict[int, Any]:
    """For each result which of its elements were written, by the position of its argument."""
    return {k: ~is_unwritten(args[k].numpy() if isinstance(args[k], NDArray) else args[k]) for k in expected.outputs}
