"""Compiles C and C++ of `pragma import_c` with the compiler on the PATH: to LLVM IR with clang, else to an object."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache

from tedsl.errors import LoweringError
from tedsl.target import Target

COMPILERS = ("clang", "cc", "gcc")
SECONDS = 120  # after which a compiler is given up


def compile_c(source: str, target: Target, readable: Callable[[str], bool]) -> str | bytes:
    """Returns LLVM IR or an object with the functions of `source`. readable: tells whether our LLVM can read a given IR
    text.
    """
    clang = shutil.which("clang")
    if clang is not None:
        text = _run(clang, source, ("-S", "-emit-llvm", *_machine(target, clang=True)), "module.ll").decode()
        if readable(text):
            return text
    compiler = next((path for name in COMPILERS if (path := shutil.which(name)) is not None), None)
    if compiler is None:
        raise LoweringError(f"import_c needs a C compiler, and none of {', '.join(COMPILERS)} is on the PATH",
                            hint="install clang or gcc, or import LLVM IR with the pragma import_llvm")
    if not target.runs_here:
        raise LoweringError(f"import_c for target {target}, which is not this machine, needs clang",
                            hint="install clang, or import LLVM IR with the pragma import_llvm")
    return _run(compiler, source, ("-c", *_machine(target, clang=False)), "module.o")


def llvm_text(source: str, options: tuple[str, ...] = (), clang: str | None = None) -> str:
    """Returns the LLVM IR of `source` for this machine. `clang`: the compiler to use instead of the one on the PATH."""
    compiler = shutil.which(clang or "clang")
    if compiler is None:
        raise LoweringError(f"create_llvm needs clang, and {'it' if clang is None else clang} is not on the PATH",
                            hint="install clang, or give the C code itself to the pragma import_c, which takes any compiler")
    return _run(compiler, source, ("-S", "-emit-llvm", *options), "module.ll", "create_llvm").decode()


def _machine(target: Target, *, clang: bool) -> tuple[str, ...]:
    """Returns the compiler options that select the processor of `target`."""
    triple = (f"--target={target.triple}",) if clang and not target.is_host else ()
    if target.is_host:
        return ("-march=native",) if target.architecture == "x86-64" else ("-mcpu=native",)
    if not target.mcpu:
        return triple
    return (*triple, f"-march={target.cpu}" if target.architecture == "x86-64" else f"-mcpu={target.cpu}")


@lru_cache(maxsize=64)
def _run(compiler: str, source: str, options: tuple[str, ...], result: str, asked: str = "import_c") -> bytes:
    language = "c++" if 'extern "C"' in source else "c"
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, result)
        command = [compiler, "-x", language, "-O3", "-fPIC", "-fno-exceptions", "-ffp-contract=off", *options,
                   "-o", output, "-"]
        try:
            done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LoweringError(f"{asked}: {os.path.basename(compiler)} did not run: {error}") from error
        if done.returncode:
            said = done.stderr.replace("<stdin>: ", "").replace("<stdin>:", "line ").strip().splitlines()
            errors = [line for line in said if "error" in line] or said
            first = "\n    ".join(errors[:6])
            raise LoweringError(f"{asked}: {os.path.basename(compiler)} does not compile the code:\n    {first}")
        with open(output, "rb") as file:
            return file.read()
