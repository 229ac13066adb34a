"""Links objects with a C compiler: functions for `fcompile=` of `Module.export_library`, by TVM's names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError, ModuleError

_COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")


def get_cc() -> str | None:
    """Returns the path of the C compiler: that in the environment variables CXX or CC, else the first one found; None if there
    is none.
    """
    named = [os.environ[name] for name in ("CXX", "CC") if os.environ.get(name)]
    return next((found for found in map(shutil.which, [*named, *_COMPILERS]) if found), None)


def create_shared(output: Any, objects: str | Sequence[str], options: Sequence[str] | None = None,
                  cc: str | None = None) -> None:
    """Links `objects` into the shared library `output`. options: additional ones for the compiler `cc`, by default `get_cc()`.

    Raises ModuleError where there is no compiler and where it fails.
    """
    _link("create_shared", output, objects, ["-shared", "-fPIC", *_listed("create_shared", options)], cc)


def create_executable(output: Any, objects: str | Sequence[str], options: Sequence[str] | None = None,
                      cc: str | None = None) -> None:
    """Links `objects`, which may include C sources, into the program `output`. Parameters and errors are those of
    `create_shared`.
    """
    _link("create_executable", output, objects, _listed("create_executable", options), cc)


def get_target_by_dump_machine(compiler: str) -> Callable[[], str | None]:
    """Returns a function that returns the target triple of `compiler`, or None."""
    def get_target_triple() -> str | None:
        found = shutil.which(compiler)
        return None if found is None else _run("get_target_by_dump_machine", [found, "-dumpmachine"]).strip()

    return get_target_triple


class cross_compiler:
    """A function for `fcompile=` that links with `compile_func`, the name of a compiler or a function such as `create_shared`.

    options: passed to every call. output_format: the suffix of the output. get_target_triple: a function that returns the
    triple. add_files: additional files to link.
    """

    def __init__(self, compile_func: str | Callable[..., Any], options: Sequence[str] | None = None,
                 output_format: str | None = None, get_target_triple: Callable[[], str | None] | None = None,
                 add_files: Sequence[str] | None = None) -> None:
        if not isinstance(compile_func, str) and not callable(compile_func):
            raise ArgumentTypeError(f"cross_compiler: compile_func is a compiler's name or a function, not {compile_func!r}",
                                    hint='write cross_compiler("aarch64-linux-gnu-g++")')
        self._compiler = compile_func if isinstance(compile_func, str) else None
        self._function = create_shared if isinstance(compile_func, str) else compile_func
        self._options = _listed("cross_compiler", options)
        self.add_files = list(add_files or [])
        self.output_format = output_format or getattr(self._function, "output_format", "so")
        compiler = self._compiler or get_cc() or "cc"
        self.get_target_triple = get_target_triple or getattr(self._function, "get_target_triple", None) or \
            get_target_by_dump_machine(compiler)

    def __call__(self, outputs: Any, objects: str | Sequence[str], options: Sequence[str] | None = None, **more: Any) -> Any:
        """Links `objects` into `outputs`. options: in addition to those passed to every call."""
        compiler = {} if self._compiler is None else {"cc": self._compiler}
        every = [*self._options, *_listed("cross_compiler", options)]
        return self._function(outputs, objects, options=every, **compiler, **more)


def _listed(what: str, options: Sequence[str] | None) -> list[str]:
    if isinstance(options, str):
        raise ArgumentTypeError(f"{what}: options is a list of str, not {options!r}", hint='write ["-O2"]')
    return list(options or [])


def _link(what: str, output: Any, objects: str | Sequence[str], options: Sequence[str], cc: str | None) -> None:
    compiler = get_cc() if cc is None else shutil.which(cc)
    if compiler is None:
        raise ModuleError(f"{what}: there is no {'C compiler' if cc is None else f'compiler {cc!r}'} here",
                          hint='install one, or export_library("kernels.so") without fcompile, which uses any linker')
    files = [objects] if isinstance(objects, str) else list(objects)
    _run(what, [compiler, "-o", os.fspath(output), *map(os.fspath, files), *options])


def _run(what: str, command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ModuleError(f"{what}: {command[0]} could not be run: {error}") from error
    if done.returncode:
        raise ModuleError(f"{what}: {' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
