"""Kernels of arrays of constant shapes share entry points: one for each form of a call, compiled once for a process.

A form is what the instructions of an entry point depend on: the rank of each array, which of them are outputs, whether
these may overlap others, and whether the GIL is released. What else is required of the arguments stands in the table of the
kernel, bytes to which the checked call in Python (`runtime/call.py`) refers. `codegen/llvm/entry/shared.py` writes the entry
points.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache

from tedsl.ir.expr import IntImm
from tedsl.record import record
from tedsl.runtime.arguments.numpy_fields import NUMBERS
from tedsl.runtime.signature import Signature, TensorParam

SHARED_ENTRY = "tedsl.call_arrays"  # the symbol of each such entry point
MOST_ARRAYS = 8  # of a kernel that has a table: code for more takes LLVM longer than the checks are worth
RELEASE_BYTES = 64 * 1024  # of arrays whose kernel runs without the GIL: releasing it takes 40 ns, the kernel microseconds
TABLE_OFFSET = object.__basicsize__  # in a checked call, of the reference to its table
BYTES_OFFSET = bytes.__basicsize__ - 1  # of the first byte in an object of Python

# A table: the address of `i32 (ptr slots)`; then for each array two of numpy's numbers of its dtype, its bytes, its extents.
_ADDRESS, _ARRAY, _EXTENT = struct.Struct("<q"), struct.Struct("<iiq"), struct.Struct("<q")
EXTENT_BYTES = _EXTENT.size
NUMBERS_AT, BYTES_AT, EXTENTS_AT = (0, 4), 8, _ARRAY.size  # in what a table says of an array
_OUTPUT, _APART, _RELEASING = "w", " apart", " releasing"


@record
class Form:
    """What kernels that share an entry point have in common. ranks, written: of each array. apart: outputs may overlap no other
    array. releasing: the kernel runs without the GIL.
    """

    ranks: tuple[int, ...]
    written: tuple[bool, ...]
    apart: bool
    releasing: bool

    @property
    def text(self) -> str:
        """The form in one line, from which `form_of` makes it again."""
        arrays = ",".join(f"{rank}{_OUTPUT * written}" for rank, written in zip(self.ranks, self.written))
        return arrays + _APART * self.apart + _RELEASING * self.releasing

    def places(self) -> list[int]:
        """Returns the offset in a table of what it says of each array."""
        places = [_ADDRESS.size]
        for rank in self.ranks:
            places.append(places[-1] + EXTENTS_AT + EXTENT_BYTES * rank)
        return places[:-1]


@record
class Shared:
    """How a kernel uses an entry point that it shares: the text of its form, and its table without the address."""

    form: str
    table: bytes


def form_of(text: str) -> Form:
    """Returns the form with this text."""
    arrays = text.split()[0].split(",")
    return Form(tuple([int(a.rstrip(_OUTPUT)) for a in arrays]), tuple([a.endswith(_OUTPUT) for a in arrays]), _APART in text,
                _RELEASING in text)


def shared_of(sig: Signature, runs_long: bool) -> Shared | None:
    """Returns how a kernel uses a shared entry point; None for a signature that needs one of its own.

    runs_long: every call releases the GIL.
    """
    params = [param for param in sig.params if isinstance(param, TensorParam) and _is_constant(param)]
    if not 0 < len(params) == len(sig.params) <= MOST_ARRAYS or sig.scalars or sig.result is not None:
        return None
    shapes = [[dim.value for dim in param.shape if isinstance(dim, IntImm)] for param in params]
    if min(map(min, filter(None, shapes)), default=0) < 0:
        return None
    sizes = [_size(shape, param.dtype.bytes) for shape, param in zip(shapes, params)]
    if sum(sizes) >= 2**63:
        return None
    written = tuple([param.written for param in params])
    form = Form(tuple(map(len, shapes)), written, sig.noalias and len(params) > 1 and any(written),
                runs_long or sum(sizes) >= RELEASE_BYTES)
    pieces = []
    for param, shape, size in zip(params, shapes, sizes):
        numbers = NUMBERS[str(param.dtype)]
        pieces += [_ARRAY.pack(numbers[0], numbers[-1], size), *map(_EXTENT.pack, shape)]
    return Shared(form.text, b"".join(pieces))


def with_address(table: bytes, call: int) -> bytes:
    """Returns a table with the address of the kernel."""
    return _ADDRESS.pack(call) + table


def refers_to(holder: object, table: bytes) -> bool:
    """Tells whether an entry point finds `table` in `holder`."""
    return ctypes.c_void_p.from_address(id(holder) + TABLE_OFFSET).value == id(table) and _shows_bytes()


def _is_constant(param: TensorParam) -> bool:
    """Tells whether all extents are numbers, the elements compact, and numpy has a number for the dtype in every process."""
    return not param.strides and all(isinstance(dim, IntImm) for dim in param.shape) \
        and str(param.dtype) in NUMBERS and param.dtype != "bfloat16"


def _size(shape: list[int], element: int) -> int:
    """Returns the bytes of an array."""
    for dim in shape:
        element *= dim
    return element


@cache
def _shows_bytes() -> bool:
    """Tells whether bytes stand where the entry point reads them."""
    sample = b"as they are"
    return ctypes.string_at(id(sample) + BYTES_OFFSET, len(sample)) == sample
