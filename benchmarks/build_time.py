"""`python -m benchmarks.build_time [--only TEXT] [--stop SECONDS] [--largest N] [--drawn N]`: how build time grows.

Each family is a kind of program of any size. Its sizes double until one build takes longer than `--stop` seconds. The table
has for each size the seconds of lowering, of the way from there to LLVM IR, and of a whole build, and how the build grew since
the size before: the exponent k of n^k. --drawn: instead, N random programs of growing size, with the exponent that fits all.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import tedsl
from benchmarks.drawn_programs import report
from benchmarks.programs_by_size import FAMILIES, Family, Program
from tedsl.codegen.kernels.kernel import make_kernel
from tedsl.codegen.llvm.emit import emit_module
from tedsl.passes.context import PassContext
from tedsl.target.current import host_target


@dataclass(frozen=True)
class Times:
    """Seconds of the processor."""

    lower: float
    text: float
    whole: float


def measured(program: Callable[[], Program], limit: int) -> Times | None:
    """What `measure` returns, in a process of its own; None if that takes more than `limit` seconds of its processor."""
    receive, send = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        send.send(measure(program))

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    send.close()
    try:
        return receive.recv()  # type: ignore[no-any-return]
    except EOFError:
        return None
    finally:
        child.join()


def measure(program: Callable[[], Program]) -> Times:
    """Lowers a program, writes the machine's loops of it as LLVM IR, and builds another of the same size."""
    sch, args = program()
    target, config = host_target(), PassContext.current().options
    begin = time.process_time()
    lowered = tedsl.lower(sch, args, name="f")
    lower = time.process_time()
    emit_module(make_kernel(lowered["f"], target, config).versions(), target)
    text = time.process_time()
    sch, args = program()
    start = time.process_time()
    tedsl.build(sch, args)
    return Times(lower - begin, text - lower, time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build_time", description=__doc__)
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--stop", type=float, default=5.0, help="no larger size after a build of so many seconds")
    parser.add_argument("--limit", type=int, default=60, help="seconds after which one measurement is given up")
    parser.add_argument("--largest", type=int, default=1 << 20, help="the largest size")
    parser.add_argument("--drawn", type=int, metavar="N", help="N random programs under random schedules instead of families")
    options = parser.parse_args()
    measure(lambda: FAMILIES["nested exps"].make(2))  # LLVM is loaded, and everything imported
    if options.drawn:
        print(report(options.drawn))
        return
    print(f"{'family':32s} {'n':>6s} {'lower':>8s} {'to LLVM':>8s} {'whole':>8s}   grew as")
    for name, family in FAMILIES.items():
        if options.only in name:
            _table(name, family, options)


def _table(name: str, family: Family, options: argparse.Namespace) -> None:
    before, size = 0.0, family.first
    while size <= min(family.largest, options.largest):
        times = measured(lambda size=size: family.make(size), options.limit)  # type: ignore[misc]
        if times is None:
            print(f"{name:32s} {size:6d} more than {options.limit} s", flush=True)
            return
        grew = f"n^{math.log2(times.whole / before):.2f}" if before else ""
        print(f"{name:32s} {size:6d} {times.lower:8.2f} {times.text:8.2f} {times.whole:8.2f}   {grew}", flush=True)
        if times.whole > options.stop or times.lower > options.stop:
            return
        before, size = times.whole, size * 2


if __name__ == "__main__":
    main()
