"""What happens in the process that runs a candidate: a check of its results, then times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.record import record
from tedsl.runtime.module import Module
from tedsl.runtime.modules.files import from_bytes
from tedsl.runtime.parallel import set_num_threads
from tedsl.runtime.timing import measure_in_turns, median_interval
from tedsl.target.target import Target
from tedsl.tune.measure.check import Expected
from tedsl.tune.measure.estimate import estimated_seconds
from tedsl.tune.measure.inputs import device_of, inputs_for, placed
from tedsl.tune.measure.machine import is_estimated
from tedsl.tune.measure.options import RunOption
from tedsl.tune.measure.outcome import Failure
from tedsl.tune.measure.places import PLACES, moved
from tedsl.tune.measure.process import Failed

_SEED = 20  # of inputs that nobody gave


@record(eq=False)
class Reference:
    """A kernel whose drift is divided out. code: the content of a `.tedsl` file; inputs: of its calls; None: those of the
    candidate, whose places in memory and caches then slow both; seconds: that a call takes when the machine is as it was at
    first; 0: not known.
    """

    code: bytes
    inputs: Sequence[Any] | None
    seconds: float = 0.0


def costs_of(code: bytes, target: Target, option: RunOption, threads: int, inputs: Sequence[Any] | None,
             expected: Expected | None, reference: Reference | None) -> tuple[float, ...]:
    """Seconds per call of the module in `code`; with a `reference` the interval of the median: its low end, the median, its
    high end, or the least and the most of the medians at several places in memory; on a simulated device the one time of its
    model. Raises Failed where results differ from those `expected`.
    """
    set_num_threads(threads)
    module = from_bytes(code, "a candidate")
    if is_estimated(target):
        given = inputs_for(module.signature(module.entry_name), _SEED) if inputs is None else inputs
        seconds, difference = estimated_seconds(module, lambda: placed(given, target), expected)
        if difference:
            raise Failed(Failure("wrong", difference))
        return (seconds,)
    args = placed(inputs_for(module.signature(module.entry_name), _SEED) if inputs is None else inputs, target)
    if expected is not None:
        _check(module, args, expected)
    if reference is None:
        flushed = "cache_flush_cpu_non_first_arg" if option.enable_cpu_cache_flush else ""
        timer = module.time_evaluator(module.entry_name, number=option.number, repeat=option.repeat,
                                      min_repeat_ms=option.min_repeat_ms, f_preproc=flushed)
        return timer(*args).results
    other = from_bytes(reference.code, "the reference")
    others = None if reference.inputs is None else placed(reference.inputs, target)
    places = PLACES if option.many_places and device_of(target) is None else (None,)
    found = []
    for place in places:
        here = args if place is None else moved(args, place)
        with module.timed(module.entry_name, *here) as run, \
                other.timed(other.entry_name, *(here if others is None else others)) as reference_run:
            turns = measure_in_turns(run, reference_run, option.precise_seconds / len(places))
        found.append(turns.ratios)
    low, middle, high = median_interval([ratio for ratios in found for ratio in ratios])
    if len(places) > 1:
        medians = [median_interval(ratios)[1] for ratios in found]
        low, high = min(medians), max(medians)
    elif high == float("inf"):  # under six turns bound nothing: the smallest and the largest ratio stand for the interval
        low, high = min(found[0]), max(found[0])
    return tuple([ratio * reference.seconds for ratio in (low, middle, high)])


def seconds_of(reference: Reference, target: Target, option: RunOption, threads: int, inputs: Sequence[Any] | None) -> float:
    """Seconds per call of the reference: the median of as many repetitions as its share of the budget holds."""
    set_num_threads(threads)
    module = from_bytes(reference.code, "the reference")
    with module.timed(module.entry_name, *placed(reference.inputs or inputs or (), target)) as run:
        turns = measure_in_turns(run, run, option.precise_seconds / 2)
    return median_interval([seconds for at in turns.calm for seconds in (turns.times[at], turns.reference[at])])[1]


def _check(module: Module, args: Sequence[Any], expected: Expected) -> None:
    module(*args)
    difference = expected.difference(args)
    if difference:
        raise Failed(Failure("wrong", difference))
