"""References of operators of object detectors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from topi.testing.pooling import Array


def reorg_python(a_np: Array, stride: int) -> Array:
    """The rearrangement of YOLO v2 as transpositions: see topi.vision.reorg."""
    batch, channels, height, width = a_np.shape
    blocks = channels // (stride * stride)
    large = a_np.reshape(batch, blocks, height, stride, width, stride)
    moved = large.transpose(0, 3, 5, 1, 2, 4)  # the place in a block leads the channels
    return np.ascontiguousarray(moved).reshape(batch, channels * stride * stride, height // stride, width // stride)


def roi_align_nchw_python(a_np: Array, rois_np: Array, pooled_size: Any, spatial_scale: float, sample_ratio: int,
                          mode: Any = b"avg") -> Array:
    """Averages (maxima) of samples between pixels in parts of regions: see topi.vision.roi_align_nchw."""
    high, wide = (pooled_size, pooled_size) if isinstance(pooled_size, int) else pooled_size
    result = np.zeros((len(rois_np), a_np.shape[1], high, wide), a_np.dtype)
    for n, (image, x0, y0, x1, y1) in enumerate(rois_np):
        corner = np.array([y0, x0]) * spatial_scale
        part = np.maximum(np.array([y1, x1]) * spatial_scale - corner, 1.0) / [high, wide]
        grid = [sample_ratio] * 2 if sample_ratio > 0 else np.ceil(part).astype(int)
        for place in itertools.product(range(high), range(wide)):
            points = itertools.product(*[c + p * (k + (np.arange(g) + 0.5) / g)
                                         for c, p, k, g in zip(corner, part, place, grid)])
            samples = np.stack([_between(a_np[int(image)], y, x) for y, x in points])
            result[(n, slice(None), *place)] = samples.mean(0) if mode in (b"avg", "avg", 0) else samples.max(0)
    return result


def roi_align_nhwc_python(a_np: Array, rois_np: Array, pooled_size: Any, spatial_scale: float, sample_ratio: int,
                          mode: Any = b"avg") -> Array:
    """The same in NHWC."""
    return roi_align_nchw_python(a_np.transpose(0, 3, 1, 2), rois_np, pooled_size, spatial_scale, sample_ratio,
                                 mode).transpose(0, 2, 3, 1)


def _between(image: Array, y: float, x: float) -> Array:
    """The values of all channels at a point, linear between pixels."""
    high, wide = image.shape[1:]
    if not (-1 <= y <= high and -1 <= x <= wide):
        return np.zeros(len(image))
    y, x = np.clip(y, 0, high - 1), np.clip(x, 0, wide - 1)
    rows, columns = np.maximum(0, 1 - abs(np.arange(high) - y)), np.maximum(0, 1 - abs(np.arange(wide) - x))
    weighted: Array = np.einsum("cyx,y,x->c", image, rows, columns)
    return weighted


def roi_pool_nchw_python(a_np: Array, rois_np: Array, pooled_size: Any, spatial_scale: float) -> Array:
    """Maxima of the pixels in parts of regions: see topi.vision.roi_pool_nchw."""
    high, wide = (pooled_size, pooled_size) if isinstance(pooled_size, int) else pooled_size
    result = np.zeros((len(rois_np), a_np.shape[1], high, wide), a_np.dtype)
    for n, (image, *corners) in enumerate(rois_np):
        scaled = np.asarray(corners, rois_np.dtype) * rois_np.dtype.type(spatial_scale)
        x0, y0, x1, y1 = (np.trunc(scaled + np.copysign(0.5, scaled)).astype(int))  # halves away from zero
        for place in itertools.product(range(high), range(wide)):
            spans = [np.clip([start + k * max(end - start + 1, 1) // parts,
                              start - (-(k + 1) * max(end - start + 1, 1) // parts)], 0, extent)
                     for k, start, end, parts, extent in zip(place, (y0, x0), (y1, x1), (high, wide), a_np.shape[2:])]
            pixels = a_np[int(image), :, spans[0][0]:spans[0][1], spans[1][0]:spans[1][1]]
            result[(n, slice(None), *place)] = pixels.max((1, 2)) if pixels.size else 0
    return result
