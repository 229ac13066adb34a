"""The cases of some suites, measured in this process with one number of threads."""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import platform
import traceback
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks import limits
from benchmarks.report.table import HEADER, line, summary, worst
from benchmarks.run import Result, measured
from benchmarks.suites.table import SUITES, Suite

LIBRARIES = ("numpy", "torch", "onnxruntime", "numba", "llvmlite")


def run_cases(threads: int, options: argparse.Namespace) -> None:
    """Measures and prints the chosen cases, and writes them to the file `options.json`."""
    rates = machine_rates(threads)
    print(f"\n{processor()}, {threads} thread{'s' * (threads > 1)}: {rates['FMA'] / 1e9:.0f} GFLOP/s; GB/s: " + ", ".join(
        f"{name} {rate / 1e9:.1f}" for name, rate in rates.items() if name != "FMA"))
    print(HEADER, flush=True)
    results: list[Result] = []
    problems: dict[str, str] = {}
    for name in options.suite or [name for name, suite in SUITES.items() if suite.by_default]:
        results += _suite(name, SUITES[name], threads, options, problems)
    if len(results) > 1:
        print("", *summary(results), *worst(results), sep="\n")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"processor": processor(), "threads": threads, "limits": rates, "caches": limits.cache_sizes(),
             "versions": versions(), "problems": problems, "results": [result.as_json() for result in results]}))


def _suite(name: str, suite: Suite, threads: int, options: argparse.Namespace, problems: dict[str, str]) -> list[Result]:
    part, parts = map(int, options.part.split("/"))
    results = []
    chosen = [made for made in suite.cases(threads, options.count, options.seed) if options.only in made.name]
    for made in chosen[part - 1::parts]:
        try:
            results.append(measured(made(), name, threads, rounds=options.rounds))
            print(line(results[-1]), flush=True)
        except Exception as error:
            problems[made.name] = "".join(traceback.format_exception_only(error)).strip()
            print(f"{made.name:40s} failed: {problems[made.name][:200]}", flush=True)
        gc.collect()
    return results


def machine_rates(threads: int) -> dict[str, float]:
    """What the machine can do, by name: operations and bytes per second."""
    return {"FMA": limits.fma_probe(threads).rate()} | limits.bandwidths(threads)


def processor() -> str:
    """The name of the processor."""
    for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if pathlib.Path("/proc/cpuinfo").exists() else ():
        if text.lower().startswith(("model name", "hardware")):
            return text.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, Any]:
    """The versions of the libraries that are measured."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
