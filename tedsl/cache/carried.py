"""Entries of the cache that do not depend on a program: what LLVM says of the processor, and the runtime's own code.

Files can carry them beside their modules. A process that reads such a file does not load LLVM for them, where their keys, which
contain the processor, the versions and the source of tedsl, are those of this process.
"""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.cache.flat import pack_flat, unpack_flat
from tedsl.cache.store import current_store
from tedsl.errors import ModuleError

Pieces = Mapping[str, bytes]

_taken: dict[tuple[str, str], Pieces] = {}  # from files
_used: dict[tuple[str, str], Pieces] = {}  # by this process


def load(key: str, kind: str) -> Pieces | None:
    """The pieces of an entry of the cache on disk, or of a file that was read; None if neither has it."""
    store = current_store()
    found = (store.load(key, kind) if store else None) or _taken.get((key, kind))
    if found is not None:
        _used[key, kind] = found
    return found


def save(key: str, kind: str, pieces: Pieces) -> None:
    """Writes an entry, and notes it for files."""
    _used[key, kind] = pieces
    store = current_store()
    if store is not None:
        store.save(key, kind, pieces)


def entries() -> bytes:
    """All that this process has used, for a file."""
    return pack_flat({f"{key}.{kind}": pack_flat(pieces) for (key, kind), pieces in _used.items()})


def take(data: bytes) -> None:
    """Takes what `entries` returned in another process; nothing if it is damaged."""
    try:
        for name, pieces in unpack_flat(data, "entries").items():
            key, _, kind = name.partition(".")
            _taken[key, kind] = unpack_flat(pieces, name)
    except ModuleError:
        return
