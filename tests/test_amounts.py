"""Amounts that no machine can count or wait for are refused where they are given, in words; the largest others are taken.

They ended in OverflowError or ValueError, some of them in the middle of a search.
"""

import sys

import numpy as np
import pytest

import tedsl
import topi
from tedsl import auto_scheduler, autotvm, te, tune
from tedsl.errors import AllocationError, ArgumentError
from tests.autotvm import templates as templates
from tests.refusing import refused

HUGE = 10 ** 400
TOO_LONG = 10 ** 5000  # Python itself does not show so many digits


def product(n=8):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    return [A, B, topi.matmul(A, B)]


def task():
    return autotvm.task.create("tests/scaled.x86", (te.placeholder((24,), name="x"), 5.0), "llvm")


def timed(**options):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    kernel = tedsl.build(te.create_schedule(B.op), [A, B])
    return kernel.time_evaluator(kernel.entry_name, **options)(np.ones(4, "float32"), np.ones(4, "float32"))


SECONDS = {
    "tune": lambda one: tedsl.tune(product(), one, trials=1, progress=False),
    "tune a template": lambda one: tedsl.tune(task(), one, trials=1, progress=False),
    "within": lambda one: tune.within([], seconds=one), "search": lambda one: auto_scheduler.search(product(), one, trials=1),
    "options": lambda one: auto_scheduler.TuningOptions(1, seconds=one), "build": lambda one: tune.BuildOption(timeout=one),
    "run": lambda one: tune.RunOption(timeout=one), "rest": lambda one: tune.RunOption(cooldown_interval=one),
    "precise": lambda one: tune.RunOption(precise_seconds=one), "rtol": lambda one: tune.Checker(product(), rtol=one),
    "autotvm's builder": lambda one: autotvm.LocalBuilder(timeout=one),
    "autotvm's runner": lambda one: autotvm.LocalRunner(timeout=one),
    "auto_scheduler's builder": lambda one: auto_scheduler.LocalBuilder(timeout=one),
    "auto_scheduler's runner": lambda one: auto_scheduler.LocalRunner(cooldown_interval=one),
    "repetition": lambda one: timed(min_repeat_ms=one), "pause": lambda one: timed(cooldown_interval_ms=one)}
COUNTS = {
    "tune": lambda one: tedsl.tune(product(), 1, trials=one, progress=False), "within": lambda one: tune.within([], trials=one),
    "options": lambda one: auto_scheduler.TuningOptions(one), "stop": lambda one: auto_scheduler.TuningOptions(1, one),
    "round": lambda one: auto_scheduler.TuningOptions(1, num_measures_per_round=one),
    "tuner": lambda one: autotvm.tuner.RandomTuner(task()).tune(one, autotvm.measure_option("local", "local")),
    "generation": lambda one: autotvm.tuner.GATuner(task(), pop_size=one),
    "plan": lambda one: autotvm.tuner.XGBTuner(task(), plan_size=one),
    "builds": lambda one: tune.BuildOption(n_parallel=one), "memory": lambda one: tune.BuildOption(memory=one),
    "calls": lambda one: tune.RunOption(number=one), "repetitions": lambda one: tune.RunOption(repeat=one),
    "milliseconds": lambda one: tune.RunOption(min_repeat_ms=one), "threads": lambda one: tune.RunOption(threads=one),
    "autotvm's runner": lambda one: autotvm.LocalRunner(number=one), "timed": lambda one: timed(number=one),
    "timed repetitions": lambda one: timed(repeat=one), "flushed": lambda one: timed(cache_flush_bytes=one)}


@pytest.mark.parametrize("given", SECONDS.values(), ids=SECONDS)
def test_numbers_that_no_float_holds_are_refused(given):
    refused(lambda: given(HUGE), "is a number", "of at most 1.8e+308, not an int of about 400 digits", error=ArgumentError)
    refused(lambda: given(-TOO_LONG), "is a number", "not a negative int of about 5000 digits", error=ArgumentError)


@pytest.mark.parametrize("given", COUNTS.values(), ids=COUNTS)
def test_counts_that_no_machine_reaches_are_refused(given):
    refused(lambda: given(HUGE), "is an int of at most 2**63 - 1, not an int of about 400 digits", error=ArgumentError)
    refused(lambda: given(-TOO_LONG), "is an int of at least ", "not a negative int of about 5000 digits", error=ArgumentError)


@pytest.mark.parametrize("seconds, trials", [(10 ** 300, 1), (sys.float_info.max, 1), (1, sys.maxsize)])
def test_the_largest_budgets_are_taken(seconds, trials):
    search = auto_scheduler.SearchTask(lambda: product(), (), target="llvm")
    search.tune(auto_scheduler.TuningOptions(trials, seconds=seconds if trials == 1 else 0.1, verbose=0))
    best = tedsl.tune(product(), seconds if trials == 1 else 0.1, trials=trials, progress=False)
    assert best.trials


def test_the_largest_options_are_taken():
    class Candidate:
        def schedule(self):
            args = product()
            return te.create_schedule(args[-1].op), args

        def to_json(self):
            return {}

    build = tune.BuildOption(timeout=1e300, n_parallel=sys.maxsize, memory=sys.maxsize)
    run = tune.RunOption(number=1, repeat=1, timeout=10 ** 300, cooldown_interval=0, threads=sys.maxsize)
    with tune.Measurer(build=build, run=run) as measurer:
        (_, outcome), = measurer.measure([Candidate()])
    assert outcome.failure is None


def test_memory_that_is_not_there_is_said():
    refused(lambda: timed(cache_flush_bytes=1 << 62), "there is no memory for cache_flush_bytes=", error=AllocationError)
