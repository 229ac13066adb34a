"""Resizing of images: each element of the result is interpolated at a position between elements of the data.

The position x of element i, of `out` elements along a dimension, among the n elements of the data depends on
coordinate_transformation_mode (ONNX, Resize):

    half_pixel            (i + 0.5) * n / out - 0.5              pytorch_half_pixel    the same, 0 where out is 1
    align_corners         i * (n - 1) / (out - 1)                tf_half_pixel_for_nn  (i + 0.5) * n / out
    asymmetric            i * n / out                            tf_crop_and_resize    from roi's start to its end

The data is interpolated there by method "nearest_neighbor" (rounded by rounding_method), "linear" or "cubic"; outside of the
data the element at the border is used.

Positions are quotients of integers and rounded as they are exactly; those of symbolic extents are divided as floats, and there
"floor" and "ceil" forgive 1e-5, as TVM's do. torch multiplies by a
factor of float32: nearest from 480 to 224 rows takes row 254 where 119 * 480 / 224 is 255.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked, takes_older_calls
from topi.extents import as_int, opening
from topi.image.taps import ROUNDINGS, Ratio, Tap, clamped, excluding, method_of, taps, weighted
from topi.injective import injective
from topi.nn.pool.layout import letters_of

Size = int | Sequence[Any]
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize")


def _with_roi(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a resizing; before TVM 0.8 there was no roi between the data and the size."""
    if "roi" in kwargs:
        return args
    if len(args) == 1 and "size" in kwargs:
        kwargs["roi"] = None
    elif (len(args) == 2 and "size" not in kwargs) or (len(args) > 2 and isinstance(args[2], str)):
        return (args[0], None, *args[1:])
    return args


@takes_older_calls(_with_roi)
@checked
def resize1d(data: te.Tensor, roi: Any, size: Size, layout: str = "NCW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Any = None,
             output_shape: Any = None) -> te.Tensor:
    """`data` with the width size[0]. roi: (start, end) of tf_crop_and_resize, as parts of the width; else not read."""
    return _resize("resize1d", "W", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method,
                   bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype)


@takes_older_calls(_with_roi)
@checked
def resize2d(data: te.Tensor, roi: Any, size: Size, layout: str = "NCHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Any = None,
             output_shape: Any = None) -> te.Tensor:
    """`data` with height and width of `size`. roi: (y start, x start, y end, x end) of tf_crop_and_resize."""
    return _resize("resize2d", "HW", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method,
                   bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype)


@checked
def resize(data: te.Tensor, size: Size, layout: str = "NCHW", method: str = "bilinear",
           coordinate_transformation_mode: str = "half_pixel", out_dtype: Any = None, output_shape: Any = None, *,
           align_corners: bool | None = None) -> te.Tensor:
    """resize2d as it was called before TVM 0.8. method: "nearest_neighbor", "bilinear" or "bicubic", in any case.

    align_corners: the parameter of 0.6, in place of coordinate_transformation_mode: "align_corners" or "asymmetric".
    """
    if align_corners is None and isinstance(coordinate_transformation_mode, bool):
        align_corners = coordinate_transformation_mode
    mode = coordinate_transformation_mode if align_corners is None else "align_corners" if align_corners else "asymmetric"
    rounding = "round" if mode == "align_corners" else "floor"
    method = {"bilinear": "linear", "bicubic": "cubic"}.get(method.lower(), method.lower())
    return resize2d(data, None, size, layout, method, mode, rounding, out_dtype=out_dtype)


@takes_older_calls(_with_roi)
@checked
def resize3d(data: te.Tensor, roi: Any, size: Size, layout: str = "NCDHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Any = None,
             output_shape: Any = None) -> te.Tensor:
    """`data` with depth, height and width of `size`. roi: the three starts, then the three ends, of tf_crop_and_resize."""
    return _resize("resize3d", "DHW", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method,
                   bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype)


@checked
def crop_and_resize(data: te.Tensor, boxes: te.Tensor, box_indices: te.Tensor, crop_size: Size, layout: str = "NCHW",
                    method: str = "bilinear", extrapolation_value: float | None = 0, out_dtype: Any = None) -> te.Tensor:
    """Boxes of images, each resized to `crop_size`: the same as tf.image.crop_and_resize.

    boxes: (number, 4) of (y start, x start, y end, x end) as parts of the image. box_indices: (number,), the image of each.
    What lies outside of the image is extrapolation_value; None is 0.
    """
    where = opening("crop_and_resize", data)
    if boxes.ndim != 2 or as_int(boxes.shape[1]) not in (4, None) or box_indices.ndim != 1:
        raise ShapeError(f"{where}: boxes are {tuple(boxes.shape)} and box_indices {tuple(box_indices.shape)}",
                         hint="(number, 4) and (number,)")
    return _resize("crop_and_resize", "HW", data, None, crop_size, layout, method, "tf_crop_and_resize", "round", -0.5, 0,
                   extrapolation_value or 0.0, out_dtype, boxes, box_indices)


def _resize(operator: str, space: str, data: te.Tensor, roi: Any, size: Size, layout: str, method: str, mode: str,
            rounding: str, alpha: float, exclude: int, outside: float, out_dtype: Any, boxes: te.Tensor | None = None,
            box_indices: te.Tensor | None = None) -> te.Tensor:
    where = opening(operator, data)
    letters, kind = letters_of(layout, data, space, where), method_of(method, where)
    extents = _sizes(size, len(space), where)
    rounding = rounding or ("round" if mode == "align_corners" else "floor")
    if mode not in MODES or rounding not in ROUNDINGS:
        raise ArgumentError(f'{where}: coordinate_transformation_mode is "{mode}", rounding_method "{rounding}"',
                            hint=f"modes: {', '.join(MODES)}; roundings: {', '.join(ROUNDINGS)}")
    places, wide = [letters.index(letter) for letter in space], "float64" if data.dtype == "float64" else "float32"
    dtype, batch = out_dtype or data.dtype, letters.index("N")
    shape = [boxes.shape[0] if boxes is not None and d == batch else n for d, n in enumerate(data.shape)]
    for d, extent in zip(places, extents):
        shape[d] = extent

    def formula(*i: Any) -> Any:
        rows, inside, at = [], [], list(i)
        for number, d in enumerate(places):
            if kind == "nearest" and rounding == "floor" and mode == "asymmetric" and _repeats(data.shape[d], extents[number]):
                rows.append([Tap(i[d] // (extents[number] // data.shape[d]), None, True)])
                continue
            part = _part(roi, boxes, i[batch], number, len(places), wide) if mode == "tf_crop_and_resize" else (None, None)
            x = _coordinate(i[d], data.shape[d], extents[number], mode, wide, *part)
            row = taps(x, data.shape[d], kind, rounding, alpha)
            rows.append(excluding(row) if exclude and kind == "cubic" else row)
            inside += [x >= 0, x <= _float(data.shape[d] - 1, wide)] if mode == "tf_crop_and_resize" else []
        if box_indices is not None:
            at[batch] = box_indices(i[batch])

        def read(*chosen: Any) -> Any:
            for d, tap in zip(places, chosen):
                at[d] = clamped(tap.place, data.shape[d])
            return data(*at) if kind == "nearest" else data(*at).astype(wide)

        value = weighted(rows, read).astype(dtype)
        if not inside:
            return value
        # Places are clamped: what is read for those outside is not used, and vectors need no masks for their loads.
        choose = te.select if all(as_int(data.shape[d]) for d in places) else te.if_then_else
        return choose(te.all(*inside), value, te.const(outside, wide).astype(dtype))

    return injective(operator, shape, formula, name=operator)


def _sizes(size: Size, rank: int, where: str) -> list[Any]:
    given = list(size) if isinstance(size, (tuple, list)) else [size] * rank
    if len(given) != rank or any(extent is not None and extent < 1 for extent in map(as_int, given)):
        raise ShapeError(f"{where}: size is {tuple(given)} for {rank} spatial dimensions", hint="one extent from 1 on for each")
    return given


def _part(roi: Any, boxes: te.Tensor | None, box: Any, number: int, rank: int, wide: str) -> tuple[Any, Any]:
    """The start and the end of the part that is resized, as fractions of the extent."""
    if boxes is not None:
        return boxes(box, number).astype(wide), boxes(box, number + rank).astype(wide)
    start, end = (roi(n) if isinstance(roi, te.Tensor) else roi[n] for n in (number, number + rank))
    return _float(start, wide), _float(end, wide)


def _coordinate(i: Any, n: Any, out: Any, mode: str, wide: str, start: Any, end: Any) -> Any:
    """The position of element i of `out` among n elements: a Ratio if both are constants, else computed with integers and one
    division, so that halves are exact.
    """
    single = as_int(out) == 1
    if mode == "tf_crop_and_resize":
        last = _float(n - 1, wide)
        middle = te.const(0.5, wide) * (start + end) * last
        return middle if single else start * last + i.astype(wide) * (end - start) * last / _float(out - 1, wide)
    if single and mode in ("align_corners", "pytorch_half_pixel"):
        return te.const(0, wide)
    step, offset, divisor = {"align_corners": (n - 1, 0, out - 1), "asymmetric": (n, 0, out),
                             "tf_half_pixel_for_nn": (2 * n, n, 2 * out)}.get(mode, (2 * n, n - out, 2 * out))
    a, b, whole = as_int(step), as_int(offset), as_int(divisor)
    if a is not None and b is not None and whole is not None:
        common = math.gcd(a, b, whole)
        return Ratio(i * (a // common) + b // common, whole // common, wide)
    return (i * step + offset).astype(wide) / _float(divisor, wide)


def _repeats(n: Any, out: Any) -> bool:
    """Whether each element is simply repeated: the extent of the result is a multiple of that of the data, so that positions
    are integers.
    """
    extent, wanted = as_int(n), as_int(out)
    return extent is not None and wanted is not None and extent > 0 and wanted % extent == 0


def _float(value: Any, wide: str) -> Any:
    number = value if isinstance(value, float) else as_int(value)
    return te.const(float(number), wide) if number is not None else value.astype(wide)
