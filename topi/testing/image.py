"""Operators on images in plain numpy, by TVM's names, computed position by position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np

from tedsl.errors import ArgumentError
from topi.nn.utils import get_pad_tuple

Array = np.ndarray[Any, Any]
MODES: dict[str, Any] = {
    "half_pixel": lambda i, n, out: (i + 0.5) * n / out - 0.5,
    "pytorch_half_pixel": lambda i, n, out: (i + 0.5) * n / out - 0.5 if out > 1 else 0.0,
    "align_corners": lambda i, n, out: i * (n - 1) / (out - 1) if out > 1 else 0.0,
    "asymmetric": lambda i, n, out: i * n / out,
    "tf_half_pixel_for_nn": lambda i, n, out: (i + 0.5) * n / out,
}
ROUNDINGS: dict[str, Any] = {"round": lambda x: floor(abs(x) + 0.5) * (1 if x >= 0 else -1), "floor": lambda x: floor(x + 1e-5),
                             "ceil": lambda x: ceil(x - 1e-5), "round_prefer_floor": lambda x: ceil(x - 0.5),
                             "round_prefer_ceil": lambda x: floor(x + 0.5), "even": round}


def taps(x: float, n: int, method: str, rounding: str = "round", alpha: float = -0.5) -> list[tuple[int, float]]:
    """(place, weight) of the neighbours of x."""
    if method == "nearest_neighbor":
        return [(ROUNDINGS[rounding](x), 1.0)]
    at, t = floor(x), x - floor(x)
    if method == "linear":
        return [(at, 1 - t), (at + 1, t)]

    def keys(d: float) -> float:
        if d <= 1:
            return (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
        return alpha * d**3 - 5 * alpha * d**2 + 8 * alpha * d - 4 * alpha

    return [(at + k, keys(abs(t - k))) for k in (-1, 0, 1, 2)]


def resize_python(data: Array, size: Sequence[int], method: str, mode: str, rounding: str = "", alpha: float = -0.5,
                  exclude: bool = False) -> Array:
    """`data` (n, c, *space) resized to the spatial extents `size`."""
    rounding, out = rounding or ("round" if mode == "align_corners" else "floor"), np.zeros((*data.shape[:2], *size))
    for place in np.ndindex(*size):
        rows = []
        for i, n, extent in zip(place, data.shape[2:], size):
            row = taps(MODES[mode](i, n, extent), n, method, rounding, alpha)
            if exclude and method == "cubic":
                kept = [w if 0 <= at < n else 0.0 for at, w in row]
                row = [(at, w / sum(kept)) for (at, _), w in zip(row, kept)]
            rows.append([(min(max(at, 0), n - 1), w) for at, w in row])
        for chosen in product(*rows):
            weight = float(np.prod([w for _, w in chosen]))
            out[_index(slice(None), slice(None), *place)] += data[_index(..., *[at for at, _ in chosen])] * weight
    return out.astype(data.dtype)


def resize1d_python(data: Array, scale: Sequence[float], layout: str = "NCW", method: str = "nearest_neighbor",
                    coordinate_transformation_mode: str = "align_corners", bicubic_alpha: float = -0.5,
                    rounding_method: str = "") -> Array:
    """data with its width multiplied by `scale`; layout "NCW" or "NWC"."""
    return _scaled(data, scale, layout, method, coordinate_transformation_mode, bicubic_alpha, rounding_method)


def resize2d_python(data: Array, scale: Sequence[float], layout: str = "NCHW", method: str = "nearest_neighbor",
                    coordinate_transformation_mode: str = "align_corners", bicubic_alpha: float = -0.5,
                    rounding_method: str = "") -> Array:
    """data with height and width multiplied by `scale`; layout "NCHW" or "NHWC"."""
    return _scaled(data, scale, layout, method, coordinate_transformation_mode, bicubic_alpha, rounding_method)


def resize3d_python(data: Array, scale: Sequence[float], layout: str = "NCDHW", method: str = "nearest_neighbor",
                    coordinate_transformation_mode: str = "align_corners", bicubic_alpha: float = -0.5,
                    rounding_method: str = "") -> Array:
    """data with depth, height and width multiplied by `scale`; layout "NCDHW" or "NDHWC"."""
    return _scaled(data, scale, layout, method, coordinate_transformation_mode, bicubic_alpha, rounding_method)


def _scaled(data: Array, scale: Sequence[float], layout: str, method: str, mode: str, alpha: float, rounding: str) -> Array:
    """data with its spatial extents multiplied by `scale`, channels second or last."""
    moved = np.moveaxis(data, -1, 1) if layout.endswith("C") else data
    if np.shape(scale) != (moved.ndim - 2,):
        raise ArgumentError(f"the factors of {moved.ndim - 2} spatial dimensions are {scale!r}", hint="one number for each")
    size = [int(n * s + 0.5) for n, s in zip(moved.shape[2:], scale)]
    result = resize_python(moved, size, method, mode, rounding, alpha)
    return np.moveaxis(result, 1, -1) if layout.endswith("C") else result


def bilinear_resize_python(image: Array, out_size: Sequence[int], layout: str,
                           coordinate_transformation_mode: str | bool = "align_corners") -> Array:
    """image resized to `out_size` (height, width), layout "NCHW" or "NHWC": the reference of TVM 0.6, whose last parameter is
    align_corners, and 0.7.
    """
    return _to_size(image, out_size, layout, coordinate_transformation_mode)


def trilinear_resize3d_python(data_in: Array, out_size: Sequence[int], layout: str,
                              coordinate_transformation_mode: str | bool = "align_corners") -> Array:
    """data_in resized to `out_size` (depth, height, width), layout "NCDHW" or "NDHWC": the reference of TVM 0.6 and 0.7."""
    return _to_size(data_in, out_size, layout, coordinate_transformation_mode)


def _to_size(data: Array, size: Sequence[int], layout: str, mode: str | bool) -> Array:
    if isinstance(mode, bool):
        mode = "align_corners" if mode else "asymmetric"
    moved = np.moveaxis(data, -1, 1) if layout.endswith("C") else data
    result = resize_python(moved, size, "linear", mode)
    return np.moveaxis(result, 1, -1) if layout.endswith("C") else result


def upsampling_python(data: Array, scale: Sequence[float], layout: str = "NCHW", method: str = "nearest_neighbor",
                      align_corners: bool = False) -> Array:
    """data with height and width multiplied by `scale`; method "nearest_neighbor", "bilinear" or "bicubic"."""
    kind = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    return resize2d_python(data, scale, layout, kind, "align_corners" if align_corners else "asymmetric")


def upsampling3d_python(data: Array, scale: Sequence[float], layout: str = "NCDHW", method: str = "nearest_neighbor",
                        coordinate_transformation_mode: str = "half_pixel") -> Array:
    """data with depth, height and width multiplied by `scale`; method "nearest_neighbor" or "trilinear"."""
    moved = np.moveaxis(data, -1, 1) if layout == "NDHWC" else data
    result = resize_python(moved, [int(n * s + 0.5) for n, s in zip(moved.shape[2:], scale)],
                         {"trilinear": "linear"}.get(method, method), coordinate_transformation_mode)
    return np.moveaxis(result, 1, -1) if layout == "NDHWC" else result


def crop_and_resize_python(image: Array, boxes: Array, box_indices: Array, crop_size: Sequence[int], layout: str,
                           method: str = "bilinear", extrapolation_value: float = 0) -> Array:
    """The boxes (y start, x start, y end, x end) of images (n, c, h, w) or (n, h, w, c), each resized to `crop_size`."""
    data = np.moveaxis(image, -1, 1) if layout == "NHWC" else image
    out = np.empty((len(boxes), data.shape[1], *crop_size))
    for b, y, x in np.ndindex(len(boxes), *crop_size):
        rows, inside = [], True
        for d, (i, extent) in enumerate(zip((y, x), crop_size)):
            start, end, last = float(boxes[b, d]), float(boxes[b, d + 2]), data.shape[d + 2] - 1
            at = start * last + i * (end - start) * last / (extent - 1) if extent > 1 else 0.5 * (start + end) * last
            inside = inside and 0 <= at <= last
            row = taps(at, last + 1, {"bilinear": "linear"}.get(method, method))
            rows.append([(min(max(place, 0), last), w) for place, w in row])
        out[b, :, y, x] = extrapolation_value
        if inside:
            out[b, :, y, x] = sum(data[box_indices[b], :, j, i] * v * w for (j, v), (i, w) in product(*rows))
    return (np.moveaxis(out, 1, -1) if layout == "NHWC" else out).astype(image.dtype)


def affine_grid_python(data: Array, target_shape: Sequence[int], align_corners: bool = True) -> Array:
    """The product of data (n, 2, 3) with the positions of the pixels, from -1 to 1."""
    rows, columns = [np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1 for n in target_shape]
    y, x = np.meshgrid(rows, columns, indexing="ij")
    result: Array = np.einsum("nck,khw->nchw", data, np.stack([x, y, np.ones_like(x)])).astype(data.dtype)
    return result


def dilation2d_python(data: Array, kernel: Array, stride: Sequence[int], padding: Sequence[int],
                      dilation: Sequence[int]) -> Array:
    """The dilation of data (n, c, h, w) by kernel (c, h, w): the largest sums over the windows; zeros around the data."""
    padded = np.pad(data, [(0, 0), (0, 0), (padding[0], padding[2]), (padding[1], padding[3])])
    results = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(padded.shape[2:], kernel.shape[1:], dilation, stride)]
    out = np.full((*data.shape[:2], *results), -np.inf)
    for place in np.ndindex(*kernel.shape[1:]):
        where = [slice(at * d, at * d + (r - 1) * s + 1, s) for at, d, r, s in zip(place, dilation, results, stride)]
        out = np.maximum(out, padded[_index(..., *where)] + kernel[_index(slice(None), *place)][:, None, None])
    return out.astype(data.dtype)


def dilation2d_nchw_python(input_np: Array, filter_np: Array, stride: Any, padding: Any, dilations: Any) -> Array:
    """The dilation of input (n, c, h, w) by filter (c, h, w)."""
    steps, gaps = (list(one) if isinstance(one, (list, tuple)) else [one, one] for one in (stride, dilations))
    extents = [(k - 1) * gap + 1 for k, gap in zip(filter_np.shape[1:], gaps)]
    return dilation2d_python(input_np, filter_np, steps, get_pad_tuple(padding, extents), gaps)


def dilation2d_nhwc_python(input_np: Array, filter_np: Array, stride: Any, padding: Any, dilations: Any) -> Array:
    """The dilation of input (n, h, w, c) by filter (h, w, c)."""
    result = dilation2d_nchw_python(input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 0, 1), stride, padding, dilations)
    return result.transpose(0, 2, 3, 1)


def _index(*parts: Any) -> Any:
    return parts
