"""Seconds by the model of the machine: the slowest of issue, latency and each level of memory, for every statement."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.auto_scheduler.cost.features import Nest
from tedsl.target.target import Target
from topi.schedules.cpu.tiles import registers

_ISSUE = 2.0  # vector instructions that start in a cycle, of loads and of arithmetic
_COUNTING = 1.0  # cycles of an iteration that is not unrolled
_GUARD = 1.0  # cycles of a condition
_GATHER = 1.0  # cycles of an element that is read from a place of its own
_SPILL = 2.0  # as much as a tile that does not fit the registers takes longer
_MEMORY = 8.0  # bytes that all cores together get from memory in a cycle, where L3 does not have them
_L3 = 16.0  # bytes that a core gets from L3 in a cycle
_START = 5000.0  # cycles until threads have begun
_CLOCK = 3e9  # cycles in a second: equal for all schedules, whose order alone counts


def seconds_of(nests: Sequence[Nest], target: Target) -> float:
    """The estimated seconds of one call."""
    return sum(_cycles(nest, target) for nest in nests) / _CLOCK


def _cycles(nest: Nest, target: Target) -> float:
    machine = target.machine
    cores = max(1, machine.cores // machine.hardware_threads)
    issue = (nest.issued + nest.loads) / _ISSUE * max(1.0, nest.work / 2)
    if nest.tile > registers(target):
        issue *= _SPILL
    arithmetic = max(issue, nest.chain * machine.fma_latency) + nest.loops * _COUNTING + nest.guarded * _GUARD \
        + nest.gathers * _GATHER
    l2 = nest.traffic[0] * 8 / machine.l2_bits
    l3 = nest.traffic[1] / _L3
    if nest.threads <= 1:
        return max(arithmetic, l2, l3, nest.traffic[2] / _MEMORY)
    rounds = -(-nest.threads // cores) / nest.threads  # the share of the work that the busiest core has
    return max(max(arithmetic, l2, l3) * rounds, nest.traffic[2] / _MEMORY) + _START
