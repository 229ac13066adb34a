"""Memory for machine code: pages of this process that are written first, and executed or read from then on."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from typing import Any

READ, WRITE, EXECUTE = 1, 2, 4  # PROT_READ, PROT_WRITE, PROT_EXEC
PAGE = mmap.PAGESIZE
_FAILED = ctypes.c_void_p(-1).value


@functools.cache
def _libc() -> Any:
    if sys.platform == "win32":
        raise OSError("Windows has pages of another kind")
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library


class Pages:
    """Memory of at least `size` bytes, zero at first, until it is released: what refers to this object does not matter, since
    code may run in it while the interpreter ends.

    address: where it begins. Raises OSError where there is no such memory.
    """

    __slots__ = ("address", "size")

    def __init__(self, size: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        address = _libc().mmap(None, size, READ | WRITE, flags, -1, 0)
        if address in (None, _FAILED):
            raise OSError(ctypes.get_errno(), f"there are no {size} bytes of memory")
        self.address: int = address
        self.size = size

    def write(self, at: int, data: bytes) -> None:
        """Writes `data` at offset `at`, which must not be protected yet."""
        assert 0 <= at <= at + len(data) <= self.size, "inside of these pages"
        ctypes.memmove(self.address + at, data, len(data))

    def protect(self, begin: int, end: int, access: int) -> None:
        """Allows `access` alone to the pages from offset `begin` up to `end`; OSError if the system refuses it."""
        if end > begin and _libc().mprotect(self.address + begin, end - begin, access):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")

    def release(self) -> None:
        """Gives the memory back."""
        _libc().munmap(self.address, self.size)
