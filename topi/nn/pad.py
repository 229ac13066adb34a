"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int, opening, shown
from topi.kinds import InjectiveOp


def pad(data: te.Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, pad_value: Any = 0.0,
        name: str = "PadInput") -> te.Tensor:
    """`data` with `pad_before[d]` and `pad_after[d]` elements of `pad_value` around each dimension d.

    pad_after None is pad_before. Same as numpy.pad of mode "constant".

    Raises ShapeError for lists that do not have the length of the rank.
    """
    where = opening("pad", data)
    after = pad_before if pad_after is None else pad_after
    for which, widths in (("pad_before", pad_before), ("pad_after", after)):
        if not hasattr(widths, "__len__"):
            raise ShapeError(f"{where}: {which} is {widths!r}", hint="give a list with one width for each dimension")
        if len(widths) != data.ndim:
            raise ShapeError(f"{where}: the tensor has {data.ndim} dimensions and {which} has {len(widths)} widths")
        if any(not isinstance(width, tir.Expr) and (as_int(width) is None or width < 0) for width in widths):
            raise ShapeError(f"{where}: {which} is {tuple(widths)}", hint="a width is a whole number from 0 on")
    value = te.const(pad_value, data.dtype) if isinstance(pad_value, (bool, int, float)) else pad_value
    shape = [extent + low + high for extent, low, high in zip(data.shape, pad_before, after)]
    padded = [d for d in range(data.ndim) if not _is_zero(pad_before[d]) or not _is_zero(after[d])]

    def formula(*i: Any) -> Expr:
        element = data(*[i[d] - pad_before[d] if d in padded else i[d] for d in range(data.ndim)])
        inside = [c for d in padded for c in (i[d] >= pad_before[d], i[d] < data.shape[d] + pad_before[d])]
        return te.if_then_else(te.all(*inside), element, value) if inside else element

    return te.compute(shape, formula, name=name, tag="injective,pad", info=InjectiveOp("pad"))


@checked
def mirror_pad(data: te.Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, mode: str = "SYMMETRIC",
               name: str = "MirrorPadInput") -> te.Tensor:
    """`data` mirrored at its borders, as far as `pad_before[d]` and `pad_after[d]` say.

    mode "SYMMETRIC": the elements at the border come twice; "REFLECT": once. Same as numpy.pad of these modes.

    Raises ArgumentError for an unknown mode, ShapeError for a margin wider than the data.
    """
    where, after = f"mirror_pad of {data.name}", pad_before if pad_after is None else pad_after
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise ArgumentError(f'{where}: mode is "{mode}"', hint='"SYMMETRIC" or "REFLECT"')
    once = 1 if mode == "REFLECT" else 0
    for which, widths in (("pad_before", pad_before), ("pad_after", after)):
        if len(widths) != data.ndim:
            raise ShapeError(f"{where}: the tensor has {data.ndim} dimensions and {which} has {len(widths)} widths")
        for width, extent in zip(widths, data.shape):
            there, asked = as_int(extent), as_int(width)
            if asked is not None and (asked < 0 or (there is not None and asked > max(there - once, 0))):
                raise ShapeError(f"{where}: {which} is {tuple(widths)} and the shape {shown(data.shape)}",
                                 hint=f"from 0 to the extent{' - 1' if once else ''}: there is no more to mirror")
    shape = [extent + low + high for extent, low, high in zip(data.shape, pad_before, after)]

    def mirrored(i: Any, low: Any, high: Any, n: Any) -> Any:
        at = i if _is_zero(low) else te.max(i - low, low - i - (1 - once))
        at = at if _is_zero(high) else te.min(at, 2 * n - at - (1 + once))
        # The ends are in reach where the width was checked: said here, they need no proof.
        return at if at is i or as_int(n) is None else te.max(te.min(at, n - 1), 0)

    def formula(*i: Any) -> Any:
        """Elements within a row are no mirrored ones: vectors of them are loads, not gathers."""
        places = list(map(mirrored, i, pad_before, after, data.shape))
        if not i or (_is_zero(pad_before[-1]) and _is_zero(after[-1])):
            return data(*places)
        at = i[-1] - pad_before[-1]
        return te.if_then_else(te.all(at >= 0, at < data.shape[-1]), data(*places[:-1], at), data(*places))

    padded: te.Tensor = te.compute(shape, formula, name=name, tag="injective,pad", info=InjectiveOp("mirror_pad"))
    return padded


def _is_zero(width: Any) -> bool:
    return isinstance(width, int) and width == 0
