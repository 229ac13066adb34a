"""python -m tedsl fuzz --seconds 60 --seed 0: random programs under random schedules.

Each sequence of up to 15 directives is refused, or the interpreter of the loops, the machine code and numpy agree. Sequence
number S is always the same one: --only S shows it. The exit status is 1 if there are findings.

--swarm: each sequence draws from a choice of its own of about half of the directives, which so meet more often.
--derivatives: instead, derivatives of random programs against differences of their values.
--malformed: instead, nodes made from wrong types, damaged journals, odd names and notations of targets. Each is refused by
one of our errors, or works.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from tedsl.cache.place import FOLDER, OFF
from tedsl.fuzz import derivatives
from tedsl.fuzz.case import Case
from tedsl.fuzz.malformed.nodes import PRELUDE
from tedsl.fuzz.malformed.run import outcome_of as malformed_outcome
from tedsl.fuzz.malformed.run import run_script, script_of, summary
from tedsl.fuzz.reduce import reduced
from tedsl.fuzz.report import Finding, Report
from tedsl.fuzz.run import Outcome, case_of, outcome_apart, run_many, run_seed, run_swarmed_seed
from tedsl.fuzz.targets.in_c import run_in_c
from tedsl.fuzz.targets.on_device import case_on_device, outcome_on_device, reduced_on_device, run_on_device
from tedsl.target.current import as_target


def run(options: argparse.Namespace) -> int:
    """Run the sequences that `options` ask for and print the report; 1 if there are findings, else 0."""
    os.environ[FOLDER] = OFF  # every program is compiled by the compiler of today, and none is built twice
    if options.only is not None and options.derivatives:
        return _one_derivative(options.only)
    if options.only is not None:
        if options.malformed:
            return _one_malformed(options.only)
        if _runs_on_device(options):
            case = case_on_device(options.only, as_target(options.target), options.bound)
            return _one(case, outcome_on_device, reduced_on_device)
        return _one(case_of(options.only, options.swarm), outcome_apart, reduced)
    seeds = itertools.count(options.seed) if options.count is None else range(options.seed, options.seed + options.count)
    unlimited = float("inf")
    ends = options.count is not None or options.accepted is not None
    seconds = options.seconds if options.seconds is not None else (unlimited if ends else 60.0)
    accepted = unlimited if options.accepted is None else options.accepted
    progress = _Progress() if sys.stderr.isatty() else None
    limits: dict[str, Any] = {"jobs": options.jobs, "seconds": seconds, "accepted": accepted, "progress": progress}
    if options.target:
        if _runs_on_device(options):
            report = run_on_device(seeds, as_target(options.target), options.bound, **limits)
        else:
            report = run_in_c(seeds, options.target, **limits)
        print(report.text(every=False))
    elif options.derivatives:
        report = run_many(seeds, step=derivatives.run_case, **limits, chunk=100)
        print(derivatives.summary(report))
    elif options.malformed:
        report = run_many(seeds, step=run_script, **limits)
        print(summary(report))
    else:
        report = run_many(seeds, step=run_swarmed_seed if options.swarm else run_seed, **limits)
        print(report.text())
    if report.findings:
        print(f"\n{report.found()}")
        for finding in _first_of_each_kind(report)[:options.show]:
            print(f"\n# --- number {finding.seed}\n{_shown(finding, options)}")
    return 1 if report.findings else 0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("--malformed", action="store_true", help="malformed input instead of programs")
    parser.add_argument("--derivatives", action="store_true", help="derivatives of programs, against differences")
    parser.add_argument("--target", help='programs for a target of kind c, as "c -cc=clang", or for a device, "opencl"')
    parser.add_argument("--bound", action="store_true", help="for a device: only programs whose schedules bind loops")
    parser.add_argument("--swarm", action="store_true", help="sequences of few directives each, which so meet more often")
    parser.add_argument("--seconds", type=float, help="how long to go on; 60 unless --count or --accepted is given")
    parser.add_argument("--count", type=int, help="how many sequences")
    parser.add_argument("--accepted", type=int, metavar="N", help="go on until N sequences at least were accepted")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first sequence")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--only", type=int, metavar="S", help="sequence number S: its script, its loops, what happens")
    parser.add_argument("--show", type=int, default=3, help="how many findings are reduced and printed")


class _Progress:
    """A line on the terminal, every few seconds."""

    def __init__(self) -> None:
        self.begin = self.last = time.monotonic()

    def __call__(self, report: Report) -> None:
        now = time.monotonic()
        if now - self.last > 5:
            self.last = now
            done = report.counts["sequences"]
            print(f"{now - self.begin:5.0f} s: {done} sequences, {len(report.findings)} findings", file=sys.stderr, flush=True)


def _runs_on_device(options: argparse.Namespace) -> bool:
    """Whether programs run on a device."""
    return bool(options.target) and bool(as_target(options.target).kind.device_backend)


def _first_of_each_kind(report: Report) -> list[Finding]:
    return list({finding.kind: finding for finding in reversed(report.findings)}.values())[::-1]


def _shown(finding: Finding, options: argparse.Namespace) -> str:
    """The script of a finding, reduced where its program can be run again in the same way."""
    if finding.kind.startswith("while drawing"):
        return finding.detail
    if _runs_on_device(options):
        return reduced_on_device(case_on_device(finding.seed, as_target(options.target), options.bound)).script()
    if options.target or options.derivatives or options.malformed:
        return finding.script
    return reduced(case_of(finding.seed, options.swarm)).script()


def _one_malformed(seed: int) -> int:
    print(f"{PRELUDE}\n{script_of(seed)}")
    outcome = malformed_outcome(script_of(seed))
    print(_comment("outcome: " + ("accepted" if outcome is None else f"{outcome[0]}: {outcome[1]}")))
    return 0 if outcome is None or outcome[0] == "refused" else 1


def _one_derivative(seed: int) -> int:
    report = Report()
    derivatives.run_case(seed, report)
    print("\n".join(derivatives.case_of(seed).lines))
    for finding in report.findings:
        print(_comment(f"outcome: {finding.kind}: {finding.detail}"))
    return 1 if report.findings else 0


def _one(case: Case, outcome_of: Callable[[Case], Outcome | None], reduce: Callable[[Case], Case]) -> int:
    print(case.script())
    outcome = outcome_of(case)
    words = "all ways agree" if outcome is None else f"{outcome[0]}: {outcome[1]}"
    print(_comment(f"outcome: {words}"))
    if outcome is None or outcome[0] == "refused":
        return 0
    print(f"\n# --- reduced\n{reduce(case).script()}")
    return 1


def _comment(words: str) -> str:
    """Words of any number of lines as a comment of a program."""
    return "\n".join([f"# {line}" for line in words.splitlines()])
