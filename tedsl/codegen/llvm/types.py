"""Types and constants in LLVM's syntax.

In registers float16 and bfloat16 are floats whose value the narrow type can represent, bool is i1; in memory float16 and
bfloat16 are i16, bool is a byte.
"""

from __future__ import annotations

import re
import struct
from functools import cache, lru_cache

from tedsl.errors import InternalError
from tedsl.ir.dtype import VOID, DType


def _register_element(d: DType) -> str:
    if d is VOID:
        return "void"
    if d.is_float:
        return "double" if d.bits == 64 else "float"
    return "ptr" if d.is_handle else f"i{d.bits}"


def _memory_element(d: DType) -> str:
    if d.is_bool:
        return "i8"
    return "i16" if d.is_float and d.bits == 16 else _register_element(d)


@cache
def register_type(d: DType) -> str:
    """Returns the type of a value of dtype `d` in a register."""
    return vector_of(_register_element(d), d.lanes)


@cache
def memory_type(d: DType) -> str:
    """Returns the type of a value of dtype `d` in memory."""
    return vector_of(_memory_element(d), d.lanes)


@cache
def vector_of(element: str, lanes: int) -> str:
    """Returns `<lanes x element>`, or `element` itself for one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def suffix(d: DType) -> str:
    """Returns the suffix that an overloaded intrinsic has for the register type of `d`: f32, v4i64, ..."""
    element = {"float": "f32", "double": "f64", "ptr": "p0"}.get(_register_element(d), _register_element(d))
    return element if d.lanes == 1 else f"v{d.lanes}{element}"


def int_suffix(bits: int, lanes: int) -> str:
    """Returns the suffix of an overloaded intrinsic for integers of that width and number of lanes."""
    return f"i{bits}" if lanes == 1 else f"v{lanes}i{bits}"


def float_text(value: float, bits: int) -> str:
    """Returns a float constant in LLVM's notation: the bits of the equal double."""
    # Not cached: 0.0 and -0.0 are equal keys.
    if value != value:
        return "0x7FF8000000000000"
    if bits == 32:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat(element_type: str, value: str, lanes: int) -> str:
    """Returns the constant `value` in every lane."""
    if lanes == 1:
        return value
    return "zeroinitializer" if value == "0" else f"splat ({element_type} {value})"


def int_splat(bits: int, value: int, lanes: int) -> str:
    """Returns an integer constant in every lane."""
    if bits == 1:
        return splat("i1", "true" if value else "false", lanes)
    return splat(f"i{bits}", str(value), lanes)


def float_splat(d: DType, value: float) -> str:
    """Returns a float constant in every lane of `d`."""
    return splat(_register_element(d), float_text(value, max(32, d.bits)), d.lanes)


@lru_cache(maxsize=256)
def steps(bits: int, stride: int, lanes: int) -> str:
    """Returns the constant vector 0, stride, 2 * stride, ... wrapped to `bits`."""
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    return "<" + ", ".join(f"i{bits} {(((k * stride) & mask) ^ half) - half}" for k in range(lanes)) + ">"


def global_name(name: str) -> str:
    """Returns the name of a function in LLVM's syntax."""
    if _PLAIN.fullmatch(name):
        return "@" + name
    return '@"' + "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02x}" for c in name.encode()) + '"'


_PLAIN = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")


def expect(condition: bool, message: str) -> None:
    """Raises InternalError unless `condition`, which an earlier pass should have ensured."""
    if not condition:
        raise InternalError(message)


def argument_type(dtype: DType) -> str:
    """Returns the LLVM type in which a scalar of `dtype` is passed to a kernel, and returned by one."""
    if dtype.is_handle:
        return "ptr"
    if dtype.is_float:
        return "double" if dtype.bits == 64 else "float"
    return "i64"
