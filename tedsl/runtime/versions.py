"""What compiled code depends on beside the program and the target: the source of tedsl, its libraries, the layout of arrays.

A version number would not do: in a checkout passes are edited from one run to the next. There the names, sizes and times of
the files that make code stand for the source; of a wheel that was installed, its RECORD does, which holds a digest of each
file. Where they changed after this process began to load them, the code that runs may be older than the files, and there is no
digest.
"""

from __future__ import annotations

import os
import sys
import time
from functools import lru_cache
from typing import NamedTuple

import numpy

from tedsl.cache.store import HOST, current_store
from tedsl.digest import digest
from tedsl.ir.walk.identity import identity
from tedsl.runtime.layout import array_layout
from tedsl.runtime.modules.image import FORMAT
from tedsl.target.host import llvm_library
from tedsl.target.installed import place_of
from tedsl.target.target import Target
from tedsl.version import IMPORTED, VERSION

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPILER = frozenset(("arith", "cache", "codegen", "ir", "lang", "lower", "passes", "runtime", "schedule", "target"))
_RECORD = "record"
_SLACK = 0.1  # seconds by which clocks of file systems lag


def versions() -> str | None:
    """Returns the digest of everything on this machine that compiled code depends on; None if that cannot be told.

    The source is looked at again by builds that are FRESH seconds apart: modules that are loaded anew run other code.
    """
    global _seen
    now = time.monotonic()
    if now - _seen.when > FRESH:
        _seen = _Seen(now, installed_source(PACKAGE, IMPORTED) or source_of(PACKAGE, IMPORTED))
    return None if _seen.source is None else _with_libraries(_seen.source)


class _Seen(NamedTuple):
    """The digest of the source, and when it was made."""

    when: float
    source: str | None


FRESH = 0.25
_seen = _Seen(-FRESH - 1, None)


@lru_cache(maxsize=1)
def _with_libraries(source: str) -> str | None:
    llvm = llvm_library()
    return identity((VERSION, FORMAT, source, llvm, numpy.__version__, sys.version, _file_of("sympy"), array_layout())) \
        if llvm else None


def machine(target: Target) -> str:
    """Returns what `target` means here, as text."""
    return f"{target} | {target.host} | {target.triple} | {target.cpu} | {target.feature_string}"


def installed_source(folder: str, since: float) -> str | None:
    """Returns the digest of the RECORD of the wheel from which the package in `folder` was installed; None if it was not, or
    if that changed after the time `since`.
    """
    path = os.path.join(os.path.dirname(folder), f"tedsl-{VERSION}.dist-info", "RECORD")
    try:
        known = os.stat(path)
        if known.st_ctime_ns > (since - _SLACK) * 1e9 or os.path.islink(folder):
            return None
        return _kept_digest(path, known) or _digest_of_record(path)
    except OSError:
        return None


def _kept_digest(path: str, known: os.stat_result) -> str | None:
    """The digest of the RECORD at `path` with the status `known`, from the cache on disk, or made and put there; None where
    there is no cache, or if the file is so young that its next change may leave its times as they are.
    """
    store = current_store()
    if store is None or known.st_ctime_ns > (time.time() - _SLACK) * 1e9:
        return None
    says = (known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns)
    key = digest(f"{path} {says}".encode())
    pieces = store.load(key, HOST)
    if pieces is not None and _RECORD in pieces:
        return pieces[_RECORD].decode()
    made = _digest_of_record(path)
    if made is not None and os.stat(path).st_ctime_ns == known.st_ctime_ns:
        store.save(key, HOST, {_RECORD: made.encode()})
    return made


def _digest_of_record(path: str) -> str | None:
    """The digest of a RECORD; None if it is not that of the package: of an installation whose files are elsewhere."""
    with open(path, "rb") as file:
        record = file.read()
    return digest(record) if b"\ntedsl/version.py,sha256=" in b"\n" + record else None


def source_of(folder: str, since: float) -> str | None:
    """Returns the digest of the names, sizes and times of the files of Python in `folder` and below its folders COMPILER; None
    if one of them changed after the time `since`, or if they cannot be listed.

    The compiler imports nothing else: other folders write programs and schedules, which are in the keys themselves.
    """
    files: list[tuple[str, int, int]] = []  # path, size, time of the content in nanoseconds
    latest = 0  # change of any kind: tools that copy files set the time of the content
    folders = [folder]
    try:
        while folders:
            at = folders.pop()
            with os.scandir(at) as entries:
                for entry in entries:
                    name = entry.name
                    if name.endswith((".py", ".pyc", ".so")):
                        known = entry.stat()
                        files.append((entry.path, known.st_size, known.st_mtime_ns))
                        latest = max(latest, known.st_ctime_ns)
                    elif (name in COMPILER or (at != folder and "." not in name and name != "__pycache__")) and entry.is_dir():
                        folders.append(entry.path)
    except OSError:
        return None
    if not files or latest > (since - _SLACK) * 1e9:
        return None
    return digest(repr(sorted(files)).encode())


def _file_of(package: str) -> str:
    """The place of an installed package and the time of its file, which stand for its version: importing it takes long."""
    place = place_of(package)
    try:
        return f"{place} {os.stat(place).st_mtime_ns}" if place else ""
    except OSError:
        return place
