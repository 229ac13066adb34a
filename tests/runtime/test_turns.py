"""Two kernels that take turns: what slows both is divided out, and measuring ends when the median is known."""

import itertools
import random

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import OptionError
from tedsl.runtime.timing import measure_in_turns, median_interval


class Machine:
    """A machine that becomes slower, or faster, from one call to the next; `clock` is what a clock of it would say."""

    def __init__(self, monkeypatch, drift):
        self.drift, self.clock = drift, 0.0
        monkeypatch.setattr("tedsl.runtime.timing.time.monotonic", lambda: self.clock)

    def kernel(self, seconds, slowed=True):
        def run(count):
            elapsed = count * seconds * (next(self.drift) if slowed else 1.0)
            self.clock += elapsed
            return elapsed

        return run


def test_drift_is_divided_out(monkeypatch):
    slower = Machine(monkeypatch, iter(1 + k / 2000 for k in range(10**6)))
    turns = measure_in_turns(slower.kernel(1e-3), slower.kernel(2e-3), 10.0)
    _, middle, _ = median_interval(turns.ratios)
    assert middle == pytest.approx(0.5, rel=0.01) and len(turns.ratios) == 32
    assert max(turns.times) > 1.001 * min(turns.times)


@pytest.mark.parametrize("stopped", range(40))
def test_a_process_that_was_stopped_is_measured_as_if_it_was_not(monkeypatch, stopped):
    """In each of the calls that warm up and of the first turns, for longer than the time of the measurement."""
    drift = (2e4 if k == stopped else 1.0 + k % 3 / 100 for k in itertools.count())
    machine = Machine(monkeypatch, drift)
    turns = measure_in_turns(machine.kernel(1e-4), machine.kernel(2e-4), 0.05)
    _, middle, _ = median_interval(turns.ratios)
    assert middle == pytest.approx(0.5, rel=0.03) and len(turns.calm) >= 5
    assert all(len(turns.times) - len(turns.calm) <= 1 and 9e-5 < turns.times[at] < 2e-4 for at in turns.calm)


def test_the_speed_of_most_turns_counts(monkeypatch):
    """As where another program takes a part of the time: what it slows may be left out, but never most of the turns."""
    numbers = random.Random(5)
    machine = Machine(monkeypatch, (numbers.uniform(1.0, 1.1) + k // 50 % 2 for k in itertools.count()))
    turns = measure_in_turns(machine.kernel(1e-3), machine.kernel(3e-3), 2.0)
    _, middle, _ = median_interval(turns.ratios)
    assert len(turns.calm) > len(turns.times) / 2 > 15 and middle == pytest.approx(1 / 3, rel=0.03)


def test_measuring_goes_on_until_the_median_is_known(monkeypatch):
    numbers = random.Random(7)
    noisy = Machine(monkeypatch, iter(lambda: numbers.uniform(0.9, 1.3), None))
    turns = measure_in_turns(noisy.kernel(1e-3), noisy.kernel(1e-3), 100.0)
    low, middle, high = median_interval(turns.ratios)
    assert 32 < len(turns.ratios) < 50000 and high - low <= 0.02 * middle and middle == pytest.approx(1.0, rel=0.02)


def test_measuring_ends_with_its_budget(monkeypatch):
    numbers = random.Random(1)
    jumping = Machine(monkeypatch, iter(lambda: numbers.lognormvariate(0, 1), None))
    turns = measure_in_turns(jumping.kernel(1e-3), jumping.kernel(1e-3), 1.0)
    low, middle, high = median_interval(turns.ratios)
    assert high - low > 0.02 * middle and 1.0 <= jumping.clock < 1.5


def test_slow_kernels_are_measured_call_by_call(monkeypatch):
    slow = Machine(monkeypatch, itertools.repeat(1.0))
    turns = measure_in_turns(slow.kernel(3.0), slow.kernel(1.0), 2.0)
    assert turns.times == (3.0,) and turns.reference == (1.0,) and slow.clock == 8.0  # one call of each that warms up


def test_intervals_hold_the_median_in_nineteen_cases_of_twenty():
    numbers = random.Random(3)
    held = 0
    for _ in range(2000):
        low, middle, high = median_interval([numbers.expovariate(1.0) for _ in range(numbers.randrange(6, 60))])
        assert low <= middle <= high
        held += low <= 0.6931 <= high
    assert 0.94 <= held / 2000 <= 0.99


def test_few_numbers_bound_nothing():
    assert median_interval([3.0, 1.0, 2.0]) == (0.0, 2.0, float("inf"))
    assert median_interval([1.0, 2.0]) == (0.0, 1.5, float("inf"))
    assert median_interval([1.0] * 6) == (1.0, 1.0, 1.0)


def test_timed_calls_of_a_module():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    module = tedsl.build(te.create_schedule(B.op), [A, B], name="more")
    a, b = np.ones(64, "float32"), np.zeros(64, "float32")
    with module.timed("more", a, b) as run:
        assert 0 < run(10) < 1
    assert (b == 2).all()
    with pytest.raises(OptionError, match="no function 'less'"):
        module.timed("less", a, b)
