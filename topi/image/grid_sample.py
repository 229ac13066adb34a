"""Sampling images at positions held in a tensor: the two parts of a spatial transformer (Jaderberg et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, differ, opening, shown
from topi.image.taps import clamped, method_of, read_inside, taps, weighted
from topi.injective import injective

PADDINGS = ("zeros", "border", "reflection")


@checked
def affine_grid(data: te.Tensor, target_shape: Sequence[int], align_corners: bool = True) -> te.Tensor:
    """The places (x, y) = data[n] @ (x', y', 1) for the pixels x', y' of an image of `target_shape`, from -1 to 1.

    data: (batch, 2, 3). Returns (batch, 2, height, width), for grid_sample. align_corners: -1 and 1 are the middles of the
    pixels at the border, else their outer edges. The same as torch.nn.functional.affine_grid with the dimensions moved.
    """
    where = opening("affine_grid", data)
    if data.ndim != 3 or differ(data.shape[1], 2) or differ(data.shape[2], 3):
        raise ShapeError(f"{where}: the shape is {shown(data.shape)}", hint="(batch, 2, 3)")
    if len(target_shape) != 2 or any(n is not None and n < (2 if align_corners else 1) for n in map(as_int, target_shape)):
        raise ShapeError(f"{where}: target_shape is {tuple(target_shape)}", hint="(height, width), from 2 on")

    def pixel(i: Any, extent: Any) -> Any:
        last = extent - 1 if align_corners else extent
        place = i.astype(data.dtype) * 2 if align_corners else i.astype(data.dtype) * 2 + 1
        return place / (te.const(last, data.dtype) if isinstance(last, int) else last.astype(data.dtype)) - 1

    def formula(n: Any, c: Any, y: Any, x: Any) -> Any:
        return data(n, c, 0) * pixel(x, target_shape[1]) + data(n, c, 1) * pixel(y, target_shape[0]) + data(n, c, 2)

    return injective("affine_grid", (data.shape[0], 2, *target_shape), formula, name="affine_grid", tag="affine_grid")


@checked
def grid_sample(data: te.Tensor, grid: te.Tensor, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
                align_corners: bool = True) -> te.Tensor:
    """data[n, c] read at the places that `grid` gives: (x, y[, z]) along dimension 1, from -1 to 1.

    data: (batch, channel, height, width), or with a depth "NCDHW". grid: (batch, 2, height, width) of the result; with a depth
    (batch, 3, ...). method: "nearest", "bilinear" or (two dimensions) "bicubic". padding_mode: what is outside, "zeros", the
    "border", or the image mirrored, "reflection". The same as torch.nn.functional.grid_sample with the dimensions moved.
    """
    where, kind = f"grid_sample of {data.name} and {grid.name}", method_of(method, f"grid_sample of {data.name}")
    rank = {"NCHW": 2, "NCDHW": 3}.get(layout)
    if rank is None or padding_mode not in PADDINGS or (kind == "cubic" and rank == 3):
        raise ArgumentError(f'{where}: layout "{layout}", method "{method}", padding_mode "{padding_mode}"',
                            hint=f'"NCHW" or "NCDHW" (not bicubic); {", ".join(PADDINGS)}')
    if data.ndim != rank + 2 or grid.ndim != rank + 2 or differ(grid.shape[1], rank) or differ(grid.shape[0], data.shape[0]):
        raise ShapeError(f"{where}: the shapes are {shown(data.shape)} and {shown(grid.shape)}",
                         hint=f"{layout}, and (batch, {rank}, ...)")

    def place(x: Any, n: Any) -> Any:
        """The fractional index of the coordinate `x` in -1 .. 1 along a dimension of `n` elements."""
        size = (n - 1 if align_corners else n).astype(grid.dtype)
        at = (x + 1) * size / 2 if align_corners else ((x + 1) * size - 1) / 2
        if padding_mode == "zeros" or kind == "cubic":
            return at
        at = _mirrored(at, n, align_corners) if padding_mode == "reflection" else at
        return te.max(te.min(at, (n - 1).astype(grid.dtype)), te.const(0, grid.dtype))

    def formula(n: Any, c: Any, *i: Any) -> Any:
        extents = data.shape[2:]
        rows = [taps(place(grid(n, rank - 1 - d, *i), extent), extent, kind, "even", -0.75) for d, extent in enumerate(extents)]

        def read(*chosen: Any) -> Any:
            if padding_mode == "zeros":
                return read_inside(lambda *places: data(n, c, *places), chosen, extents, te.const(0, data.dtype))
            return data(n, c, *[_inside(tap.place, extent, padding_mode, align_corners, grid.dtype)
                                for tap, extent in zip(chosen, extents)])

        return weighted(rows, read).astype(data.dtype)

    return injective("grid_sample", (*data.shape[:2], *grid.shape[2:]), formula, name="grid_sample", tag="grid_sample")


def _inside(place: Any, extent: Any, padding_mode: str, align_corners: bool, dtype: Any) -> Any:
    """The index inside the image that padding_mode "border" or "reflection" reads for `place`."""
    if padding_mode == "reflection":
        place = _mirrored(place.astype(dtype), extent, align_corners).astype("int32")
    return clamped(place, extent)


def _mirrored(x: Any, n: Any, align_corners: bool) -> Any:
    """`x` mirrored, repeatedly if needed, at the centres (align_corners) or the outer edges of the elements at the border."""
    low = te.const(0.0 if align_corners else -0.5, x.dtype)
    span = te.max((n - 1 if align_corners else n), 1).astype(x.dtype)
    away = te.abs(x - low)
    turns = te.floor(away / span)
    rest = away - turns * span
    return low + te.select((turns - 2 * te.floor(turns / 2)) > 0, span - rest, rest)
