"""`python -m benchmarks [--suite NAME ...] [--only TEXT] [--threads N ...]`: ours beside other libraries and the limits.

Each ratio comes from one run. Each thread count runs in a process of its own, in which every library is told to use that many.
A line has the median of our best form, the time of the best contender over it, the part of the limit of the machine that
binds (FMA: multiply-adds; read, copy, ...: memory), the goal, and the other times; ~ marks what scattered by more than 10 %
three times in a row.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks.report.joining import joined, print_session, scaling
from benchmarks.suites.table import SUITES

THREAD_VARIABLES = ("TEDSL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# With these a machine's owner has OpenBLAS take the kernels of another processor; here each library is in its best form.
OVERRIDES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
# The binary logarithm of the cycles for which OpenBLAS's threads spin after a call. Of its 2^28 (100 ms) the next contenders
# would have one processor less; 0.4 ms last from one of its own calls to the next.
SPINNING = {"OPENBLAS_THREAD_TIMEOUT": "20"}


def main() -> None:
    options = parsed()
    if options.list:
        for name, suite in SUITES.items():
            print(f"{name:14s} {suite.title}")
        return
    if options.child is not None:
        from benchmarks.session import run_cases

        run_cases(options.child, options)
        return
    if options.join:
        sessions = joined([json.loads(pathlib.Path(file).read_text()) for file in options.join])
        for session in sessions:
            print_session(session)
        print(*scaling(sessions), sep="\n")
        write(sessions, options)
        return
    sessions = []
    with tempfile.TemporaryDirectory() as folder:
        for threads in dict.fromkeys(options.threads):
            file = pathlib.Path(folder, f"{threads}.json")
            arguments = [sys.executable, "-m", "benchmarks", *sys.argv[1:], "--child", str(threads), "--json", str(file)]
            subprocess.run(arguments, env=environment(threads), check=True)
            sessions.append(json.loads(file.read_text()))
    print(*scaling(sessions), sep="\n")
    write(sessions, options)
    sys.exit(any(result["wrong"] for session in sessions for result in session["results"]))


def environment(threads: int) -> dict[str, str]:
    """The variables of a process in which every library has `threads` threads, which rest soon after its calls, and chooses its
    kernels itself.
    """
    kept = {name: value for name, value in os.environ.items() if name not in OVERRIDES}
    return kept | SPINNING | {name: str(threads) for name in THREAD_VARIABLES}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", nargs="*", default=[], metavar="NAME", choices=(*SUITES, []),
                        help="suites, by default all but `random`: " + ", ".join(SUITES))
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, os.cpu_count() or 1])
    parser.add_argument("--rounds", type=int, default=9, help="samples of each contender")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th case from the K-th on, to measure in several sittings")
    parser.add_argument("--count", type=int, default=300, help="of shapes in the suite `random`")
    parser.add_argument("--seed", type=int, default=0, help="of the suite `random`")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--html", metavar="FILE", help="write a page with a roofline and a bar for each case")
    parser.add_argument("--roofline", metavar="FILE", help="write the roofline of the first session as SVG")
    parser.add_argument("--join", nargs="+", metavar="FILE", help="measure nothing: join what --json wrote")
    parser.add_argument("--list", action="store_true", help="list the suites")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def write(sessions: list[dict[str, object]], options: argparse.Namespace) -> None:
    """The files that were asked for."""
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"sessions": sessions}, indent=1))
    if options.html:
        from benchmarks.report.page import page

        pathlib.Path(options.html).write_text(page(sessions))
    if options.roofline:
        from benchmarks.report.picture import roofline

        pathlib.Path(options.roofline).write_text(roofline(sessions[0]) + "\n")


if __name__ == "__main__":
    main()
