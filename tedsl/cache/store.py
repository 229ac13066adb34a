"""The entries of the cache: files of named pieces, by key and kind.

An entry is written to a file of its own and renamed, so that readers and other writers see all of it or nothing. It tells when
it is damaged and says its key: one that does not fit is removed, and missing. Reading one sets its time, and the entries that
were not used for longest go when the folder holds more than its limit. Whatever the file system refuses costs one warning, and
the cache is left alone from then on.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from tedsl.cache.flat import pack_flat, unpack_flat
from tedsl.cache.place import FOLDER, OFF, cache_folder, cache_limit, warn_once
from tedsl.errors import ModuleError
from tedsl.record import record

CODE, SCHEDULE, RUNTIME, HOST = KINDS = ("code", "schedule", "runtime", "host")
_ENTRY = re.compile(rf"[0-9a-f]{{48}}\.(?:{'|'.join(KINDS)})")
_UNFINISHED = re.compile(r"\.tedsl-[0-9a-f]+\.tmp")
_HITS = "hits"  # a file of one byte for each module that was taken
_KEY = "key"
_FORSAKEN = 3600.0  # seconds after which an unfinished file has no writer any more
_KEPT = 0.9  # of the limit, after entries were dropped


@record
class Contents:
    """What the cache holds: entries by kind, their bytes, and how many modules were taken since the cache was cleared."""

    entries: Mapping[str, int]
    size: int
    hits: int


@dataclass
class Store:
    """The cache in `folder`, of at most `limit` bytes."""

    folder: str
    limit: int
    _usable: bool | None = None  # None: not looked at yet
    _written: int = 0  # bytes since the last look at the whole folder

    def load(self, key: str, kind: str) -> dict[str, bytes] | None:
        """Returns the pieces of an entry; None if there is none. Removes one that is damaged."""
        path = self._path(key, kind)
        if self._usable is False:
            return None
        try:
            data = _content(path)
            if not self._is_usable():
                return None
        except FileNotFoundError:
            return None
        except OSError as error:
            self._give_up(error)
            return None
        try:
            pieces = unpack_flat(data, path)
        except ModuleError:
            pieces = {}
        if pieces.pop(_KEY, b"") != f"{key}.{kind}".encode():
            self.drop(key, kind)
            return None
        self._note_use(path)
        return pieces

    def save(self, key: str, kind: str, pieces: Mapping[str, bytes]) -> None:
        """Writes an entry, in place of the one there may be."""
        data = pack_flat({_KEY: f"{key}.{kind}".encode(), **pieces})
        if len(data) > self.limit or self._usable is False:
            return
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if not self._is_usable():
                return
            self._write(data, self._path(key, kind))
        except OSError as error:
            self._give_up(error)
            return
        self._written += len(data)
        if self._written > self.limit // 64 or key[0] == "0":  # one write in sixteen, or after many bytes
            self.shrink()

    def drop(self, key: str, kind: str) -> None:
        """Removes an entry, if it is there."""
        _remove(self._path(key, kind))

    def shrink(self) -> None:
        """Removes the entries that were not used for longest, while there are more bytes than the limit; and unfinished files
        whose writer is gone.
        """
        self._written = 0
        try:
            entries = sorted(self._files())
        except OSError:
            return
        size = sum(of for _, of, _ in entries)
        if size <= self.limit:
            return
        for _, of, path in entries:
            if size <= self.limit * _KEPT:
                return
            _remove(path)
            size -= of

    def contents(self) -> Contents:
        """Returns what the cache holds; nothing where there is no folder."""
        entries = dict.fromkeys(KINDS, 0)
        size = hits = 0
        try:
            for _, of, path in self._files():
                entries[path.rpartition(".")[2]] += 1
                size += of
            hits = os.stat(os.path.join(self.folder, _HITS)).st_size
        except OSError:
            pass
        return Contents(entries, size, hits)

    def clear(self) -> int:
        """Removes all entries and returns their number. Other files in the folder stay."""
        try:
            paths = [path for _, _, path in self._files(forsaken=0)]
        except OSError:
            return 0
        for path in (*paths, os.path.join(self.folder, _HITS)):
            _remove(path)
        return len(paths)

    # --- files ---

    def _path(self, key: str, kind: str) -> str:
        return os.path.join(self.folder, f"{key}.{kind}")

    def _write(self, data: bytes, path: str) -> None:
        unfinished = os.path.join(self.folder, f".tedsl-{os.urandom(8).hex()}.tmp")
        try:
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            os.replace(unfinished, path)
        except BaseException:
            _remove(unfinished)
            raise

    def _files(self, forsaken: float = _FORSAKEN) -> Iterator[tuple[float, int, str]]:
        """The entries: time of last use, size in bytes, path. Removes unfinished files older than `forsaken` seconds."""
        now = time.time()
        with os.scandir(self.folder) as files:
            for file in files:
                if _ENTRY.fullmatch(file.name):
                    try:
                        known = file.stat(follow_symlinks=False)
                    except FileNotFoundError:  # another process was faster
                        continue
                    yield known.st_mtime, known.st_size, file.path
                elif _UNFINISHED.fullmatch(file.name) and now - _changed(file.path, now) >= forsaken:
                    _remove(file.path)

    def _note_use(self, path: str) -> None:
        try:
            os.utime(path)
            if not path.endswith(CODE):
                return
            counter = os.open(os.path.join(self.folder, _HITS), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(counter, b".")
            finally:
                os.close(counter)
        except OSError:
            pass  # a cache that can only be read

    def _is_usable(self) -> bool:
        """Tells whether the folder is one from which code may be taken: no other user can have written to it."""
        if self._usable is None:
            known = os.stat(self.folder)
            owner = getattr(os, "geteuid", lambda: known.st_uid)()
            self._usable = known.st_uid in (owner, 0) and not known.st_mode & stat.S_IWOTH
            if not self._usable:
                _warn(self.folder, "other users can write to it")
        return self._usable

    def _give_up(self, error: OSError) -> None:
        self._usable = False
        _warn(self.folder, error.strerror or str(error))


def _warn(folder: str, problem: str) -> None:
    warn_once(f"the cache of compiled kernels in {folder} is not used: {problem}; set {FOLDER} to another folder, or to {OFF}")


def _content(path: str) -> bytes:
    """The bytes of a file, read in one piece: what `open` does beside that takes as long again."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return os.read(file, os.fstat(file).st_size)
    finally:
        os.close(file)


def _remove(path: str) -> None:
    with suppress(OSError):  # another process removed it; or it cannot be removed, and stays
        os.unlink(path)


def _changed(path: str, now: float) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return now


@lru_cache(maxsize=8)
def _store(folder: str, limit: int) -> Store:
    return Store(folder, limit)


def current_store() -> Store | None:
    """Returns the cache that the environment names; None where it is off."""
    folder = cache_folder()
    return _store(folder, cache_limit()) if folder else None
