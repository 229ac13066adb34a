"""Data types: interned strings with their parts as attributes, so that `x.dtype == "float32"` works and is cheap.

Names: bool, int8-64, uint8-64, float16-64, bfloat16, handle; a vector is written `float32x16`. A type of the program's own
is `custom[name]32`, after `register_custom("name", code)`.
"""

from __future__ import annotations

import functools
import re
import struct
from typing import Any

from tedsl.errors import DTypeError

_NAME = re.compile(r"(int|uint|float|bfloat)(\d+)(?:x(\d+))?|(bool|handle)(?:x(\d+))?")
_CUSTOM = re.compile(r"custom\[([^\[\]]*)\](\d+)(?:x(\d+))?")
_DEFAULT_WIDTHS = {"int": "int32", "uint": "uint32", "float": "float32"}  # of names without a width
_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "bfloat": (16,)}
KNOWN = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "bfloat16", "float32", "float64")


_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4}  # DLPack's
CUSTOM_CODES: dict[str, int] = {}  # of the types of the program, by name


class DataTypeCode:
    """DLPack's numbers of kinds of dtypes, as `DType.type_code` gives them."""

    INT, UINT, FLOAT, HANDLE, BFLOAT = _CODES.values()


class DType(str):
    """The dtype of an expression, tensor or buffer. Equal dtypes are one object; `dtype()` and DType(name) give it.

    code: int, uint, float, bfloat, bool, handle or custom; bits: of one lane (bool: 1); lanes: 1 for scalars.
    custom: the name of a type of the program's, "" for others; `storage` is the dtype of its bits.
    is_float: float16-64 and bfloat16; is_int: signed; is_integer: signed or unsigned, not bool.
    min_value, max_value: of integers and bool, else None. numbers: those that a constant may be; of vectors and floats none.
    """

    code: str
    custom: str
    bits: int
    lanes: int
    is_float: bool
    is_int: bool
    is_uint: bool
    is_integer: bool
    is_bool: bool
    is_handle: bool
    is_custom: bool
    is_vector: bool
    min_value: int | None
    max_value: int | None
    numbers: range
    element: DType

    def __new__(cls, type_str: object) -> DType:
        return dtype(type_str)

    def with_lanes(self, lanes: int) -> DType:
        """The vector dtype of `lanes` such elements; the element itself for 1."""
        return self.element if lanes == 1 else _vector(self.element, lanes)

    @property
    def type_code(self) -> int:
        """DLPack's number of `code`, as in TVM; see `DataTypeCode`. Of a type of the program's the number that it has there."""
        return CUSTOM_CODES[self.custom] if self.is_custom else _CODES["uint" if self.is_bool else self.code]

    @property
    def storage(self) -> DType:
        """The unsigned integers that hold the bits of a type of the program's; other dtypes are their own."""
        return _parse(f"uint{self.bits}").with_lanes(self.lanes) if self.is_custom else self

    @property
    def bytes(self) -> int:
        """Size of one element in memory: bool takes one byte, a handle eight."""
        return max(8, self.bits) // 8

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_of_call, (str(self),)

    def __deepcopy__(self, memo: object) -> DType:
        return self


@functools.lru_cache(maxsize=256)
def _vector(element: DType, lanes: int) -> DType:
    """The dtype of `lanes` elements."""
    return dtype(f"{str.__str__(element)}x{lanes}")


_TABLE: dict[str, DType] = {}


def dtype(name: object) -> DType:
    """The DType called `name`: a str, a DType, a numpy dtype or scalar type, or Python's int, float, bool.

    Raises DTypeError for anything else.
    """
    if type(name) is DType:
        return name
    if isinstance(name, str):
        known = _TABLE.get(name)
        return known if known is not None else _parse(name)
    if name is bool:
        return _parse("bool")
    if name is int:
        return _parse("int32")
    if name is float:
        return _parse("float32")
    numpy_name = getattr(name, "name", None) or getattr(name, "__name__", None)
    if isinstance(numpy_name, str) and numpy_name not in ("str_", "object_", "void", "object"):
        return _parse(numpy_name)
    raise DTypeError(f"{name!r} is not a dtype", hint=f"write one of {', '.join(KNOWN)} as a string")


def dtype_of_call(name: object) -> DType:
    """The DType called `name` as the result of a call; None and "void" give VOID."""
    return VOID if name is None or (isinstance(name, str) and name == "void") else dtype(name)


def _parse(name: str) -> DType:
    if name in _TABLE:
        return _TABLE[name]
    canonical = {"uint1": "bool", "int1": "bool", "bool_": "bool", "bool8": "bool", **_DEFAULT_WIDTHS}.get(name, name)
    if name.startswith("uint1x"):
        canonical = "boolx" + name[6:]
    match = _NAME.fullmatch(canonical)
    if match is None and "[" in name:
        return _parse_custom(name)
    if match is None:
        raise DTypeError(f"there is no dtype {name!r}", hint=f"write one of {', '.join(KNOWN)}, or with lanes: float32x4")
    code = match[1] or match[4]
    bits = int(match[2]) if match[1] else {"bool": 1, "handle": 64}[code]
    lanes = int(match[3] or match[5] or 1)
    if (match[1] and bits not in _WIDTHS[code]) or lanes < 1:
        raise DTypeError(f"there is no dtype {name!r}", hint=f"write one of {', '.join(KNOWN)}, or with lanes: float32x4")
    if lanes == 1 and canonical.endswith("x1"):
        canonical = canonical[:-2]
    if canonical != name:
        _TABLE[name] = _parse(canonical)
        return _TABLE[name]
    _TABLE[canonical] = _make(canonical, code, bits, lanes)
    return _TABLE[canonical]


def _parse_custom(name: str) -> DType:
    match = _CUSTOM.fullmatch(name)
    if match is None or match[1] not in CUSTOM_CODES:
        raise DTypeError(f"there is no dtype {name!r}; the program has registered {', '.join(CUSTOM_CODES) or 'no types'}",
                         hint='tedsl.target.datatype.register("name", 150), and then "custom[name]32"')
    bits, lanes = int(match[2]), int(match[3] or 1)
    if bits not in _WIDTHS["uint"] or lanes < 1:
        raise DTypeError(f"there is no dtype {name!r}: a type of the program has 8, 16, 32 or 64 bits",
                         hint=f'"custom[{match[1]}]32"')
    canonical = f"custom[{match[1]}]{bits}" + (f"x{lanes}" if lanes > 1 else "")
    _TABLE[name] = _TABLE[canonical] = _TABLE.get(canonical) or _make(canonical, "custom", bits, lanes, match[1])
    return _TABLE[name]


def _make(name: str, code: str, bits: int, lanes: int, custom: str = "") -> DType:
    self = str.__new__(DType, name)
    self.code, self.bits, self.lanes, self.custom = code, bits, lanes, custom
    self.is_custom = bool(custom)
    self.is_float = code in ("float", "bfloat")
    self.is_int, self.is_uint, self.is_bool, self.is_handle = (code == c for c in ("int", "uint", "bool", "handle"))
    self.is_integer = self.is_int or self.is_uint
    self.is_vector = lanes > 1
    self.element = self if lanes == 1 else _parse(name.rpartition("x")[0])
    low, high = self.min_value, self.max_value = _integer_range(self)
    self.numbers = range(0) if low is None or high is None or lanes > 1 else range(low, high + 1)
    return self


def _integer_range(d: DType) -> tuple[int, int] | tuple[None, None]:
    if d.is_int:
        return -(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1
    if d.is_uint or d.is_bool:
        return 0, (1 << d.bits) - 1
    return None, None


def wrap_integer(value: int, d: DType) -> int:
    """`value` modulo 2**bits, in the range of the integer (or bool) dtype `d`."""
    low = value & ((1 << d.bits) - 1)
    return low - (1 << d.bits) if d.is_int and low >> (d.bits - 1) else low


def round_float(value: float, d: DType) -> float:
    """The float nearest to `value` (ties to even) that dtype `d` can represent; beyond its range, an infinity.

    Of a type of the program's it is `value`: functions of the program know what its bits are.
    """
    if d.bits == 64 or d.is_custom or value != value or value in (float("inf"), float("-inf")):
        return value
    if d.code == "bfloat":
        return _round_bfloat16(value)
    try:
        form = "<f" if d.bits == 32 else "<e"
        return float(struct.unpack(form, struct.pack(form, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def holds(wide: DType, narrow: DType) -> bool:
    """Tells whether each value of the scalar dtype `narrow` is one of `wide`, so that a cast to it and back changes none."""
    if wide is narrow:
        return True
    if narrow.is_float:
        return wide.is_float and (narrow.bits, wide.bits) in ((16, 32), (16, 64), (32, 64))
    if narrow.min_value is None or narrow.max_value is None:
        return False
    if wide.is_float:
        digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[wide]
        return max(-narrow.min_value, narrow.max_value) <= 1 << digits
    return wide.is_integer and wide.min_value is not None and wide.max_value is not None and (
        wide.min_value <= narrow.min_value and narrow.max_value <= wide.max_value)


def _round_bfloat16(value: float) -> float:
    """`value` rounded once to bfloat16, from double: 8 bits of mantissa (fewer below 2**-126), ties to even."""
    import math

    if value == 0.0:
        return value
    _, exponent = math.frexp(value)
    quantum = math.ldexp(1.0, max(exponent - 8, -133))
    rounded = round(value / quantum) * quantum  # Python rounds ties to even
    largest = math.ldexp(255.0, 120)
    if abs(rounded) > largest:
        return math.copysign(float("inf"), value)
    return math.copysign(rounded, value)


BOOL, INT32, INT64, UINT64 = _parse("bool"), _parse("int32"), _parse("int64"), _parse("uint64")
FLOAT32, FLOAT64, HANDLE = _parse("float32"), _parse("float64"), _parse("handle")
VOID = _make("void", "void", 0, 1)  # of calls that give nothing, and of nothing else: dtype() does not know it
VOID.is_handle = True  # takes part in no arithmetic and stands in no tensor
