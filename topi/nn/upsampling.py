"""Larger images by a factor: `topi.image.resize2d` with the extents multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import Extents, checked
from topi.extents import as_int, opening, shown
from topi.image.resize import resize2d, resize3d
from topi.nn.pool.layout import letters_of


@checked
def upsampling(data: te.Tensor, scale_h: float, scale_w: float | str | None = None, layout: str = "NCHW",
               method: str = "nearest_neighbor", align_corners: bool = False,
               output_shape: Extents | None = None) -> te.Tensor:
    """`data` with height * scale_h and width * scale_w, rounded; method: "nearest_neighbor", "bilinear" or "bicubic".

    upsampling(data, scale, layout, method), as before TVM 0.6: one factor for both; scale_w=None means scale_h.
    """
    if isinstance(scale_w, str):
        layout, method, scale_w = scale_w, method if layout == "NCHW" else layout, None
    scale_w, method = scale_h if scale_w is None else scale_w, method.lower()
    where = opening("upsampling", data)
    size = _scaled(data, letters_of(layout, data, "HW", where), "HW", (scale_h, scale_w), output_shape, where)
    return resize2d(data, (0.0,) * 4, size, layout, method, "align_corners" if align_corners else "asymmetric")


@checked
def upsampling3d(data: te.Tensor, scale_d: float, scale_h: float, scale_w: float, layout: str = "NCDHW",
                 method: str = "nearest_neighbor", coordinate_transformation_mode: str = "half_pixel",
                 output_shape: Extents | None = None) -> te.Tensor:
    """`data` with depth, height and width multiplied; method: "nearest_neighbor" or "trilinear"."""
    where = opening("upsampling3d", data)
    size = _scaled(data, letters_of(layout, data, "DHW", where), "DHW", (scale_d, scale_h, scale_w), output_shape, where)
    return resize3d(data, (0.0,) * 6, size, layout, method, coordinate_transformation_mode)


def _scaled(data: te.Tensor, letters: str, space: str, scales: Sequence[float], output_shape: Any, where: str) -> list[Any]:
    places = [letters.index(letter) for letter in space]
    if output_shape is not None:
        if len(output_shape) != data.ndim:
            raise ShapeError(f"{where}: output_shape is {shown(output_shape)} for data of {data.ndim} dimensions",
                             hint=f"the shape of the whole result, in the layout {letters}")
        return [output_shape[d] for d in places]
    extents = []
    for d, scale in zip(places, scales):
        extent = as_int(data.shape[d])
        if extent is None and scale != int(scale):
            raise ShapeError(f"{where}: dimension {d} is known only at the call and the scale is {scale}",
                             hint="a whole number, or say output_shape")
        extents.append(data.shape[d] * int(scale) if extent is None else int(extent * scale + 0.5))
    return extents
