"""Candidates are built and run apart: whatever one does costs one trial, and no process stays."""

import itertools
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing import resource_tracker

import numpy as np
import pytest

import tedsl
from tedsl import autotvm, te, tir
from tedsl.cache.store import Store
from tedsl.errors import ArgumentError, ScheduleError, TedslError
from tedsl.ir.dtype import DType
from tedsl.ir.functions import FUNCTIONS
from tedsl.target import Target
from tedsl.tune.measure import BuildOption, Checker, Failure, Measurer, Outcome, RunOption, limited, measurer
from tedsl.tune.measure.check import Expected
from tedsl.tune.measure.inputs import is_unwritten, unwritten_array
from tedsl.tune.measure.process import Process
from tedsl.tune.measure.running import Reference, seconds_of

from .conftest import MEMORY, QUICK, Called, Doubled, Endless, abort, hang, take_memory


def children():
    """The processes that this one has started and that have not been waited for; multiprocessing's own, which lives as long as
    this one after a test has spawned another, does not count.
    """
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [pid for pid in file.read().split() if pid != str(resource_tracker._resource_tracker._pid)]


def test_a_candidate_has_times(measure):
    outcome, = measure(Doubled())
    assert outcome.failure is None and len(outcome.costs) == 2 and 0 < outcome.cost < 1
    assert 0 < outcome.build_seconds < outcome.all_seconds < 60 and abs(time.time() - outcome.timestamp) < 60
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
    (hang, "timeout", "took longer than 2 s"),
    (lambda: os._exit(3), "crash", "exited with status 3"),
], ids=["refused", "raised", "abort", "memory", "hang", "exit"])
def test_a_build_that_fails_costs_one_trial(measure, misfortune, kind, words):
    options = BuildOption(timeout=2.0 if kind == "timeout" else 20.0, n_parallel=2, memory=MEMORY)
    first, failed, last = measure(Doubled(), Doubled(before=misfortune), Doubled(8), build=options)
    assert first.failure is None and last.failure is None
    assert failed.failure.kind == kind and words in failed.failure.message and failed.costs == () and failed.cost == np.inf
    assert not children()


def test_a_kernel_that_does_not_end_costs_one_trial(measure):
    endless, fine = measure(Endless(), Doubled(), run=RunOption(number=1, repeat=1, timeout=2.0, cooldown_interval=0))
    assert endless.failure.kind == "timeout" and 2.0 <= endless.all_seconds - endless.build_seconds < 20
    assert fine.failure is None


@pytest.mark.parametrize("seconds", [3e6, 1e20])
def test_limits_of_any_length(measure, seconds):
    option = RunOption(number=1, repeat=1, timeout=seconds, cooldown_interval=0)
    assert measure(Doubled(), run=option, build=BuildOption(timeout=seconds))[0].failure is None


@pytest.mark.parametrize("option", [QUICK, replace(QUICK, precise=True, precise_seconds=0.2)], ids=["plain", "precise"])
def test_a_kernel_that_crashes_costs_one_trial(measure, option):
    crash, fine = measure(Called("abort", tir.call_extern), Doubled(), run=option)
    assert crash.failure.kind == "crash" and "ended by SIGABRT" in crash.failure.message and crash.build_seconds > 0
    assert fine.failure is None and not children()


def test_a_reference_that_is_stopped_is_not_slow(register):
    """Two calls of it take long beside all others, and more than the time of the measurement."""
    calls = itertools.count()
    pausing = Called(register("tests.tune.pause", lambda: time.sleep(0.4 if next(calls) in (3, 14) else 1e-3)))
    sch, args = pausing.schedule()
    reference = Reference(tedsl.build(sch, args, "llvm").save_to_bytes(), [np.zeros(4, "float32")] * 2)
    option = RunOption(precise=True, precise_seconds=0.1)
    assert 0 < Process(lambda: seconds_of(reference, Target("llvm"), option, 1, None), "run", 20.0).finish().value < 0.1


@pytest.mark.parametrize("times", [1, 2])
def test_a_reference_that_takes_too_long_once_is_measured_again(measure, monkeypatch, tmp_path, times):
    monkeypatch.setattr(measurer, "seconds_of", lambda *args: hang() if _counted(tmp_path) <= times else 1e-6)
    option = replace(QUICK, precise=True, precise_seconds=0.1, timeout=1.5)
    if times == 1:
        assert measure(Doubled(), run=option)[0].failure is None
    else:
        with pytest.raises(TedslError, match="the reference kernel cannot be measured: timeout"):
            measure(Doubled(), run=option)


def _counted(folder):
    """How often this was called, in any process."""
    (folder / str(len(list(folder.iterdir())))).touch()
    return len(list(folder.iterdir()))


@pytest.fixture
def register():
    """Registers a function under a name for the time of a test."""
    names = []

    def register(name, function):
        tedsl.register_func(name, function, override=True)
        names.append(name)
        return name

    yield register
    for name in names:
        FUNCTIONS.pop(name)


def test_a_kernel_whose_function_raises(measure, register):
    outcome, = measure(Called(register("tests.tune.fail", fail)))
    assert outcome.failure == Failure("run", "KeyError: 'knob'")


def test_a_candidate_that_returns_no_schedule(measure):
    nothing, alone = Doubled(), Doubled()
    nothing.schedule, alone.schedule = (lambda: None), lambda: Doubled.schedule(Doubled())[0]
    said = [str(outcome.failure) for outcome in measure(nothing, alone)]
    assert said == [f"refused: schedule() returned a {what}, and not a schedule and its arguments"
                    for what in ("NoneType", "Schedule")]


def test_the_memory_of_a_run_is_limited(measure, register, monkeypatch):
    monkeypatch.setattr(measurer, "free_memory", lambda: MEMORY)
    outcome, = measure(Called(register("tests.tune.take", take_memory)))
    assert outcome.failure == Failure("crash", "there is not enough memory")


@pytest.mark.parametrize("flush", [False, True])
def test_caches_are_overwritten_before_each_repetition(measure, monkeypatch, flush):
    """As LocalRunner says it; a run with it has times."""
    option = autotvm.LocalRunner(number=1, repeat=2, cooldown_interval=0, enable_cpu_cache_flush=flush).option
    outcome, = measure(Doubled(), run=option)
    assert outcome.failure is None and len(outcome.costs) == 2

    def told(*args, f_preproc, **named):
        raise ValueError(f"before each: {f_preproc!r}")

    monkeypatch.setattr(tedsl.runtime.module.Module, "time_evaluator", told)
    outcome, = measure(Doubled(), run=option)
    assert f"before each: {'cache_flush_cpu_non_first_arg' if flush else ''!r}" in outcome.failure.message


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor cannot be divided")
def test_runs_and_builds_have_processors_of_their_own(measure, register):
    def tell():
        raise ValueError(sorted(os.sched_getaffinity(0)))

    mine = sorted(os.sched_getaffinity(0))
    run, built = measure(Called(register("tests.tune.tell", tell)), Doubled(before=tell))
    assert run.failure.message == f"ValueError: {mine[-1:]}" and built.failure.message == f"ValueError: {mine[:-1]}"
    run, built = measure(Called("tests.tune.tell"), Doubled(before=tell), run=replace(QUICK, threads=None))
    assert run.failure.message == built.failure.message == f"ValueError: {mine}"


def test_schedules_know_the_threads_of_runs_and_the_processors_of_the_machine(measure):
    def tell():
        raise ValueError((tedsl.get_num_threads(), tedsl.Target("llvm").machine.cores))

    mine = len(os.sched_getaffinity(0))
    for threads in (1, 5):
        outcome, = measure(Doubled(before=tell), run=replace(QUICK, threads=threads))
        assert outcome.failure.message == f"ValueError: {min(threads, mine), mine}"


def test_two_measurements_at_once():
    with Measurer("llvm", BuildOption(n_parallel=1), QUICK) as measurer:
        first, second = (measurer.measure([Doubled(split) for split in (1, 2, 3)]) for _ in range(2))
        next(first)
        next(second)
        second.close()
        assert [outcome.failure for _, outcome in first] == [None, None]


def test_builds_and_runs_take_turns_where_a_run_takes_all_processors(measure, register, tmp_path):
    """Each says when it begins and ends."""
    log = tmp_path / "log"

    def tell(word, seconds):
        for end in ("begins", "ends"):
            with log.open("a") as file:
                file.write(f"{word} {end}\n")
            time.sleep(seconds * (end == "begins"))

    name = register("tests.tune.slow", lambda: tell("run", 0.01))
    candidates = [Called(name) for _ in range(5)]
    for k, candidate in enumerate(candidates):
        candidate.schedule = lambda given=candidate.schedule, k=k: (tell("build", 0.3 * (k % 2)), given())[1]
    option = RunOption(number=1, repeat=1, cooldown_interval=0)
    assert not [outcome for outcome in measure(*candidates, run=option, build=BuildOption(20, 2)) if outcome.failure]
    running = building = 0
    for line in log.read_text().splitlines():
        word, end = line.split()
        running += (word == "run") * (1 if end == "begins" else -1)
        building += (word == "build") * (1 if end == "begins" else -1)
        assert running <= 1 and not (running and building), "a build would slow the run"


def test_candidates_leave_nothing_in_the_cache(measure, tmp_path, monkeypatch):
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path))
    cache = Store(str(tmp_path), 1 << 30)
    with Measurer("llvm", run=QUICK) as measurer:
        before = cache.contents().entries
        assert [outcome.failure for _, outcome in measurer.measure([Doubled(13)])] == [None]
    assert before["code"] == 1 and cache.contents().entries == before


def test_code_for_a_simulated_device(measure):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")

    def scheduled():
        s = te.create_schedule(B.op)
        block, thread = s[B].split(B.op.axis[0], 32)
        s[B].bind(block, te.thread_axis("blockIdx.x"))
        s[B].bind(thread, te.thread_axis("threadIdx.x"))
        return s, [A, B]

    candidate = Doubled()
    candidate.schedule = scheduled
    with Measurer("cuda", run=QUICK, check=Checker([A, B], "cuda")) as measurer:
        (_, outcome), = measurer.measure([candidate])
    assert outcome.failure is None and outcome.cost > 0


class InThreads(Doubled):
    """B = 2 A by blocks of 64 threads; one element of block 0 is `wrong`; with `parts` B is computed from what another kernel
    writes, in another order.
    """

    def __init__(self, n, wrong=0.0, parts=1):
        super().__init__(n=n)
        self.wrong, self.parts = wrong, parts

    def formula(self):
        A = te.placeholder((self.n,), name="A")
        other = te.compute((self.n,), lambda i: A[self.n - 1 - i], name="other") if self.parts == 2 else A
        at = (lambda i: self.n - 1 - i) if self.parts == 2 else (lambda i: i)
        return A, te.compute((self.n,), lambda i: other[at(i)] * 2.0 + te.if_then_else(i == 5, self.wrong, 0.0), name="B")

    def schedule(self):
        A, B = self.formula()
        s = te.create_schedule(B.op)
        for stage in s.stages[1:]:
            block, thread = stage.split(stage.op.axis[0], 64)
            stage.bind(block, te.thread_axis("blockIdx.x"))
            stage.bind(thread, te.thread_axis("threadIdx.x"))
        return s, [A, B]


@pytest.mark.parametrize("n", [640, 64 * 500 + 7])
@pytest.mark.parametrize("parts", [1, 2])
def test_times_of_a_simulated_device_are_estimated_from_a_sample(n, parts):
    checker = Checker(InThreads(n).formula(), "cuda")
    with Measurer("cuda", BuildOption(20.0), replace(QUICK, precise=True), checker) as measurer:
        assert measurer.estimated and not Measurer("llvm").estimated
        outcomes = [outcome for _, outcome in measurer.measure([InThreads(n, parts=parts), InThreads(n, 1.0, parts)])]
    fine, wrong = outcomes
    assert fine.failure is None and len(fine.costs) == 1 and 3e-6 < fine.cost < 1e-3
    assert wrong.failure.kind == "wrong" and f"1 of {n} elements of B differ; the first, at (5,)" in wrong.failure.message


def test_drivers_of_devices_are_started_in_processes_of_their_own():
    """One that this process has started could not be used by those that are forked from it."""
    code = "\n".join([
        "from tedsl.runtime.devices.table import _LOADED", "from tedsl.target import Target",
        "from tedsl.tune import Measurer, RunOption, Checker, Outcome, record_of",
        "from tests.tune.test_measurer import InThreads",
        "one = InThreads(640)",
        "with Measurer('cuda', run=RunOption(number=1), check=Checker(one.formula(), 'cuda')) as measurer:",
        "    (_, outcome), = measurer.measure([one])",
        "record = record_of('task', one, outcome, 'cuda')",
        "assert outcome.failure is None and record.machine.startswith('simulated device'), (outcome, record)",
        "assert not _LOADED, _LOADED"])
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("kind", ["rocm", "vulkan"])
def test_targets_that_nothing_here_runs_are_refused(kind):
    with pytest.raises(ArgumentError, match=f"there is no device here that runs code for {kind}"):
        Measurer(kind)


def test_results_outside_of_the_sample_are_not_compared():
    for dtype in ("float16", "bfloat16", "float64", "int8", "uint64", "bool"):
        found = unwritten_array((6,), DType(dtype))
        found[:3] = 0
        assert list(is_unwritten(found)) == [False] * 3 + [True] * 3
    values = np.arange(6, dtype="float32")
    expected = Expected({0: values}, {0: "B"}, 1e-6, 1e-6)
    unwritten = np.where(values < 3, values, np.float32("nan"))
    assert expected.difference([unwritten]) and not expected.restricted({0: ~is_unwritten(unwritten)}).difference([unwritten])
    unwritten[1] = 7
    assert "at (1,)" in expected.restricted({0: ~is_unwritten(unwritten)}).difference([unwritten])


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


def test_measuring_in_a_thread_of_a_program_with_many_files(measure):
    outcomes, files = [], [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)] if _allows_files(1300) else []
    thread = threading.Thread(target=lambda: outcomes.extend(measure(Doubled(), Doubled(before=abort))))
    thread.start()
    thread.join()
    for file in files:
        os.close(file)
    assert [outcome.failure and outcome.failure.kind for outcome in outcomes] == [None, "crash"] and not children()


def _allows_files(count):
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] > count


def test_nothing_to_measure(measure):
    assert measure() == []


def test_an_exception_of_the_program_ends_all_processes():
    with pytest.raises(KeyboardInterrupt), Measurer("llvm", BuildOption(n_parallel=2), QUICK) as measurer:
        for _ in measurer.measure([Doubled(), *[Doubled(before=hang)] * 4]):
            raise KeyboardInterrupt
    assert not children()


@pytest.fixture
def interrupt():
    """Lets Ctrl-C come after some seconds."""
    def interrupt(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    yield interrupt
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_ctrl_c_ends_all_processes(interrupt):
    with Measurer("llvm", BuildOption(n_parallel=2), QUICK) as measurer:
        measuring = measurer.measure([Doubled(before=hang)] * 4)
        interrupt(0.2)
        with pytest.raises(KeyboardInterrupt):
            next(measuring)
    assert not children()


def test_ctrl_c_while_a_process_is_forked_ends_that_too(monkeypatch):
    fork, forked = os.fork, []

    def interrupted_fork():
        forked.append(fork())
        if forked[-1]:
            signal.raise_signal(signal.SIGINT)
        return forked[-1]

    monkeypatch.setattr(os, "fork", interrupted_fork)
    measurer = Measurer("llvm", BuildOption(n_parallel=2), QUICK)
    with pytest.raises(KeyboardInterrupt):
        next(measurer.measure([Doubled(before=hang)] * 4))
    assert len(forked) == 1 and not children()


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
    until = time.monotonic() + 60
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
    (lambda: RunOption(precise="yes"), "precise is True or False, not 'yes'"),
    (lambda: list(Measurer("llvm").measure(3)), "measure takes candidates, a list or an iterator of them, not 3"),
    (lambda: list(Measurer("llvm").measure([3])), r"a candidate has the method schedule\(\) and to_json\(\), and 3 has not"),
    (lambda: list(Measurer("llvm").measure([], 3)), "inputs is a list of arrays and numbers"),
])
def test_what_is_refused(make, words):
    with pytest.raises((ArgumentError, TypeError), match=words):
        make()


def test_the_time_of_one_candidate_limits_those_of_others():
    def limit(seconds, **named):
        return limited(RunOption(), Outcome((1.0,), None, 1.0, 1.0 + seconds), **named).timeout

    assert [limit(seconds) for seconds in (0.05, 0.75, 8.0)] == [5.0, 7.5, 10.0]
    assert [limit(seconds, estimated=True) for seconds in (0.05, 2.0, 8.0)] == [5.0, 6.0, 10.0]


def test_the_cost_of_an_outcome_is_the_median():
    assert Outcome((3.0, 1.0, 2.0)).cost == 2.0
    assert Outcome((1.0,), Failure("run", "late")).cost == np.inf
