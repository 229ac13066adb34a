"""`python -m benchmarks.tuning [--seconds 60] [--families matmul ...] [--count 1] [--seed 0] [--kept FILE]`: what a search for
schedules gains.

For random shapes of each family: the time of the best schedule that `tedsl.auto_scheduler` finds in the given seconds, of
topi's default schedule, and of torch, where it is installed; and how many times slower these are than the best.
With `--kept FILE` each row is kept there as a line of JSON, and rows that are there for these seconds are not measured again,
so that a table of many shapes is made in parts; the means are over all rows of the table.
`--families packed` is a product of 1024 from the plain formula beside the packed schedule that `benchmarks/matmul.py` writes by
hand. Kernels take turns; torch is measured after them, since its threads and those of tedsl, which spin for a while after a
call, would take the processors from each other. Times are medians.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tedsl
from benchmarks.contenders.with_torch import torch_or_none
from benchmarks.matmul import packed_matmul
from benchmarks.measure import samples_of
from benchmarks.tuned_programs import FAMILIES, Case, drawn, plain_product
from tedsl import auto_scheduler, te
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.target import Target
from tedsl.tune.records.history import journal_of

REST = 0.1  # seconds after which the threads of tedsl sleep
ROUNDS = 60  # samples of each: the medians of fewer follow the noise of a shared machine
BELOW = 0.98  # of the default's speed: medians differ by 2 % from run to run
OTHERS = ("default", "torch")
def searched(args: list[Any], seconds: float, seed: int) -> tuple[Any, int]:
    """The module of the best schedule, and the number of trials."""
    trials: list[Any] = []
    best = auto_scheduler.search(args, seconds, seed=seed, on_trial=trials.append)
    journal = journal_of(best)
    sch = te.create_schedule([arg.op for arg in args if not isinstance(arg.op, te.PlaceholderOp)])
    if journal is not None:
        sch.replay(journal)
    return tedsl.build(sch, args), len(trials)


def arrays_of(args: list[Any]) -> list[Any]:
    made = np.random.default_rng(0)
    return [made.random([int(extent) for extent in arg.shape], "float32") for arg in args]


def compared(case: Case, seconds: float, seed: int, torch: Any) -> dict[str, float]:
    """Prints a row; returns how many times slower the default, and torch where it is there, are than the best."""
    name, args, of_torch = case
    best, trials = searched(args, seconds, seed)
    default = tedsl.build(Problem(args, Target("llvm")).default.schedule, args)
    arrays = arrays_of(args)
    found = samples_of({"best": lambda: best(*arrays), "default": lambda: default(*arrays)}, rounds=ROUNDS)
    if torch is not None and of_torch is not None:
        tensors = [torch.from_numpy(array) for array, arg in zip(arrays, args) if isinstance(arg.op, te.PlaceholderOp)]
        time.sleep(REST)
        found |= samples_of({"torch": lambda: of_torch(torch, tensors)}, rounds=ROUNDS)
    medians = {who: statistics.median(seen) for who, seen in found.items()}
    ratios = {who: medians[who] / medians["best"] for who in medians if who != "best"}
    print(row(name, trials, medians, ratios), flush=True)
    return ratios


def kept_rows(path: Path | None) -> dict[tuple[str, float], dict[str, float]]:
    """The ratios in a file of rows by the name of the case and the seconds of its search; a line cut short is left out."""
    found: dict[tuple[str, float], dict[str, float]] = {}
    for line in path.read_text().splitlines() if path is not None and path.exists() else ():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        found[one["case"], one["seconds"]] = one["ratios"]
    return found


def keep_row(path: Path | None, case: str, seconds: float, ratios: Mapping[str, float]) -> None:
    """Adds a row to the file."""
    if path is not None:
        with path.open("a") as file:
            file.write("\n" + json.dumps({"case": case, "seconds": seconds, "ratios": ratios}) + "\n")  # after a torn line, too


def row(name: str, trials: int, medians: Mapping[str, float], ratios: Mapping[str, float]) -> str:
    """A line of the table."""
    times = "".join(f"{medians[who] * 1e6:10.1f}" if who in medians else f"{'-':>10}" for who in ("best", *OTHERS))
    return f"{name:32}{trials:7}{times}" + "".join(f"{ratios[who]:9.2f}" for who in OTHERS if who in ratios)


def against_packed(seconds: float, seed: int) -> None:
    """The plain product of 1024 beside the schedule that packs, written by hand."""
    best, trials = searched(plain_product(1024, 1024, 1024), seconds, seed)
    sch, args = packed_matmul(1024)
    packed, arrays = tedsl.build(sch, args), arrays_of(args)
    found = samples_of({"best": lambda: best(*arrays), "packed": lambda: packed(*arrays)}, rounds=ROUNDS)
    mine, by_hand = statistics.median(found["best"]), statistics.median(found["packed"])
    print(f"matmul 1024 after {trials} trials: {mine * 1e3:.2f} ms, packed by hand {by_hand * 1e3:.2f} ms: "
          f"{by_hand / mine:.2f} of its speed", flush=True)


def geomean(numbers: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What searching for schedules gains.")
    parser.add_argument("--seconds", type=float, default=60, help="of each search")
    parser.add_argument("--families", nargs="*", default=[*FAMILIES, "packed"], choices=[*FAMILIES, "packed"])
    parser.add_argument("--count", type=int, default=1, help="shapes of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="file of rows, with which a table is gone on with")
    options = parser.parse_args(arguments)
    torch, kept = torch_or_none(Target("llvm").machine.cores), kept_rows(options.kept)
    print(f"{'us':32}{'trials':>7}{'best':>10}{'default':>10}{'torch':>10}{'/default':>9}{'/torch':>9}")
    found = []
    for case in (drawn(name, number, options.seed) for name in options.families if name != "packed"
                 for number in range(options.count)):
        if (case[0], options.seconds) in kept:
            found.append(kept[case[0], options.seconds])
            print(f"{case[0]:32}   kept" + " " * 30 + "".join(f"{found[-1][who]:9.2f}" for who in OTHERS if who in found[-1]))
        else:
            found.append(compared(case, options.seconds, options.seed, torch))
            keep_row(options.kept, case[0], options.seconds, found[-1])
    if found:
        print(f"below the default: {sum(one['default'] < BELOW for one in found)} of {len(found)} shapes")
        print("geomean: " + ", ".join(f"{geomean([one[who] for one in found if who in one]):.2f} of {who}" for who in OTHERS
                                      if any(who in one for one in found)))
    if "packed" in options.families:
        against_packed(options.seconds, options.seed)


if __name__ == "__main__":
    main()
