"""`python -m benchmarks.start [--only TEXT] [--rounds N] [--installed]`: how long a program takes until its kernel has run.

Each program in processes of its own: one that finds an empty cache, then others that find its kernel in the cache, the last of
them with the modules loaded that such a build and call load. For each the milliseconds of importing numpy, of importing tedsl
(and topi) beyond that, of writing the program, of scheduling it, of `build`, and of the first call with arrays that are there;
of the best round, the last row of the median round. "load" is the sum of the last two: of a kept kernel, what it takes until
it has run. Beside it: `lower`, in a process that does no more. Times are those of the thread that works.

--installed: the checkout is installed in a fresh environment first, with its dependencies, as pip does it. A checkout looks at
all files of the compiler before it takes a kernel from the cache, since they may have been edited; an installation at one.
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
from pathlib import Path
from typing import Any

PARTS = ("numpy", "tedsl", "write", "schedule", "build", "call")
ROOT = Path(__file__).parent.parent
SOURCES = ("tedsl", "topi", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")
CHILD = "import sys; sys.path.insert({place}, {root!r}); from benchmarks.start import child; child(sys.argv[1:])"


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
    `cache`, and the modules that the last parts loaded. what: "build", which a call follows, or "lower". modules: what is
    loaded before it.
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
    scheduled_in = clock() - times[-1]
    for module in modules:
        import_module(module)
    before = set(sys.modules)
    arrays = arrays_for(arguments)
    times.append(clock())
    seconds["schedule"] = scheduled_in
    result = getattr(tedsl, what)(schedule, arguments)
    done(what)
    if what == "build":
        result(*arrays)
        done("call")
    return seconds, [module for module in sys.modules if module not in before and module.partition(".")[0] != "__main__"]


def arrays_for(arguments: Sequence[Any]) -> list[Any]:
    """Arrays of numpy of ones for the tensors of a program."""
    numpy = import_module("numpy")
    return [numpy.ones([int(extent) for extent in tensor.shape], str(tensor.dtype)) for tensor in arguments]


def child(arguments: list[str]) -> None:
    """Prints what `measure` returns for `arguments`: the name of the program, what is done, the folder, modules as JSON."""
    name, what, cache, modules = arguments
    print(json.dumps(measure(name, what, cache, json.loads(modules))))


def in_a_process(python: str, name: str, what: str, cache: str,
                 modules: Sequence[str] = ()) -> tuple[dict[str, float], list[str]]:
    """What `measure` returns in a fresh process of `python` with the cache in the folder `cache`. Of tedsl, another Python
    than that of this process takes what is installed there; this one takes the checkout.
    """
    program = CHILD.format(place=0 if python == sys.executable else 99, root=str(ROOT))
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    with tempfile.TemporaryDirectory() as empty:
        run = subprocess.run([python, "-c", program, name, what, cache, json.dumps(modules)], check=True,
                             stdout=subprocess.PIPE, text=True, cwd=empty, env=environment)
    seconds, loaded = json.loads(run.stdout.splitlines()[-1])
    return seconds, loaded


def installed(folder: str) -> str:
    """The Python of an environment in `folder` where the checkout is installed, with what it depends on."""
    source = Path(folder) / "source"  # a copy: setuptools leaves files where it builds, and takes those of earlier builds
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", f"{folder}/environment"], check=True)
    python = f"{folder}/environment/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(source)], check=True)
    return python


def least(samples: list[dict[str, float]]) -> dict[str, float]:
    """The sample whose sum is the least."""
    return min(samples, key=lambda sample: sum(sample.values()))


def rows_of(python: str, name: str, rounds: int) -> list[tuple[str, dict[str, float]]]:
    """The rows of the table for one program in processes of `python`: with an empty cache, and with its kernel there."""
    cold: list[dict[str, float]] = []
    warm: list[dict[str, float]] = []
    loaded: list[dict[str, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(in_a_process(python, name, "build", cache)[0])
            for _ in range(2):
                seconds, modules = in_a_process(python, name, "build", cache)
                warm.append(seconds)
                loaded.append(in_a_process(python, name, "build", cache, modules)[0])
    lowered = least([in_a_process(python, name, "lower", "off")[0] for _ in range(rounds)])["lower"]
    median = sorted(loaded, key=load)[len(loaded) // 2]
    return [(f"{name}, nothing kept", {**least(cold), "lower": lowered}), (f"{name}, kept", least(warm)),
            (f"{name}, modules loaded (median)", median)]


def load(seconds: dict[str, float]) -> float:
    """What it took from the schedule until the kernel had run."""
    return seconds["build"] + seconds["call"]


def table(python: str, only: str, rounds: int) -> None:
    """Prints the rows of the programs whose name contains `only`, in processes of `python`."""
    print(f"{'ms':38s}" + "".join(f"{part:>10s}" for part in (*PARTS, "sum", "load", "(lower)")))
    for name in PROGRAMS:
        if only in name:
            for title, seconds in rows_of(python, name, rounds):
                values = [*[seconds[part] for part in PARTS], sum(seconds[part] for part in PARTS), load(seconds)]
                beside = f"{1e3 * seconds['lower']:10.2f}" if "lower" in seconds else ""
                print(f"{title:38s}" + "".join(f"{1e3 * value:10.2f}" for value in values) + beside, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose name contains this: " + ", ".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=3, help="cold starts of each program, and twice as many warm ones")
    parser.add_argument("--installed", action="store_true", help="measure an installation in a fresh environment")
    options = parser.parse_args()
    if not options.installed:
        table(sys.executable, options.only, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        table(installed(folder), options.only, options.rounds)


if __name__ == "__main__":
    main()
