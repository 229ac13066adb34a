"""Dequantized values: whole numbers of 8 bits less a zero point, times a scale.

    multiply(cast(subtract(cast(stored, "int32"), zero), "float32"), scale)        either part may be missing

What `cast` and `subtract` give has to be the numbers themselves: in 8 bits they wrap. Scales and zero points that repeat
elements make others of them.
"""

from __future__ import annotations

from typing import Any

import numpy

from tedsl.graph.match import Match, a_constant, anything, match_value, op
from tedsl.graph.value import Spec, Value
from tedsl.record import record

_BYTES = ("int8", "uint8")
_HOLDING = ("int16", "int32", "int64", "float32")  # dtypes of all numbers of 8 bits


@record(eq=False)
class Whole:
    """The whole numbers `stored - zero`. zero: None for 0."""

    stored: Value
    zero: Value | None

    @property
    def array(self) -> Any:
        """Constant numbers, if they fit int8; else None."""
        numbers = self.numbers
        small = None if numbers is None else numbers.astype("int8")
        return small if numbers is not None and bool((small == numbers).all()) else None

    @property
    def numbers(self) -> Any:
        """Constant numbers, of int32; else None."""
        if not self.stored.is_constant or (self.zero is not None and not self.zero.is_constant):
            return None
        return self.stored.data.astype("int32") - (0 if self.zero is None else self.zero.data.astype("int32"))

    @property
    def offset(self) -> int | None:
        """The zero point, if it is one constant number for all, of 8 bits as those stored; else None."""
        if self.zero is None:
            return 0
        if not self.zero.is_constant or self.zero.data.size != 1:
            return None
        number, limits = int(self.zero.data.reshape(())), numpy.iinfo(str(self.stored.dtype))
        return number if limits.min <= number <= limits.max else None


@record(eq=False)
class Dequantized:
    """The numbers `whole * scale`, where `scale` is a constant."""

    whole: Whole
    scale: Value

    @property
    def numbers(self) -> Any:
        """Constant numbers; else None."""
        whole = self.whole.numbers
        return None if whole is None else whole.astype("float32") * self.scale.data.astype("float32")


def is_bytes(value: Value) -> bool:
    return str(value.dtype) in _BYTES


def _patterns() -> tuple[Any, Any]:
    stored, point = anything("stored").where(is_bytes), anything("zero")
    held = op("cast", stored, dtype=lambda dtype: str(dtype) in _HOLDING)
    less = op("subtract", op("cast", stored, dtype="int32"), op("cast", point.where(is_bytes), dtype="int32") | point)
    whole = less | held | stored
    return whole, op("multiply", op("cast", whole, dtype="float32"), a_constant("scale"))


WHOLE, DEQUANTIZED = _patterns()


def whole(value: Value) -> Whole | None:
    """What a value of whole numbers is made of; None if it is not of bytes."""
    found = match_value(value, WHOLE) if str(value.dtype) in ("int32", *_BYTES) else None
    return None if found is None or not _is_each(found) else whole_in(found)


def whole_in(found: Match) -> Whole:
    """The whole numbers in a match of a pattern that has WHOLE as a part."""
    return Whole(found["stored"], found.bound.get("zero"))


def dequantized(value: Value) -> Dequantized | None:
    """What a value of float32 is made of; None if it is not dequantized."""
    found = match_value(value, DEQUANTIZED) if str(value.dtype) == "float32" else None
    return None if found is None or not _is_each(found) else Dequantized(whole_in(found), found["scale"])


def _is_each(found: Match) -> bool:
    """Whether each of the stored numbers stands for one number of the value."""
    return Spec(found["stored"].shape, found.value.dtype) == found.value.spec
