"""The host: the name and features of this machine's processor, queried on first use.

LLVM says them, and takes long to load: what it said of this processor is kept in the cache on disk.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import platform
from typing import Any, NamedTuple

from tedsl.cache import carried
from tedsl.cache.store import HOST
from tedsl.digest import digest
from tedsl.errors import TedslError
from tedsl.target.installed import place_of
from tedsl.target.processor import processor


class Host(NamedTuple):
    """The name and features of this machine's processor, as LLVM calls them."""

    triple: str
    cpu: str
    features: frozenset[str]
    feature_string: str


def llvm_binding() -> Any:
    """Returns llvmlite's binding of LLVM; TedslError if it is not installed."""
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError) as error:
        raise TedslError(f"machine code is made by llvmlite, which is missing here: {error}",
                         hint="pip install llvmlite; schedules and tedsl.lower work without it") from error
    return llvm


@functools.lru_cache(maxsize=1)
def llvm_library() -> str:
    """Returns a text for the installed LLVM, without loading it: the files of llvmlite that decide what code is; "" if it is
    not installed.
    """
    place = place_of("llvmlite")
    if not place:
        return ""
    folder = os.path.dirname(place)
    try:
        with os.scandir(os.path.join(folder, "binding")) as entries:
            paths = [entry.path for entry in entries if not entry.name.endswith((".py", ".pyc", "__pycache__"))]
        known = [(path, os.stat(path)) for path in sorted([*paths, os.path.join(folder, "_version.py")])]
    except OSError:
        return ""
    return " ".join([f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in known])


@functools.lru_cache(maxsize=1)
def host() -> Host:
    """Returns the processor that LLVM detects.

    Its name can be wrong in a virtual machine; the features are read from the processor. Tile registers count where the system
    lets programs use them.
    """
    found = _known()
    if "amx-tile" not in found.features or _may_use_tiles():
        return found
    features = frozenset(name for name in found.features if not name.startswith("amx-"))
    return found._replace(features=features, feature_string=found.feature_string.replace("+amx-", "-amx-"))


def _may_use_tiles() -> bool:
    """Tells whether Linux lets programs ask for tile registers: arch_prctl(ARCH_GET_XCOMP_SUPP), whose bit 18 is XTILEDATA."""
    if platform.machine() != "x86_64" or not hasattr(ctypes, "CDLL"):
        return False
    supported = ctypes.c_uint64()
    call = getattr(ctypes.CDLL(None), "syscall", None)
    return call is not None and call(158, 0x1021, ctypes.byref(supported)) == 0 and bool(supported.value >> 18 & 1)


def _known() -> Host:
    """Returns what LLVM says of the processor, from the cache on disk if it has been asked before."""
    if not processor() or not llvm_library():
        return _detected()
    key = digest(f"{processor()} {llvm_library()}".encode())
    found = _read((carried.load(key, HOST) or {}).get("host"))
    if found is None:
        found = _detected()
        carried.save(key, HOST, {"host": _written(found)})
    return found


def _written(found: Host) -> bytes:
    return json.dumps([found.triple, found.cpu, sorted(found.features), found.feature_string]).encode()


def _read(said: bytes | None) -> Host | None:
    """What `_written` wrote; None if it is anything else."""
    try:
        triple, cpu, features, text = json.loads(said or b"")
        return Host(triple, cpu, frozenset(features), text)
    except (TypeError, ValueError):
        return None


def _detected() -> Host:
    llvm = llvm_binding()
    try:
        flags = dict(llvm.get_host_cpu_features())
    except RuntimeError:  # an architecture where LLVM cannot tell
        flags = {}
    text = ",".join(("+" if on else "-") + name for name, on in sorted(flags.items()))
    have = {name for name, on in flags.items() if on}
    if platform.machine() in ("aarch64", "arm64"):
        have.add("neon")
    if platform.machine() in ("x86_64", "AMD64"):
        have |= {"sse", "sse2"}
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), frozenset(have), text)
