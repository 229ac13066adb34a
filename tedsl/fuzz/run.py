# mypy: ignore-errors
"""Many programs: drawn, checked in processes of their own, counted, findings reduced and printed."""

import collections
import importlib
import multiprocessing
import sys
import time
import traceback
from dataclasses import dataclass, field

from tedsl.fuzz.check import REFUSALS, Disagreement, Refused, check
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.programs import draw_program
from tedsl.fuzz.schedules import draw_schedule


@dataclass
class Finding:
    """A program that something is wrong with: its seed, what happened, the script."""

    seed: int
    kind: str
    detail: str
    script: str = ""


@dataclass
class Report:
    """Counts of programs and what was found."""

    counts: collections.Counter = field(default_factory=collections.Counter)
    refusals: collections.Counter = field(default_factory=collections.Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other):
        self.counts.update(other.counts)
        self.refusals.update(other.refusals)
        self.findings.extend(other.findings)

    def text(self):
        total = max(self.counts["programs"], 1)
        lines = [f"{self.counts['programs']} programs, {len(self.findings)} findings"]
        lines += [f"  {name}: {n} ({100 * n / total:.0f} %)" for name, n in sorted(self.counts.items()) if name != "programs"]
        lines += [f"  lowering refused {n} times: {reason}" for reason, n in self.refusals.most_common(12)]
        return "\n".join(lines)


def draw_case(draw):
    """A program with a schedule, and how many directives were refused."""
    case, _ = draw_program(draw)
    refused = draw_schedule(case, draw)
    case.counts["directives refused"] = refused
    case.counts["directives"] = len(case.schedule)
    return case


def outcome_of(case, **options):
    """None if all ways agree, else a pair: the kind of what happened, and its words."""
    try:
        check(case, **options)
    except Refused as refusal:
        return "refused", str(refusal)
    except Disagreement as wrong:
        return wrong.way, str(wrong)
    except Exception as error:  # whatever it is, it should not have been raised
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.filename.rpartition('/')[2]}:{place.name}", f"{error}"
    return None


def outcome_apart(case, **options):
    """`outcome_of` in a process of its own, which may crash."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=lambda: queue.put(outcome_of(case, **options)))
    process.start()
    process.join()
    return ("crash", f"the process ended with {process.exitcode}") if queue.empty() else queue.get()


def run_seed(seed, report, **options):
    """Draws and checks program number `seed`."""
    report.counts["programs"] += 1
    try:
        case = draw_case(Draw(seed))
    except Exception as error:
        detail = "".join(traceback.format_exception(error)[-4:])
        report.findings.append(Finding(seed, f"while drawing: {type(error).__name__}", detail))
        return
    for name, n in case.counts.items():
        report.counts[name] += n
    outcome = outcome_of(case, **options)
    if outcome is None:
        return
    kind, detail = outcome
    if kind == "refused":
        report.counts["refused by lower"] += 1
        report.refusals[REFUSALS.search(detail)[0]] += 1
    else:
        report.findings.append(Finding(seed, kind, detail, case.script()))


def _work(seeds, current, queue, options):
    report = Report()
    for seed in seeds:
        current.value = seed
        run_seed(seed, report, **options)
    queue.put(report)


def preload():
    """All modules that a program may need: processes that are forked later use what this one has read."""
    for name in ("tedsl.codegen.llvm.backend", "tedsl.passes.default", "tedsl.runtime.parallel", "tedsl.target.host"):
        importlib.import_module(name)
    outcome_of(draw_case(Draw(0)), compiled=False)


def run_many(seeds, *, chunk=200, jobs=1, progress=None, **options):
    """Programs number `seeds`, in processes that may crash: the program that crashed is a finding."""
    preload()
    context = multiprocessing.get_context("fork")
    waiting = [seeds[at:at + chunk] for at in range(0, len(seeds), chunk)]
    total, running = Report(), []
    while waiting or running:
        while waiting and len(running) < jobs:
            part = list(waiting.pop(0))
            current, queue = context.Value("q", -1), context.SimpleQueue()
            process = context.Process(target=_work, args=(part, current, queue, options))
            process.start()
            running.append((process, part, current, queue))
        for item in list(running):
            process, part, current, queue = item
            if not queue.empty():
                total.add(queue.get())
                process.join()
            elif process.is_alive():
                continue
            else:
                process.join()
                at = part.index(current.value) if current.value in part else -1
                print(f"program {current.value} ended its process with {process.exitcode}", file=sys.stderr, flush=True)
                total.findings.append(Finding(current.value, "crash", f"the process ended with {process.exitcode}"))
                total.counts["programs"] += 1
                waiting[:0] = [rest for rest in (part[:max(at, 0)], part[at + 1:]) if rest and at >= 0]
            running.remove(item)
            if progress:
                progress(total)
        time.sleep(0.02)
    return total
