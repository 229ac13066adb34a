"""`python -m benchmarks.tuning [--seconds 60] [--families matmul ...] [--count 1] [--kept FILE] [--again]`: what a search for
schedules gains.

For random shapes of each family: the time of the best schedule that `tedsl.auto_scheduler` finds in the given seconds, of
topi's default schedule, and of torch, where it is installed; and how many times slower these are than the best.

A ratio is the median of those of rounds in which all take turns, each round in an order of its own, with the interval that
holds it in 95 % of the cases. Each sitting is a process of its own that builds the kernels anew, since a place of code or of
arrays in memory may suit one kernel, and sittings are made until the intervals are narrow, or MOST of them. Where the search
keeps the default schedule, as it does unless another is surely faster, the ratio is 1. A row is below the default if its whole
interval is. Torch rests the threads of all before each sample, where there are several: those of tedsl and of torch spin for a
while after a call.

With `--kept FILE` each row is kept there as a line of JSON, with the decisions of the best, and rows that are there for these
seconds, this machine and this number of threads are not measured again, so that a table of many shapes is made in parts, each
by a process that may be killed. With `--again` rows that are there are measured again without a search, by the schedules that
were found. `--joined FILE ...` takes the rows of further files, as of parts that were made elsewhere.
`--families packed` is a product of 1024 from the plain formula beside the packed schedule that `benchmarks/matmul.py` writes by
hand.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tedsl
from benchmarks.contenders.with_torch import torch_or_none
from benchmarks.matmul import packed_matmul
from benchmarks.measure import Contender, samples_of
from benchmarks.tuned_programs import FAMILIES, drawn, plain_product
from tedsl import auto_scheduler, te
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.runtime.parallel import get_num_threads
from tedsl.runtime.timing import ENOUGH, median_interval
from tedsl.schedule.journal import Journal
from tedsl.target import Target
from tedsl.tune import Record
from tedsl.tune.measure.machine import machine_model
from tedsl.tune.records.history import journal_of

REST = 0.1  # seconds after which the threads of tedsl and torch sleep
ROUNDS = 20  # of a sitting
FEW, MOST = 2, 6  # sittings
OTHERS = ("default", "torch")
Shape = tuple[str, int, int]  # a family, the number of the shape in it, the seed
Ratio = tuple[float, float, float]  # how many times slower than the best: the interval, with the median in its middle
KEPT: Ratio = (1.0, 1.0, 1.0)  # of the default to itself


@dataclass(frozen=True)
class Row:
    """A shape that was measured. medians: seconds; ratios: of others to the best; directives: of the best, as Python; journal:
    the same as JSON.
    """

    case: str
    seconds: float
    machine: str
    threads: int
    trials: int
    medians: Mapping[str, float]
    ratios: Mapping[str, Ratio]
    decisions: Mapping[str, Any] = field(default_factory=dict)
    directives: str = ""
    journal: str = ""

    @property
    def key(self) -> tuple[str, float, str, int]:
        return self.case, self.seconds, self.machine, self.threads

    def __str__(self) -> str:
        shown = [f"{self.medians[who] * 1e6:.1f}" if who in self.medians else "-" for who in ("best", *OTHERS)]
        times = "".join(f"{one:>10}" for one in shown)
        ratios = "".join(said(self.ratios[who]) for who in OTHERS if who in self.ratios)
        return f"{self.case:32}{self.trials:7}{times}{ratios}"


def said(ratio: Ratio) -> str:
    low, middle, high = ratio
    return f"{middle:9.2f} ({low:.2f}-{high:.2f})" if ratio != KEPT else f"{'kept':>9}" + " " * 12


def searched(args: list[Any], seconds: float, seed: int) -> tuple[Record, Any, int]:
    """The record of the best schedule, the schedule, and the number of trials."""
    trials: list[Any] = []
    best = auto_scheduler.search(args, seconds, seed=seed, on_trial=trials.append)
    journal = journal_of(best)
    return best, scheduled(args, None if journal is None else journal.to_json()), len(trials)


def scheduled(args: list[Any], journal: str | None) -> Any:
    """The schedule that a journal, as JSON, makes of a function of these tensors; None: one without directives."""
    sch = te.create_schedule([arg.op for arg in args if not isinstance(arg.op, te.PlaceholderOp)])
    if journal is not None:
        sch.replay(Journal.from_json(journal))
    return sch


def arrays_of(args: list[Any]) -> list[Any]:
    made = np.random.default_rng(0)
    return [made.random([int(extent) for extent in arg.shape], "float32") for arg in args]


def compared(shape: Shape, seconds: float) -> Row:
    """Searches for a schedule of a shape, and measures it beside the default and, where it is there, torch."""
    name, args, _ = drawn(*shape)
    best, sch, trials = searched(args, seconds, shape[-1])
    found = best.candidate if isinstance(best.candidate, dict) else {}
    medians, ratios = beside_others(shape, sch.journal.to_json())
    return Row(name, seconds, machine_model(Target("llvm")), get_num_threads(), trials, medians, ratios,
               found.get("decisions", {}), str(sch.journal), sch.journal.to_json(indent=None))


def again(shape: Shape, row: Row) -> Row:
    """Measures the schedule of a row again."""
    medians, ratios = beside_others(shape, row.journal)
    return replace(row, medians=medians, ratios=ratios)


def beside_others(shape: Shape, journal: str) -> tuple[dict[str, float], dict[str, Ratio]]:
    """The medians and ratios of the schedule of a journal, of the default and of torch."""
    medians, ratios = in_turns(partial(in_process, sitting, shape, journal, get_num_threads()))
    if "default" not in ratios:
        medians, ratios = medians | {"default": medians["best"]}, ratios | {"default": KEPT}
    return medians, ratios


def in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns in a process that begins anew."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as one:
        return one.submit(function, *arguments).result()


def sitting(shape: Shape, journal: str, threads: int) -> dict[str, list[float]]:
    """Samples of all contenders in turns: "best", "default" unless that is the same schedule, "torch" where it is there."""
    _, args, of_torch = drawn(*shape)
    best, rules = scheduled(args, journal), Problem(args, Target("llvm")).default.schedule
    arrays, torch = arrays_of(args), torch_or_none(threads)
    calls: dict[str, Contender] = {"best": partial(tedsl.build(best, args), *arrays)}
    if str(best.journal) != str(rules.journal):
        calls["default"] = partial(tedsl.build(rules, args), *arrays)
    if torch is not None and of_torch is not None:
        tensors = [torch.from_numpy(array) for array, arg in zip(arrays, args) if isinstance(arg.op, te.PlaceholderOp)]
        calls["torch"] = lambda: of_torch(torch, tensors)
    return in_rounds(calls)


def in_rounds(calls: dict[str, Contender]) -> dict[str, list[float]]:
    return samples_of(calls, rounds=ROUNDS, settle=REST if "torch" in calls and get_num_threads() > 1 else 0.0)


def in_turns(sitting: Callable[[], dict[str, list[float]]]) -> tuple[dict[str, float], dict[str, Ratio]]:
    """The medians of all contenders, and the ratios of the others to the one that is called "best"."""
    samples: dict[str, list[float]] = {}
    for number in range(MOST):
        for who, seen in sitting().items():
            samples.setdefault(who, []).extend(seen)
        ratios = {who: median_interval([mine / best for mine, best in zip(seen, samples["best"])])
                  for who, seen in samples.items() if who != "best"}
        if number + 1 >= FEW and all(high - low <= ENOUGH * middle for low, middle, high in ratios.values()):
            break
    return {who: statistics.median(seen) for who, seen in samples.items()}, ratios


def rows_in(paths: Iterable[Path]) -> dict[tuple[str, float, str, int], Row]:
    """The rows of files by their keys, the last of each; a line cut short, or of another form, is left out."""
    found = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                one = Row(**json.loads(line))
                one = replace(one, ratios={who: (low, middle, high) for who, (low, middle, high) in one.ratios.items()})
            except (ValueError, TypeError):
                continue
            found[one.key] = one
    return found


def keep_row(path: Path | None, one: Row) -> None:
    """Adds a row to the file."""
    if path is not None:
        with path.open("a") as file:
            file.write("\n" + json.dumps(asdict(one)) + "\n")  # after a torn line, too


def against_packed(seconds: float, seed: int) -> None:
    """The plain product of 1024 beside the schedule that packs, written by hand."""
    _, found, trials = searched(plain_product(1024, 1024, 1024), seconds, seed)
    medians, ratios = in_turns(partial(in_process, packed_sitting, found.journal.to_json()))
    times = {who: f"{seconds * 1e3:.2f} ms" for who, seconds in medians.items()}
    print(f"matmul 1024 after {trials} trials: {times['best']}, packed by hand {times['packed']}: "
          f"{said(ratios['packed']).strip()} of its speed", flush=True)


def packed_sitting(journal: str) -> dict[str, list[float]]:
    """Samples of the schedule of a journal, and of the one that packs."""
    args = plain_product(1024, 1024, 1024)
    arrays = arrays_of(args)
    return in_rounds({"best": partial(tedsl.build(scheduled(args, journal), args), *arrays),
                      "packed": partial(tedsl.build(*packed_matmul(1024)), *arrays)})


def geomean(numbers: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def summary(found: Sequence[Row]) -> str:
    """What a table says: the rows that are surely below the default, and the means."""
    below = [one.case for one in found if one.ratios["default"][2] < 1]
    kept = sum(one.ratios["default"] == KEPT for one in found)
    means = [(who, [one.ratios[who][1] for one in found if who in one.ratios]) for who in OTHERS]
    return f"below the default: {len(below)} of {len(found)} shapes{''.join(f', {name}' for name in below)}; the default was " \
           f"kept for {kept}\ngeomean: " + ", ".join(f"{geomean(many):.2f} of {who}" for who, many in means if many)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What searching for schedules gains.")
    parser.add_argument("--seconds", type=float, default=60, help="of each search")
    parser.add_argument("--families", nargs="*", default=[*FAMILIES, "packed"], choices=[*FAMILIES, "packed"])
    parser.add_argument("--count", type=int, default=1, help="shapes of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="file of rows, with which a table is gone on with")
    parser.add_argument("--joined", type=Path, nargs="*", default=[], help="further files of rows, which are read")
    parser.add_argument("--again", action="store_true", help="measure kept rows again, without a search")
    options = parser.parse_args(arguments)
    known = rows_in([*options.joined, *([options.kept] if options.kept else [])])
    print(f"{'us':32}{'trials':>7}{'best':>10}{'default':>10}{'torch':>10}{'/default':>9}{'(95 %)':>12}{'/torch':>9}")
    found = []
    for shape in ((name, number, options.seed) for name in options.families if name != "packed"
                  for number in range(options.count)):
        one = known.get((drawn(*shape)[0], options.seconds, machine_model(Target("llvm")), get_num_threads()))
        if one is None or options.again:
            one = compared(shape, options.seconds) if one is None else again(shape, one)
            keep_row(options.kept, one)
        found.append(one)
        print(one, flush=True)
    if found:
        print(summary(found))
    if "packed" in options.families:
        against_packed(options.seconds, options.seed)


if __name__ == "__main__":
    main()
