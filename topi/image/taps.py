"""Interpolation: along each dimension the result is a weighted sum of neighbouring elements.

A tap is (place, weight, whether the place is inside of the data). The weights of the dimensions are multiplied; None is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError
from tedsl.record import record
from topi.extents import as_int

METHODS = {"nearest_neighbor": "nearest", "nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
           "cubic": "cubic", "bicubic": "cubic"}
ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "round": te.round,
    "round_prefer_floor": lambda x: te.ceil(x - te.const(0.5, x.dtype)),
    "round_prefer_ceil": lambda x: te.floor(x + te.const(0.5, x.dtype)),
    "floor": lambda x: te.floor(x + te.const(1e-5, x.dtype)),
    "ceil": lambda x: te.ceil(x - te.const(1e-5, x.dtype)),
    "even": te.nearbyint,
}


@record
class Tap:
    """One neighbour along one dimension."""

    place: Any
    weight: Any
    inside: Any


@record
class Ratio:
    """A place between elements that is a quotient of integers: `number` by `divisor`, a positive constant.

    Rounding down and what is left are computed with integers, exactly; vectors of them need no conversion that saturates.
    """

    number: Any
    divisor: int
    wide: str

    @property
    def value(self) -> Any:
        """The place as a float."""
        return self.number.astype(self.wide) / te.const(float(self.divisor), self.wide)

    def split(self) -> tuple[Any, Any]:
        """The element at or before the place, and how far the place is behind it."""
        rest = Ratio(te.floormod(self.number, self.divisor), self.divisor, self.wide)
        return te.floordiv(self.number, self.divisor).astype("int32"), rest.value


def method_of(method: str, where: str) -> str:
    """"nearest", "linear" or "cubic" from any of TVM's names."""
    method_taps = METHODS.get(method.lower()) if isinstance(method, str) else None
    if method_taps is None:
        raise ArgumentError(f'{where}: method is "{method}"', hint='"nearest_neighbor", "linear" or "cubic"')
    return method_taps


def taps(x: Any, extent: Any, method: str, rounding: str = "round", alpha: float = -0.5) -> list[Tap]:
    """The neighbours of the place `x`, a float or a Ratio, along a dimension of `extent` elements.

    cubic: the kernel of Keys (1981) with the parameter alpha.
    """
    if method == "nearest":
        return [_tap(_rounded(x, rounding), None, extent)]
    at, t = _split(x)
    if method == "linear":
        return [_tap(at, 1 - t, extent), _tap(at + 1, t, extent)]
    a, square, cube = te.const(alpha, t.dtype), t * t, t * t * t
    weights = [a * (cube - 2 * square + t), (a + 2) * cube - (a + 3) * square + 1,
               (2 * a + 3) * square - (a + 2) * cube - a * t, a * (square - cube)]
    return [_tap(at + (n - 1), weight, extent) for n, weight in enumerate(weights)]


def _rounded(x: Any, rounding: str) -> Any:
    if not isinstance(x, Ratio):
        return ROUNDINGS[rounding](x).astype("int32")
    if rounding == "floor":
        return x.split()[0]
    if rounding == "ceil":
        return 0 - Ratio(0 - x.number, x.divisor, x.wide).split()[0]
    return ROUNDINGS[rounding](x.value).astype("int32")


def _split(x: Any) -> tuple[Any, Any]:
    """The element at or before the place, and how far the place is behind it."""
    if isinstance(x, Ratio):
        return x.split()
    first = te.floor(x)
    return first.astype("int32"), x - first


def excluding(row: Sequence[Tap]) -> list[Tap]:
    """The taps with weight 0 outside of the data; the other weights are scaled so that all add up to 1."""
    kept = [te.if_then_else(tap.inside, tap.weight, te.const(0, tap.weight.dtype)) for tap in row]
    total = kept[0]
    for weight in kept[1:]:
        total = total + weight
    return [Tap(tap.place, weight / total, tap.inside) for tap, weight in zip(row, kept)]


def clamped(place: Any, extent: Any) -> Any:
    """`place` clamped to the data."""
    return te.max(te.min(place, extent - 1), 0)


def weighted(rows: Sequence[Sequence[Tap]], read: Callable[..., Any]) -> Any:
    """The sum of read(taps) times the weights, over one tap of each dimension."""
    total = None
    for chosen in product(*rows):
        term = read(*chosen)
        for tap in chosen:
            term = term if tap.weight is None else term * tap.weight
        total = term if total is None else total + term
    return total


def read_inside(read: Callable[..., Any], chosen: Sequence[Tap], extents: Sequence[Any], outside: Any) -> Any:
    """read(places) where all of the taps are inside of data of `extents`, else `outside`.

    What is read for a tap outside is an element at the border, which is then not used: vectors need no masks for their loads.
    """
    value = read(*[clamped(tap.place, extent) for tap, extent in zip(chosen, extents)])
    found = te.select(te.all(*[tap.inside for tap in chosen]), value, outside)
    unknown = [extent > 0 for extent in extents if not as_int(extent)]  # without elements there is none at the border
    return te.if_then_else(te.all(*unknown), found, outside) if unknown else found


def _tap(place: Any, weight: Any, extent: Any) -> Tap:
    return Tap(place, weight, te.all(place >= 0, place < extent))
