"""Makes shared libraries of objects, with the first linker that is there: ld, cc, or the LLD inside of the package ziglang.

A library says which of libc, libm and libpthread it needs, without versions of symbols: it is linked against empty libraries of
these names, so no headers or libraries for development are needed, and it loads with old and new ones alike.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from tedsl.codegen.llvm.linking.elf import undefined_symbols
from tedsl.codegen.llvm.machine import llvm_lock, loaded_llvm, target_machine
from tedsl.errors import ModuleError
from tedsl.runtime.symbols import LIBM, PROCESS
from tedsl.target import Target
from tedsl.target.current import host_target

LINKERS = ("ld", "cc", "ziglang")
# Code stays where it is once it is loaded: threads of its pool wait in it.
_OPTIONS = ("-z", "now", "-z", "relro", "-z", "noexecstack", "-z", "nodelete", "-z", "noseparate-code",
            "--hash-style=gnu", "--build-id=none")
# What libraries take from the C library: all of it is in glibc 2.17.
LIBC = PROCESS | {"snprintf", "getenv", "strtoll", "__register_atfork", "pthread_atfork"}
_SECONDS = 120.0  # for the linker


def shared_library(objects: Sequence[bytes], exports: Sequence[str], target: Target, name: str, linker: str = "") -> bytes:
    """Returns the shared library `name` of `objects`, which shows the symbols `exports` and no others.

    linker: one of LINKERS; "": the first that is there. Raises ModuleError if there is none, or if it fails, and for platforms
    whose objects are not ELF.
    """
    if not all(image.startswith(b"\x7fELF") for image in objects):
        raise ModuleError(f"export_library: shared libraries are made where objects are ELF, not for {target.triple}",
                          hint="export a .o file and link it there, or pass fcompile=")
    if linker not in ("", *LINKERS):
        raise ModuleError(f"export_library: there is no linker {linker!r}", hint=f"choose one of {', '.join(LINKERS)}")
    command = _command(target, linker)
    with tempfile.TemporaryDirectory(prefix="tedsl-") as folder:
        room = Path(folder)
        files = [_written(room / f"{k}.o", image) for k, image in enumerate(objects)]
        visible = "{ global: " + " ".join(f"{symbol};" for symbol in exports) + " local: *; };\n"
        script = _written(room / "exports.map", visible.encode())
        needed = [_empty_library(room, soname, symbols, target, command)
                  for soname, symbols in _needed_libraries(objects, target).items()]
        out = room / "out.so"
        _run(command(["-shared", "-soname", name, *_OPTIONS, "--version-script", script, "-o", str(out), *files, *needed]))
        return out.read_bytes()


def _written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


# --- the linker ---------------------------------------------------------------------------------------------------------

Command = Callable[[list[str]], list[str]]  # from the options of ld to the command


def _command(target: Target, linker: str) -> Command:
    tried = []
    for name, make in _linkers(target):
        tried.append(name)
        if not linker or linker in (name, name.split(" ")[0]):
            command = make()
            if command is not None:
                return command
    known = [name for name in tried if not linker or linker == name] or [linker]
    raise ModuleError(f"export_library: there is no linker for {target.triple}: looked for {', '.join(known)}",
                      hint="install one (apt install binutils, or pip install ziglang), pass fcompile=, or export a .tedsl, .o "
                           "or .tar file, which need none")


def _linkers(target: Target) -> Iterator[tuple[str, Callable[[], Command | None]]]:
    """Lists the linkers for `target` by name, in the order in which they are tried."""
    cross = "" if target.platform == host_target().platform else "-".join(_debian_triple(target.triple)) + "-"
    if target.architecture == "arm":  # its 64-bit division is in libgcc, which the compiler finds
        yield "cc", lambda: _program(f"{cross}gcc" if cross else "cc", ("-nostdlib",), through_cc=True, behind=("-lgcc",))
        return
    yield "ld", lambda: _program(f"{cross}ld", ())
    yield "cc", lambda: _program(f"{cross}gcc" if cross else "cc", ("-nostdlib",), through_cc=True)
    yield "ziglang", _ziglang


def _debian_triple(triple: str) -> tuple[str, ...]:
    parts = triple.split("-")
    machine = "arm" if parts[0].startswith("arm") else parts[0]
    return (machine, "linux", parts[-1] if parts[-1].startswith(("gnu", "musl")) else "gnu")


def _program(name: str, options: Sequence[str], *, through_cc: bool = False,
             behind: Sequence[str] = ()) -> Command | None:
    found = shutil.which(name)
    if found is None:
        return None
    if not through_cc:
        return lambda arguments: [found, *options, *arguments]
    return lambda arguments: [found, *options, *_through_cc(arguments), *behind]


def _through_cc(arguments: list[str]) -> Iterator[str]:
    """Lists the options of ld as a compiler takes them."""
    rest = iter(arguments)
    for argument in rest:
        if argument in ("-soname", "--version-script", "-z"):
            yield f"-Wl,{argument},{next(rest)}"
        else:
            yield f"-Wl,{argument}" if argument.startswith("--") else argument


def _ziglang() -> Command | None:
    if find_spec("ziglang") is None:
        return None
    return lambda arguments: [sys.executable, "-m", "ziglang", "ld.lld", *arguments]


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModuleError(f"export_library: {command[0]} could not be run: {error}") from error
    if done.returncode:
        raise ModuleError(f"export_library: {command[0]} failed: {done.stderr.strip() or done.stdout.strip()}",
                          hint='choose another linker: export_library(path, linker="cc")')


# --- what the library needs -----------------------------------------------------------------------------------------------

def _needed_libraries(objects: Sequence[bytes], target: Target) -> dict[str, list[str]]:
    """Returns the libraries of the C library that hold undefined symbols of `objects`, with these."""
    libraries: dict[str, list[str]] = {}
    if "linux" not in target.triple or "musl" in target.triple or "android" in target.triple:
        return libraries
    for symbol in dict.fromkeys(symbol for image in objects for symbol in undefined_symbols(image)):
        if symbol in LIBM:
            libraries.setdefault("libm.so.6", []).append(symbol)
        elif symbol.startswith("pthread_") and symbol != "pthread_atfork":
            libraries.setdefault("libpthread.so.0", []).append(symbol)
        elif symbol in LIBC:
            libraries.setdefault("libc.so.6", []).append(symbol)
    return libraries


def _empty_library(room: Path, soname: str, symbols: Sequence[str], target: Target, command: Command) -> str:
    """Links a library that defines `symbols` as functions without content, and returns its path."""
    functions = [f"define void @{symbol}() {{\n  ret void\n}}" for symbol in symbols]
    text = "\n".join([f'target triple = "{target.triple}"', *functions])
    with llvm_lock:
        module = loaded_llvm().parse_assembly(text)
        image = bytes(target_machine(target, 0).emit_object(module))
    source, out = _written(room / f"{soname}.o", image), room / soname
    _run(command(["-shared", "-soname", soname, "--hash-style=gnu", "-o", str(out), source]))
    return str(out)
