"""Candidates are built and run apart: whatever one does costs one trial, and no process stays."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

from tedsl.errors import ArgumentError, ScheduleError
from tedsl.tune.measure import BuildOption, Failure, Measurer, Outcome, RunOption

from .conftest import QUICK, Doubled, Endless, abort, hang, take_memory


def children():
    """The processes that this one has started and that have not been waited for."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


def test_a_candidate_has_times(measure):
    outcome, = measure(Doubled())
    assert outcome.failure is None and len(outcome.costs) == 2 and 0 < outcome.cost < 1
    assert 0 < outcome.build_seconds < outcome.all_seconds < 20 and abs(time.time() - outcome.timestamp) < 60
    assert not children()


def refuse():
    raise ScheduleError("split", "B", "this template has no schedule", loops=())


def fail():
    raise KeyError("knob")


@pytest.mark.parametrize("misfortune, kind, words", [
    (refuse, "refused", "this template has no schedule"),
    (fail, "refused", "KeyError: 'knob'"),
    (abort, "crash", "ended by SIGABRT (LLVM ERROR: out of ideas)"),
    (take_memory, "crash", "not enough memory"),
    (hang, "timeout", "took longer than 0.5 s"),
    (lambda: os._exit(3), "crash", "exited with status 3"),
], ids=["refused", "raised", "abort", "memory", "hang", "exit"])
def test_a_build_that_fails_costs_one_trial(measure, misfortune, kind, words):
    options = BuildOption(timeout=0.5 if kind == "timeout" else 20.0, n_parallel=2)
    first, failed, last = measure(Doubled(), Doubled(before=misfortune), Doubled(8), build=options)
    assert first.failure is None and last.failure is None
    assert failed.failure.kind == kind and words in failed.failure.message and failed.costs == () and failed.cost == np.inf
    assert not children()


def test_a_kernel_that_does_not_end_costs_one_trial(measure):
    endless, fine = measure(Endless(), Doubled(), run=RunOption(number=1, repeat=1, timeout=0.5, cooldown_interval=0))
    assert endless.failure.kind == "timeout" and 0.5 <= endless.all_seconds - endless.build_seconds < 5
    assert fine.failure is None


def test_outcomes_are_in_the_order_of_the_candidates(measure):
    candidates = [Doubled(split, before=lambda k=split: time.sleep(0.01 * (9 - k))) for split in range(1, 6)]
    for threads in (1, None):
        option = RunOption(1, 1, cooldown_interval=0, threads=threads)
        with Measurer("llvm", BuildOption(timeout=20, n_parallel=3), option) as m:
            assert [candidate for candidate, _ in m.measure(iter(candidates))] == candidates


def test_given_inputs_are_those_of_the_calls_and_stay_as_they_are(measure):
    b = np.zeros(5, "float32")
    fits, misfit = measure(Doubled(n=5), Doubled(n=6), inputs=[np.ones(5, "float32"), b])
    assert fits.failure is None and not b.any()
    assert misfit.failure.kind == "run" and "shape" in misfit.failure.message


def test_nothing_to_measure(measure):
    assert measure() == []


def test_an_exception_of_the_program_ends_all_processes():
    with pytest.raises(KeyboardInterrupt), Measurer("llvm", BuildOption(n_parallel=2), QUICK) as measurer:
        for _ in measurer.measure([Doubled(), *[Doubled(before=hang)] * 4]):
            raise KeyboardInterrupt
    assert not children()


def test_ctrl_c_ends_all_processes():
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt), Measurer("llvm", BuildOption(n_parallel=2), QUICK) as measurer:
        list(measurer.measure([Doubled(before=hang)] * 4))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert not children()


def _measure_for_ever(marks):
    def mark():
        marks.send(os.getpid())
        hang()

    with Measurer("llvm", BuildOption(timeout=60, n_parallel=2), QUICK) as measurer:
        list(measurer.measure([Doubled(before=mark)] * 2))


def test_processes_die_with_a_program_that_is_killed():
    mine, theirs = multiprocessing.Pipe(duplex=False)
    program = multiprocessing.get_context("fork").Process(target=_measure_for_ever, args=(theirs,))
    program.start()
    builders = [mine.recv(), mine.recv()]
    program.kill()
    program.join()
    until = time.monotonic() + 5
    while any(map(_lives, builders)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(_lives, builders))


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_run_that_is_precise_says_the_interval_of_the_median(measure):
    outcome, = measure(Doubled(n=5000), run=RunOption(precise=True, precise_seconds=0.3, timeout=5, threads=1))
    low, middle, high = outcome.costs
    assert 0 < low <= middle <= high < 1e-3 and outcome.cost == middle


@pytest.mark.parametrize("make, words", [
    (lambda: RunOption(number=0), "number is an int of at least 1, not 0"),
    (lambda: RunOption(timeout=0), "timeout is a number of seconds above 0, not 0"),
    (lambda: RunOption(cooldown_interval=-1), "cooldown_interval is a number of seconds above 0, not -1"),
    (lambda: BuildOption(n_parallel=0), "n_parallel is an int of at least 1, not 0"),
    (lambda: BuildOption(timeout="long"), "timeout is a number of seconds above 0, not 'long'"),
    (lambda: Failure("tired", ""), "there is no kind 'tired'"),
    (lambda: Measurer("llvm", RunOption()), "build is a BuildOption, not RunOption"),
    (lambda: Measurer("llvm", run=4), "run is a RunOption, not 4"),
    (lambda: Measurer("llvm -mtriple=aarch64-linux-gnu"), "does not run on this machine"),
])
def test_what_is_refused(make, words):
    with pytest.raises((ArgumentError, TypeError), match=words):
        make()


def test_the_cost_of_an_outcome_is_the_median():
    assert Outcome((3.0, 1.0, 2.0)).cost == 2.0
    assert Outcome((1.0,), Failure("run", "late")).cost == np.inf
