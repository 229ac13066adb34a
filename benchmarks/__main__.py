"""`python -m benchmarks [--quick] [--threads N ...] [--only TEXT] [--suite core|topi]`: the table of numbers.

Each ratio comes from one run. Each thread count runs in a process of its own, in which every library is told to use that many.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

THREAD_VARIABLES = ("TEDSL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SUITES = ("core", "topi")
LIMIT = "the limit of the machine"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, os.cpu_count() or 1])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--suite", default="all", choices=("all", *SUITES), help="written by hand, or operators of topi")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        run_cases(options.child, options.quick, options.only, options.suite)
        return
    for threads in dict.fromkeys(options.threads):
        environment = os.environ | {name: str(threads) for name in THREAD_VARIABLES}
        arguments = [sys.executable, "-m", "benchmarks", "--child", str(threads), "--only", options.only,
                     "--suite", options.suite]
        subprocess.run(arguments + ["--quick"] * options.quick, env=environment, check=True)


def run_cases(threads: int, quick: bool, only: str, suite: str) -> None:
    from benchmarks.cases import all_cases, import_seconds
    from benchmarks.limits import fma_probe, read_probe
    from benchmarks.measure import samples_of, share
    from benchmarks.topi_cases import topi_cases

    print(f"\n{threads} thread{'s' * (threads > 1)}: multiply-add limit {fma_probe(threads).rate() / 1e9:.0f} GFLOP/s, "
          f"read limit {read_probe(threads).rate() / 1e9:.1f} GB/s (64 MiB); both are measured again beside each case")
    print(f"{'case':42s} {'tedsl':>10s}  {'of limit':>8s}  others: time, and how many times faster tedsl is")
    suites = {"core": all_cases, "topi": topi_cases}
    for make in [case for name in SUITES if suite in (name, "all") for case in suites[name](threads, quick)]:
        case = make()
        if only not in case.name:
            continue
        probe = {"FMA": fma_probe, "read": read_probe}[case.unit](threads) if case.unit else None
        limit = {} if probe is None else {LIMIT: probe.call}
        samples = samples_of(case.contenders | limit, rounds=7 if quick else 20, settle=0.05 if threads > 1 else 0.0)
        part = "" if probe is None else f"{100 * share(case.work, samples['tedsl'], probe, samples.pop(LIMIT)):6.0f} %"
        times = {name: statistics.median(values) for name, values in samples.items()}
        ours = times.pop("tedsl")
        others = "   ".join(f"{name} {readable(t)} ({t / ours:.2f})" for name, t in times.items())
        print(f"{case.name:42s} {readable(ours):>10s}  {part:>8s}  {others}", flush=True)
    if threads == 1 and only in "import" and suite != "topi":
        print(f"{'import tedsl, beyond numpy':42s} {readable(import_seconds()):>10s}")


def readable(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


if __name__ == "__main__":
    main()
