"""Sort keys: integers whose order is that of the elements, alone or together with the places of the elements.

    float32   1.0, -2.0, nan    words  0x3f800000, -0x40000001, 0x7fc00000           in int32
    with places                        0x3f800000 << 32 | 0, -0x40000001 << 32 | 1   in int64: equal elements keep their order

Functions here take scalars and vectors alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.record import record

Word = tuple[Any, ...]  # a word, and where it has no room for the place the place


@record
class Coding:
    """How elements of `dtype` become words: signed integers of `word`, whose low `place_bits` bits hold the place.

    ascending: False reverses the order. apart: the place stands beside the word, in an int32 of its own. with_places: whether
    words of equal elements differ by the places of the elements.
    """

    dtype: Any
    ascending: bool
    word: str
    place_bits: int = 0
    apart: bool = False

    @property
    def with_places(self) -> bool:
        return self.apart or self.place_bits > 0

    @property
    def key_bits(self) -> int:
        """The bits of a word, above the place, that differ between elements."""
        bits: int = self.dtype.bits
        return max(8, bits)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the parts of a word."""
        return (self.word, "int32") if self.apart else (self.word,)

    @property
    def key_dtype(self) -> str:
        """The dtype of keys."""
        return f"int{64 if self.dtype.bits == 64 else 32}"

    def words(self, x: Any, place: Any) -> Word:
        """The word of the element `x`; place: its place, an int32."""
        return self.join(self.key(x), place)

    def join(self, key: Any, place: Any) -> Word:
        """The word of a key and a place."""
        key = key.astype(self.word)
        if self.apart:
            return key, place
        return (key << self.place_bits | place.astype(self.word),) if self.place_bits else (key,)

    def key_of(self, word: Word) -> Any:
        """The key in a word."""
        return (word[0] >> self.place_bits if self.place_bits else word[0]).astype(self.key_dtype)

    def last(self, place: Any) -> Word:
        """A word at least as great as that of every element; place: an int32 beyond the places of the elements."""
        most = te.const(te.const(0, self.word).dtype.max_value, self.word)
        most = tir.Broadcast(most, place.dtype.lanes) if place.dtype.lanes > 1 else most
        return (most, place) if self.apart else (most,)

    def place(self, word: Word) -> Any:
        """The place in a word, as int32."""
        if self.apart:
            return word[1]
        mask = te.const((1 << self.place_bits) - 1 if self.place_bits < 32 else -1, "int32")
        low = word[0].astype("int32")
        return low if self.place_bits == 32 else low & mask

    def element(self, word: Word) -> Any:
        """The element. Of zeros and NaN of a word with its place, the sign is lost."""
        key = word[0] >> self.place_bits if self.place_bits else word[0]
        key = key if self.ascending else ~key
        if self.dtype.is_float:
            bits = _turned(key, self.dtype.bits)
            return tir.reinterpret(_like(self.dtype, key), bits.astype(f"int{self.dtype.bits}"))
        return (key - self._bias).astype(self.dtype)

    def key(self, x: Any) -> Any:
        """The key of an element: an integer, in the order that is wanted."""
        wide = te.const(0, self.key_dtype).dtype
        if self.dtype.is_float:
            key = self._key_of_float(x, wide)
        else:
            key = x.astype(wide) + self._bias
        return key if self.ascending else ~key

    @property
    def _bias(self) -> Any:
        """What makes unsigned integers signed ones of equal width, in the same order."""
        return te.const(-(1 << self.dtype.bits - 1) if self.dtype.is_uint else 0, self.key_dtype)

    def _key_of_float(self, x: Any, wide: str) -> Any:
        bits = self.dtype.bits
        key = _turned(tir.reinterpret(_like(f"int{bits}", x), x).astype(wide), bits)
        if self.with_places:
            key = te.select(key == te.const(-1, wide), te.const(0, wide), key)  # -0.0 is equal to 0.0
        return te.select(tir.isnan(x), te.const(_nan_bits(self.dtype), wide), key)


def coding_of(dtype: Any, ascending: bool, with_places: bool, extent: int | None) -> Coding:
    """The coding of elements of `dtype` in rows of `extent` elements (None: any number)."""
    if not with_places:
        return Coding(dtype, ascending, "int64" if dtype.bits == 64 else "int32")
    if dtype.bits == 64:
        return Coding(dtype, ascending, "int64", apart=True)
    free = 32 - max(8, dtype.bits)
    if extent is not None and extent <= 1 << free:
        return Coding(dtype, ascending, "int32", free)
    return Coding(dtype, ascending, "int64", 32)


def less(a: Word, b: Word) -> Any:
    """Whether word `a` stands before word `b`."""
    if len(a) == 1:
        return a[0] < b[0]
    return tir.any(a[0] < b[0], tir.all(a[0] == b[0], a[1] < b[1]))


def chosen(condition: Any, a: Word, b: Word) -> Word:
    """Word `a` if the condition holds, else `b`."""
    return tuple([tir.Select(condition, x, y) for x, y in zip(a, b)])


def complement(word: Word, mask: Sequence[Any]) -> Word:
    """The word with the bits of `mask`, one for each part: all ones reverse the order, zeros keep the word."""
    return tuple([part ^ bits for part, bits in zip(word, mask)])


def _turned(bits: Any, width: int) -> Any:
    """The bits of floats as integers in the order of the floats, and back: below zero all bits but the sign are inverted."""
    wide = bits.dtype.element
    return bits ^ (bits >> te.const(wide.bits - 1, wide) & te.const((1 << width - 1) - 1, wide))


def _nan_bits(dtype: Any) -> int:
    """The bits of the positive quiet NaN without payload."""
    bits: int = dtype.bits
    mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[str(dtype)]
    return ((1 << bits - 1) - 1) >> (mantissa - 1) << (mantissa - 1)


def _like(dtype: Any, value: Any) -> Any:
    return te.const(0, dtype).dtype.with_lanes(value.dtype.lanes)

