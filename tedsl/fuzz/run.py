"""Many sequences of directives: drawn, checked in processes of their own, counted."""

from __future__ import annotations

import gc
import importlib
import itertools
import multiprocessing
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tedsl.errors import TedslError
from tedsl.fuzz.applied import Changed, declared
from tedsl.fuzz.case import Case
from tedsl.fuzz.check import Disagreement, Expected, Refused, check, check_quickly, targets_here
from tedsl.fuzz.directives.table import DIRECTIVES
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.programs import SMALL, draw_program
from tedsl.fuzz.recurrences import draw_recurrence
from tedsl.fuzz.report import Finding, Report
from tedsl.fuzz.scheduler import Scheduler
from tedsl.fuzz.schedules import Propose, draw_schedule, swarm

GROUP = 8  # sequences for one program
RECURRENCES = 6  # percent of the programs
THOROUGH = 16  # every so many sequences one is checked in every way there is
PATIENCE = 60.0  # seconds for one sequence
REPORTED = 50  # a worker hands in what it knows every so many sequences: the rest would die with it


class Group:
    """The program of the sequences GROUP * number to GROUP * number + GROUP - 1."""

    def __init__(self, number: int) -> None:
        self.number = number
        draw = Draw(f"program {number}")
        self.case, self.expected = draw_recurrence(draw) if draw.chance(RECURRENCES) else draw_program(draw, SMALL)
        self.names = declared(self.case)

    def sequence(self, seed: int, table: Mapping[Propose, int] = DIRECTIVES) -> tuple[Case, Scheduler]:
        """The program with the schedule number `seed`, whose directives are those of `table`."""
        draw = Draw(f"schedule {seed}")
        case = replace(self.case, schedule=[], kinds=[], config={}, counts=dict(self.case.counts))
        scheduler = draw_schedule(case, draw, self.names, table)
        if seed % THOROUGH == 0:
            case.target = draw.choice(targets_here())
        return case, scheduler


def draw_case(draw: Draw) -> Case:
    """A program with a schedule, all from one source of choices."""
    case, _ = draw_recurrence(draw) if draw.chance(RECURRENCES) else draw_program(draw)
    draw_schedule(case, draw)
    if draw.chance(35):
        case.target = draw.choice(targets_here())
    return case


def case_of(seed: int, swarmed: bool = False) -> Case:
    """The program with the schedule number `seed`; swarmed: of the directives that `swarm` leaves it."""
    return Group(seed // GROUP).sequence(seed, swarm(seed) if swarmed else DIRECTIVES)[0]


# --- one sequence -----------------------------------------------------------------------------------------------------

Outcome = tuple[str, str]  # the kind of what happened, and its words


def outcome_of(case: Case, **options: Any) -> Outcome | None:
    """None if all ways agree, else the kind of failure and its details."""
    return outcome_of_step(lambda: check(case, **options))


def outcome_of_step(step: Callable[[], Any]) -> Outcome | None:
    """None if `step` does what it should, else the kind of failure and its details."""
    try:
        step()
    except Refused as refusal:
        return "refused", str(refusal)
    except Changed as wrong:
        return "changed although refused", str(wrong)
    except Disagreement as wrong:
        return wrong.way, str(wrong)
    except Exception as error:  # whatever it is, it should not have been raised
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"unexpected {type(error).__name__}" if isinstance(error, TedslError) else type(error).__name__
        return f"{kind} in {place.filename.rpartition('/')[2]}:{place.name}", f"{error}"
    return None


def outcome_apart(case: Case, patience: float = PATIENCE, **options: Any) -> Outcome | None:
    """`outcome_of` in a process of its own, which may crash or hang."""
    return apart(lambda: outcome_of(case, **options), patience)


def apart(step: Callable[[], Outcome | None], patience: float = PATIENCE) -> Outcome | None:
    """The outcome that `step` returns in a process of its own, which may crash or hang."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=lambda: queue.put(step()))
    process.start()
    process.join(patience)
    if process.is_alive():
        process.kill()
        process.join()
        return "hang", f"no answer in {patience:.0f} seconds"
    outcome: Outcome | None = ("crash", _ended(process.exitcode)) if queue.empty() else queue.get()
    return outcome


def _ended(code: int | None) -> str:
    name = signal.Signals(-code).name if code is not None and -code in set(signal.Signals) else code
    return f"the process ended with {name}"


def run_swarmed_seed(seed: int, report: Report, group: Group | None = None) -> Group | None:
    """`run_seed` with the directives that `swarm` leaves to the sequence."""
    return run_seed(seed, report, group, swarm(seed))


def run_seed(seed: int, report: Report, group: Group | None = None, table: Mapping[Propose, int] = DIRECTIVES) -> Group | None:
    """Draws and checks sequence number `seed`, of directives of `table`; returns the group, for the next one."""
    report.counts["sequences"] += 1
    if group is None or group.number != seed // GROUP:
        try:
            group = Group(seed // GROUP)
        except Exception as error:
            report.findings.append(Finding(seed, f"while drawing: {type(error).__name__}", _last_lines(error)))
            return None
    made: list[tuple[Case, Scheduler]] = []
    drawn = group
    outcome = outcome_of_step(lambda: made.append(drawn.sequence(seed, table)))
    if outcome is None:
        case, scheduler = made[0]
        report.drawn(case, scheduler)
        outcome = outcome_of_step(lambda: _check(seed, case, scheduler, drawn.expected))
        report.outcome(seed, case, outcome)
    else:
        report.findings.append(Finding(seed, f"while drawing: {outcome[0]}", outcome[1]))
    return group


def _check(seed: int, case: Case, scheduler: Scheduler, expected: Expected) -> None:
    if seed % THOROUGH == 0:
        check(case, expected=expected)  # the schedule is made once more, without what was refused
    else:
        check_quickly(case, scheduler.names, expected)


def _last_lines(error: Exception) -> str:
    return "".join(traceback.format_exception(error)[-4:])


Step = Callable[[int, Report, Any], Any]


# --- many -------------------------------------------------------------------------------------------------------------

def preload() -> None:
    """Import all modules that a program may need, so that forked processes share them."""
    for name in ("tedsl.compiler", "tedsl.codegen.llvm.compiled", "tedsl.runtime.parallel", "tedsl.target.host"):
        importlib.import_module(name)
    outcome_of(draw_case(Draw(0)), compiled=False)


def _work(seeds: Sequence[int], current: Any, until: float, queue: Any, step: Step) -> None:
    gc.freeze()  # modules stay: garbage collection need not look at them again and again
    gc.set_threshold(10_000)
    warnings.simplefilter("ignore", UserWarning)  # of directives that say what they drop
    report, state, done = Report(), None, 0
    for done, seed in enumerate(seeds):
        if time.monotonic() > until:
            break
        if done % REPORTED == 0:
            queue.put((done, report, False))
            report = Report()
        current[0], current[1] = seed, time.monotonic()
        state = step(seed, report, state)
    queue.put((done, report, True))


class Worker:
    """A process that runs a batch of sequences."""

    def __init__(self, seeds: Sequence[int], until: float, step: Step) -> None:
        context = multiprocessing.get_context("fork")
        self.seeds = list(seeds)
        self.done = 0
        self.current, self.queue = context.Array("d", [-1.0, time.monotonic()]), context.SimpleQueue()
        self.waited_since, self.asked, self.waited = self.current[1], time.monotonic(), 0.0
        self.process = context.Process(target=_work, args=(self.seeds, self.current, until, self.queue, step))
        self.process.start()

    def collect(self, total: Report) -> list[int] | None:
        """Adds its reports to `total`. Returns None while it works, else the sequences of its batch still to be done."""
        seed, since, alive = int(self.current[0]), self.current[1], self.process.is_alive()
        while not self.queue.empty():
            self.done, report, ended = self.queue.get()
            total.add(report)
            if ended:
                self.process.join()
                return []
        hangs = alive and self._patience_ends(since)
        if alive and not hangs:
            return None
        self.process.kill()
        self.process.join()
        words = f"no end in {PATIENCE:.0f} seconds" if hangs else _ended(self.process.exitcode)
        total.counts["sequences"] += 1
        total.findings.append(Finding(seed, "hang" if hangs else "crash", words))
        return [left for left in self.seeds[self.done:] if left != seed]

    def _patience_ends(self, since: float) -> bool:
        """Whether the sequence begun at `since` has taken too long, without the times in which this process stood still too."""
        now = time.monotonic()
        waited, self.asked = min(now - self.asked, 1.0), now
        self.waited = waited + (self.waited if since == self.waited_since else 0.0)
        self.waited_since = since
        return self.waited > PATIENCE


def run_many(seeds: Iterable[int], *, step: Step = run_seed, chunk: int = 400, jobs: int = 1, seconds: float = float("inf"),
             accepted: float = float("inf"), progress: Callable[[Report], None] | None = None) -> Report:
    """Runs the sequences `seeds`, as many as `seconds` allow, in processes whose crashes are findings too.

    accepted: no batch begins once so many sequences were accepted. step: draws and checks one sequence; it takes its number,
    the report, and its own result for the previous sequence.
    """
    preload()
    until = time.monotonic() + seconds
    total, source = Report(), iter(seeds)
    waiting: list[list[int]] = []
    running: list[Worker] = []
    while True:
        while len(running) < jobs and time.monotonic() < until and total.counts["accepted"] < accepted:
            part = waiting.pop(0) if waiting else list(itertools.islice(source, chunk))
            if not part:
                break
            running.append(Worker(part, until, step))
        if not running:
            return total
        for worker in list(running):
            rest = worker.collect(total)
            if rest is not None:
                running.remove(worker)
                if rest:
                    waiting.insert(0, rest)
        if progress is not None:
            progress(total)
        time.sleep(0.02)
