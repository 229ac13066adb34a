"""`python -m benchmarks.start [--only TEXT] [--rounds N] [--installed]`: the time until a program has its kernel.

Each program in processes of its own: one that finds an empty cache, then others that find its kernel in the cache, the last of
them with the modules loaded that such a build loads. For each the milliseconds of importing numpy, of importing tedsl (and
topi) beyond that, of writing the program, of scheduling it, and of `build`; of the best round, the last row of the median
round. Beside it: `lower`, in a process that does no more. Times are those of the thread that works.

--installed: tedsl as users have it, from a wheel that is built and unpacked for this. In a checkout each process looks at the
times of all files of the source, of an installed wheel at those of its RECORD.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = ("numpy", "tedsl", "write", "schedule", "build")


def vector_add() -> tuple[Any, Callable[[], Any]]:
    from tedsl import te

    A, B = te.placeholder((1024,), name="A"), te.placeholder((1024,), name="B")
    C = te.compute((1024,), lambda i: A[i] + B[i], name="C")
    return [A, B, C], lambda: te.create_schedule(C.op)


def softmax() -> tuple[Any, Callable[[], Any]]:
    import topi
    from tedsl import te

    x = te.placeholder((512, 512), name="x")
    y = topi.nn.softmax(x)
    return [x, y], lambda: topi.schedules.schedule(y)


def network(name: str) -> tuple[Any, Callable[[], Any]]:
    import topi
    from benchmarks.networks import NETWORKS, Declared

    net = Declared(1)
    out = NETWORKS[name](net)
    return [*net.inputs, out], lambda: topi.schedules.schedule(out)


PROGRAMS: dict[str, Callable[[], tuple[Any, Callable[[], Any]]]] = {
    "vector add": vector_add, "softmax 512x512": softmax, "ResNet-18": lambda: network("ResNet-18"),
    "ResNet-50": lambda: network("ResNet-50")}


def measure(name: str, what: str, cache: str, modules: Sequence[str] = ()) -> tuple[dict[str, float], list[str]]:
    """The seconds of each part of a start in this process, which has imported nothing yet, with the cache in the folder
    `cache`, and the modules that the last part loaded. what: "build" or "lower". modules: what is loaded before it.
    """
    os.environ["TEDSL_CACHE_DIR"] = cache
    clock = time.thread_time
    times, seconds = [clock()], {}

    def done(part: str) -> None:
        times.append(clock())
        seconds[part] = times[-1] - times[-2]

    import_module("numpy")

    done("numpy")
    import tedsl
    import_module("topi")

    if name in ("ResNet-18", "ResNet-50"):
        import_module("benchmarks.networks")
    done("tedsl")
    arguments, scheduled = PROGRAMS[name]()
    done("write")
    schedule = scheduled()
    for module in modules:
        import_module(module)
    before = set(sys.modules)
    times.append(clock())
    seconds["schedule"] = times[-1] - times[-2] if not modules else 0.0
    getattr(tedsl, what)(schedule, arguments)
    done(what)
    return seconds, [module for module in sys.modules if module not in before and module.partition(".")[0] != "__main__"]


def in_a_process(place: str, name: str, what: str, cache: str,
                 modules: Sequence[str] = ()) -> tuple[dict[str, float], list[str]]:
    """What `measure` returns in a fresh process with the cache in the folder `cache`, and tedsl in the folder `place`."""
    command = [sys.executable, "-m", "benchmarks.start", "--child", name, what, cache, json.dumps(modules)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=place,
                         env={**os.environ, "PYTHONPATH": place})
    seconds, loaded = json.loads(run.stdout.splitlines()[-1])
    return seconds, loaded


def installed_in(folder: str) -> str:
    """Builds a wheel of this checkout and unpacks it in a folder, with these benchmarks beside it. Returns the folder."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    wheels = os.path.join(folder, "wheels")
    place = os.path.join(folder, "place")
    subprocess.run([*pip, "wheel", "--no-deps", "-w", wheels, REPOSITORY], check=True)
    subprocess.run([*pip, "install", "--no-deps", "--target", place, *(file.path for file in os.scandir(wheels))], check=True)
    shutil.copytree(os.path.join(REPOSITORY, "benchmarks"), os.path.join(place, "benchmarks"))
    return place


def least(samples: list[dict[str, float]]) -> dict[str, float]:
    """The sample whose sum is the least."""
    return min(samples, key=lambda sample: sum(sample.values()))


def rows_of(name: str, rounds: int, place: str) -> list[tuple[str, dict[str, float]]]:
    """The rows of the table for one program: with an empty cache, and with its kernel there."""
    cold: list[dict[str, float]] = []
    warm: list[dict[str, float]] = []
    loaded: list[dict[str, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(in_a_process(place, name, "build", cache)[0])
            for _ in range(2):
                seconds, modules = in_a_process(place, name, "build", cache)
                warm.append(seconds)
                loaded.append(in_a_process(place, name, "build", cache, modules)[0])
    lowered = least([in_a_process(place, name, "lower", "off")[0] for _ in range(rounds)])["lower"]
    median = sorted(loaded, key=lambda sample: sample["build"])[len(loaded) // 2]
    return [(f"{name}, nothing kept", {**least(cold), "lower": lowered}), (f"{name}, kept", least(warm)),
            (f"{name}, modules loaded (median)", median)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose name contains this: " + ", ".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=3, help="cold starts of each program, and twice as many warm ones")
    parser.add_argument("--installed", action="store_true", help="measure a wheel that is built of this checkout")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        *which, modules = options.child
        print(json.dumps(measure(*which, json.loads(modules))))
        return
    print(f"{'ms':36s}" + "".join(f"{part:>10s}" for part in (*PARTS, "sum")) + f"{'(lower)':>10s}")
    with tempfile.TemporaryDirectory() as folder:
        place = installed_in(folder) if options.installed else REPOSITORY
        for name in PROGRAMS:
            if options.only in name:
                print_rows(rows_of(name, options.rounds, place))


def print_rows(rows: Sequence[tuple[str, dict[str, float]]]) -> None:
    for title, seconds in rows:
        values = [*[seconds[part] for part in PARTS], sum(seconds[part] for part in PARTS)]
        beside = f"{1e3 * seconds['lower']:10.2f}" if "lower" in seconds else ""
        print(f"{title:36s}" + "".join(f"{1e3 * value:10.2f}" for value in values) + beside, flush=True)


if __name__ == "__main__":
    main()
