"""python -m tedsl info: versions, the target of this machine, threads, the cache and environment variables."""

from __future__ import annotations

import argparse
import os
import platform
import textwrap
from importlib import metadata

import numpy

from tedsl.errors import TedslError
from tedsl.runtime.parallel import get_num_threads
from tedsl.shell.cache import summary
from tedsl.target.host import host, llvm_binding
from tedsl.target.target import Target
from tedsl.version import VERSION

VARIABLES = {  # environment variables that tedsl reads
    "TEDSL_NUM_THREADS": "threads of parallel loops",
    "TEDSL_CHECKED": "1: build with checks of every access",
    "TEDSL_CACHE_DIR": "folder of compiled kernels, or off",
    "TEDSL_CACHE_SIZE": "the most that the folder may hold, such as 500M",
    "TEDSL_TRACEBACK": "full: tracebacks of refusals with the frames of tedsl",
    "NO_COLOR": "set: no colours on a terminal",
}
WIDTH = 110


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares no arguments: the command takes none."""


def run(options: argparse.Namespace) -> int:
    """Print one line for each fact."""
    for name, value in facts().items():
        lead = f"{name + ':':20s}"
        print(textwrap.fill(value, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead)))
    return 0


def facts() -> dict[str, str]:
    """The facts about the machine for a bug report, by name, in the order in which they are printed."""
    versions = {
        "tedsl": VERSION,
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "numpy": numpy.__version__,
        "sympy": _installed("sympy"),
    }
    threads = {"threads": f"{get_num_threads()} for parallel loops; {os.cpu_count()} processors"}
    caches = {"cache": summary()}
    variables = {name: f"{os.environ.get(name, 'not set')} ({meaning})" for name, meaning in VARIABLES.items()}
    return versions | _machine() | threads | caches | variables


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _machine() -> dict[str, str]:
    """The version of LLVM and the processor that it detects; if llvmlite is missing, only the reason."""
    try:
        llvm = llvm_binding()
        target = Target("llvm")
        return {
            "llvmlite": _installed("llvmlite"),
            "LLVM": ".".join(map(str, llvm.llvm_version_info)),
            "target": f"{target} ({host().triple}, {target.cpu})",
            "features": ", ".join(sorted(target.features)),
            "vectors": f"{target.vector_bits} bits: {target.vector_lanes('float32')} elements of float32",
            "machine": str(target.machine),
        }
    except TedslError as error:
        return {"LLVM": str(error)}
