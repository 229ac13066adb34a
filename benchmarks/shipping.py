"""`python -m benchmarks.shipping [--rounds N]`: the table of `docs/shipping.md`: kernels in files of each format.

The sum of two arrays of eight floats. For each format the bytes of its file, the milliseconds of writing it, of loading it in a
fresh process until a call has returned, with all modules imported that this needs, and of the same with the imports (of numpy,
and of tedsl where that loads the file), and the nanoseconds of a call with arrays that are there: from Python, from C with the
checks of arguments, from C without. Processes that load find what tedsl asked LLVM about the machine in its cache, as all but
the first do. Times are the least of all rounds, those of loading are times of the processor.
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
import timeit
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tedsl
from tedsl import te

ROOT = Path(__file__).parent.parent
CALLS = 20_000
COLUMNS = ("bytes", "write", "load", "imports", "python", "checked", "raw")
DIGITS = {"write": 1, "load": 1, "imports": 1}
TITLES = ("bytes", "write ms", "load ms", "+imports", "call ns", "in C", "in C, raw")

CALL = f"""
small, result = np.ones(8, "float32"), np.zeros(8, "float32")
add(small, small, result)
loaded = time.thread_time()
needed = [name for name in sys.modules if name not in before and name.partition(".")[0] not in ("kernels", "__mp_main__")]
assert result.tolist() == [2] * 8
call = min(timeit.repeat("add(small, small, result)", number={CALLS}, repeat=5, globals=globals())) / {CALLS}
print(json.dumps({{"load": (loaded - imported) * 1e3, "imports": (loaded - begin) * 1e3, "python": call * 1e9}}))
print(json.dumps(needed))
"""
IMPORTS = """
import importlib, json, sys, time, timeit
begin = time.thread_time()
import numpy as np
for name in sys.argv[2:]:
    importlib.import_module(name)
before = set(sys.modules)
"""
LOADED = f"""{IMPORTS}
import tedsl
imported = time.thread_time()
add = tedsl.runtime.load_module(sys.argv[1])["add"]
{CALL}"""
WHEEL = f"""{IMPORTS}
imported = time.thread_time()
from kernels import add
{CALL}"""
IN_C = r"""
#include <stdio.h>
#include <time.h>
#include "kernels.h"

static double seconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

int main(void) {
    float a[8] = {0}, b[8] = {0}, c[8] = {0};
    int64_t shape[1] = {8};
    DLTensor tensors[3] = {{a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0},
                           {b, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0},
                           {c, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}};
    const DLTensor *args[3] = {&tensors[0], &tensors[1], &tensors[2]};
    char message[200];
    int32_t failed = 0;
    double begin = seconds();
    for (int i = 0; i < 1000000; i++) failed |= kernels_add(args, 3, message, sizeof message);
    double checked = seconds();
    for (int i = 0; i < 1000000; i++) failed |= kernels_add_raw(a, b, c);
    printf("{\"checked\": %f, \"raw\": %f}\n", (checked - begin) * 1e3, (seconds() - checked) * 1e3);
    return (int)failed;
}
"""


def module() -> Any:
    """The sum of two arrays of eight floats."""
    a, b = te.placeholder((8,), name="a"), te.placeholder((8,), name="b")
    c = te.compute((8,), lambda i: a[i] + b[i], name="c")
    return tedsl.build(te.create_schedule(c.op), [a, b, c], name="add")


def loaded(program: str, file: Path, path: Path, cache: str) -> dict[str, float]:
    """The times of `program`, which loads `file`, in fresh processes that find packages in `path`."""
    whole, modules = in_a_process(program, [str(file)], path, cache)
    ready, _ = in_a_process(program, [str(file), *modules], path, cache)
    return {**ready, "imports": whole["imports"]}


def in_a_process(program: str, arguments: list[str], path: Path, cache: str) -> tuple[dict[str, float], list[str]]:
    """What `program` prints, its times and the modules that it needed, in a fresh process that finds packages in `path`."""
    environment = {**os.environ, "PYTHONPATH": str(path), "TEDSL_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    run = subprocess.run([sys.executable, "-c", program, *arguments], check=True, stdout=subprocess.PIPE, text=True,
                         env=environment)
    times, modules = map(json.loads, run.stdout.splitlines())
    return times, modules


def written(kernels: Any, path: Path) -> dict[str, float]:
    """The milliseconds of writing `path`, which for a wheel becomes the name with its tags, and its bytes."""
    begin = time.perf_counter()
    kernels.export_library(path)
    milliseconds = (time.perf_counter() - begin) * 1e3
    file = path if path.exists() else next(path.parent.glob(f"{path.stem}-*.whl"))
    return {"write": milliseconds, "bytes": file.stat().st_size}


def in_c(folder: Path) -> dict[str, float]:
    """The nanoseconds of a call from C; nothing where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    (folder / "main.c").write_text(IN_C)
    subprocess.run([compiler, "-D_POSIX_C_SOURCE=200809L", "-std=c99", "-O2", "main.c", "libkernels.so", "-o", "main",
                    "-Wl,-rpath,$ORIGIN"], cwd=folder, check=True)
    run = subprocess.run([folder / "main"], check=True, stdout=subprocess.PIPE, text=True)
    said: dict[str, float] = json.loads(run.stdout)
    return said


def measured(folder: Path) -> dict[str, dict[str, float]]:
    """One round: the columns of each format."""
    kernels, cache = module(), str(folder / "cache")
    files = {".tedsl": "kernels.tedsl", ".so": "libkernels.so", ".o": "kernels.o", ".tar": "kernels.tar", ".h": "kernels.h",
             ".whl": "kernels-1.0.whl"}
    rows = {suffix: written(kernels, folder / name) for suffix, name in files.items()}
    for suffix in (".tedsl", ".so"):
        rows[suffix] |= loaded(LOADED, folder / files[suffix], ROOT, cache)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")  # as pip does it
    rows[".whl"] |= loaded(WHEEL, folder, folder / "site", "off")
    rows[".so"] |= in_c(folder)
    names = {"add": kernels["add"], "small": np.ones(8, "float32"), "result": np.zeros(8, "float32")}
    call = min(timeit.repeat("add(small, small, result)", number=CALLS, repeat=5, globals=names)) / CALLS
    return {"its process": {"python": call * 1e9}, **rows}


def least(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """For each format the least of each column."""
    return {row: {name: min(one[row][name] for one in rounds if name in one[row]) for name in columns}
            for row, columns in rounds[0].items()}


def table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """The rows as text; empty where nothing was measured."""
    lines = [f"{'':12s}" + "".join(f"{title:>11s}" for title in TITLES)]
    for name, columns in rows.items():
        cells = [f"{columns[column]:11.{DIGITS.get(column, 0)}f}" if column in columns else " " * 11 for column in COLUMNS]
        lines.append(f"{name:12s}" + "".join(cells).rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shipping", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            place = Path(folder, str(number))
            place.mkdir()
            (place / "cache").symlink_to(Path(folder), target_is_directory=True)
            rounds.append(measured(place))
    print(table(least(rounds)))


if __name__ == "__main__":
    main()
