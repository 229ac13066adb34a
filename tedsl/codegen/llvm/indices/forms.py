"""Sums of products in which index arithmetic is kept, in 64 bits, until a register is needed.

An `Index` is const + c1 * atom1 + c2 * atom2 + ...; an atom is a register with the region that defines it and the interval
of its values. Registers have 64 bits; on devices, whose registers have 32, those values have 32 of which it is proved that they
fit. Sums are emitted region by region, outermost first, so that loop-invariant parts are computed outside of the
inner loops, and copies of a statement that differ by a constant share everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


class Atom:
    """A register of `bits` bits: its text, the number of the region that defines it, and the bounds of its values.

    unit: the value of the atom is register / unit (for a shift by a part of an iteration); its coefficients are multiples of
    it.
    """

    __slots__ = ("bits", "high", "level", "low", "name", "unit")

    def __init__(self, name: str, level: int, low: int = INT64_MIN, high: int = INT64_MAX, unit: int = 1,
                 bits: int = 64) -> None:
        self.bits = bits
        self.unit = unit
        self.name = name
        self.level = level
        self.low = low
        self.high = high


class Index:
    """The index const + the sum of coefficient * atom over `terms`. Immutable by convention."""

    __slots__ = ("const", "terms")

    def __init__(self, terms: Mapping[Atom, int], const: int = 0) -> None:
        self.terms = terms
        self.const = const

    def bounds(self) -> tuple[int, int]:
        """Returns the interval of the mathematical value."""
        low = high = self.const
        for atom, c in self.terms.items():
            low += c * (atom.low if c > 0 else atom.high)
            high += c * (atom.high if c > 0 else atom.low)
        return low, high

    @property
    def is_short(self) -> bool:
        """Tells whether the value fits 32 bits and is made of registers of 32 bits alone."""
        low, high = self.bounds()
        return low >= -2**31 and high < 2**31 and all(atom.bits == 32 and atom.unit == 1 for atom in self.terms)

    @property
    def is_nonnegative(self) -> bool:
        return self.const >= 0 and all(c > 0 and atom.low >= 0 for atom, c in self.terms.items())

    def divisor(self) -> int:
        """Returns the largest number known to divide the value; 0 for the value 0."""
        return gcd(self.const, *(c // atom.unit for atom, c in self.terms.items()))


ZERO = Index({})


def constant(value: int) -> Index:
    return Index({}, value)


def atom_index(atom: Atom) -> Index:
    return Index({atom: 1})


def add(a: Index, b: Index, sign: int = 1) -> Index:
    """Returns a + sign * b."""
    if not b.terms:
        return Index(a.terms, a.const + sign * b.const)
    terms = dict(a.terms)
    for atom, c in b.terms.items():
        total = terms.get(atom, 0) + sign * c
        if total:
            terms[atom] = total
        else:
            del terms[atom]
    return Index(terms, a.const + sign * b.const)


def scale(a: Index, factor: int) -> Index:
    """Returns a * factor."""
    if factor == 0:
        return ZERO
    return a if factor == 1 else Index({atom: c * factor for atom, c in a.terms.items()}, a.const * factor)


class Ramp:
    """An index per lane: base + stride * lane."""

    __slots__ = ("base", "lanes", "stride")

    def __init__(self, base: Index, stride: int, lanes: int) -> None:
        self.base = base
        self.stride = stride
        self.lanes = lanes

    def bounds(self) -> tuple[int, int]:
        low, high = self.base.bounds()
        span = self.stride * (self.lanes - 1)
        return low + min(0, span), high + max(0, span)


class Lanes:
    """An index per lane: base + the lane of a vector register of i32 or i64, whose lanes have known bounds.

    known: the lanes, where they are constants.
    """

    __slots__ = ("base", "bits", "high", "known", "lanes", "low", "name")

    def __init__(self, name: str, bits: int, lanes: int, low: int, high: int, base: Index = ZERO,
                 known: tuple[int, ...] | None = None) -> None:
        self.base = base
        self.known = known
        self.name = name
        self.bits = bits
        self.lanes = lanes
        self.low = low
        self.high = high

    def bounds(self) -> tuple[int, int]:
        low, high = self.base.bounds()
        return low + self.low, high + self.high


def known_lanes(base: Index, places: tuple[int, ...]) -> Lanes | None:
    """Returns base + a constant for each lane; None where these do not fit 32 bits."""
    if not all(-2**31 <= place < 2**31 for place in places):
        return None
    text = "<" + ", ".join(f"i32 {place}" for place in places) + ">"
    return Lanes(text, 32, len(places), min(places), max(places), base, places)


AnyIndex = Index | Ramp | Lanes
