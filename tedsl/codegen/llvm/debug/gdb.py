"""Tells gdb about machine code that was linked into this process ("JIT Compilation Interface" in its manual).

gdb reads a list of objects in memory, and stops at a function with a known name whenever the list changes. That function and
the list must stand in a library that gdb sees: a small one is linked for them.
"""

from __future__ import annotations

import ctypes
import functools
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

from tedsl.codegen.llvm.export.link import shared_library
from tedsl.codegen.llvm.machine import object_code, optimize
from tedsl.target.current import host_target

_REGISTER, _UNREGISTER = 1, 2
_lock = threading.Lock()
_FUNCTION, _LIST = "__jit_debug_register_code", "__jit_debug_descriptor"
_INTERFACE = f"""
@{_LIST} = global {{ i32, i32, ptr, ptr }} {{ i32 1, i32 0, ptr null, ptr null }}
define void @{_FUNCTION}() noinline {{
  call void asm sideeffect "", "~{{memory}}"()
  ret void
}}
"""


class _Entry(ctypes.Structure):
    """gdb's `struct jit_code_entry`: an object in a list with links to both sides."""


_Entry._fields_ = [("next", ctypes.POINTER(_Entry)), ("previous", ctypes.POINTER(_Entry)), ("image", ctypes.c_void_p),
                   ("size", ctypes.c_uint64)]


class _Descriptor(ctypes.Structure):
    """gdb's `struct jit_descriptor`: the list, and the entry that was added or removed last."""

    _fields_ = (("version", ctypes.c_uint32), ("action", ctypes.c_uint32), ("relevant", ctypes.POINTER(_Entry)),
                ("first", ctypes.POINTER(_Entry)))


def show_to_gdb(image: bytes, library: object) -> None:
    """Puts the object `image`, which says where its code stands, on gdb's list until `library` is unloaded.

    Raises ModuleError if there is no linker for the library with the list.
    """
    interface = _interface()
    memory = ctypes.create_string_buffer(image, len(image))
    entry = _Entry(None, None, ctypes.addressof(memory), len(image))
    with _lock:
        descriptor = _Descriptor.in_dll(interface, _LIST)
        entry.next = descriptor.first
        if descriptor.first:
            descriptor.first.contents.previous = ctypes.pointer(entry)
        descriptor.first = ctypes.pointer(entry)
        _announce(interface, entry, _REGISTER)
    weakref.finalize(library, _hide, interface, entry, memory).atexit = False


def _hide(interface: Any, entry: _Entry, memory: object) -> None:
    """Takes an object off gdb's list; `memory` is that of the object."""
    with _lock:
        descriptor = _Descriptor.in_dll(interface, _LIST)
        if entry.previous:
            entry.previous.contents.next = entry.next
        else:
            descriptor.first = entry.next
        if entry.next:
            entry.next.contents.previous = entry.previous
        _announce(interface, entry, _UNREGISTER)


def _announce(interface: Any, entry: _Entry, action: int) -> None:
    """Calls the function at which gdb stops to read what changed."""
    descriptor = _Descriptor.in_dll(interface, _LIST)
    descriptor.relevant, descriptor.action = ctypes.pointer(entry), action
    getattr(interface, _FUNCTION)()
    descriptor.action = 0


def listed() -> list[bytes]:
    """Returns the objects on gdb's list, the latest first."""
    images, entry = [], _Descriptor.in_dll(_interface(), _LIST).first
    while entry:
        images.append(ctypes.string_at(entry.contents.image, entry.contents.size))
        entry = entry.contents.next
    return images


@functools.cache
def _interface() -> Any:
    """Returns the library with the list of objects and the function at which gdb stops."""
    target = host_target()
    code = object_code(optimize(_INTERFACE, target, vectorize=False), target)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "libtedsl_gdb.so"
        path.write_bytes(shared_library([code], [_FUNCTION, _LIST], target, path.name))
        return ctypes.CDLL(str(path))
