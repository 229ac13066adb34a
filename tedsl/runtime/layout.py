"""The offsets of the fields of arrays that the entry points of this process read.

They are verified before the first entry point relies on them. If a check fails, or the interpreter has no GIL, there is no
layout, and every call goes through the checks in Python.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy

from tedsl.runtime.arguments.numpy_fields import ALIGNED, C_CONTIGUOUS, NUMBERS, WRITEABLE, Layout, read, verified_layout
from tedsl.runtime.array import NDArray

__all__ = ["ALIGNED", "C_CONTIGUOUS", "NUMBERS", "WRITEABLE", "Layout", "array_layout"]


@cache
def array_layout() -> Layout | None:
    """Returns the layout if every offset in it was verified, that of the array in an NDArray included; else None."""
    layout = verified_layout()
    return layout if layout is not None and _wrapper_agrees(layout) else None


def _wrapper_agrees(at: Layout) -> bool:
    wrapper = NDArray(numpy.zeros(1))
    return NDArray.__basicsize__ >= at.wrapped + 8 and read(ctypes.c_int64, id(wrapper) + at.wrapped) == id(wrapper._array)
