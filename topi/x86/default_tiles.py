"""Tiles of templates that have no record: what TVM's templates of dense layers and convolutions call where `cfg.is_fallback`.

A loop of `extent` iterations is split so that the innermost ones fill registers and the next at most four of them. In a
convolution a vector is channels of the result, and the pixels of a tile have an accumulator each.
"""

from __future__ import annotations

from typing import Any

from tedsl import te, tir
from topi.nn.convolution.steps import Workload, _get_workload
from topi.transform import layout_transform
from topi.x86.utils import get_fp32_len, get_simd_32bit_lanes

_UNKNOWN = 16  # iterations that a loop of unknown extent is taken to have
_ACCUMULATORS = 31  # registers of the largest vectors, but one


def _default_dense_pack_config(cfg: Any, M: Any, N: Any, K: Any) -> None:
    """Sets the splits tile_y, tile_x, tile_k and tile_inner of `cfg` for a product of MxK by NxK with packed weights."""
    m, n, k = map(_extent, (M, N, K))
    lanes = _largest_divisor(n)
    rows = next(height for height in (8, 4, 2, 1) if m % height == 0)
    y, x = _at_most_four(m // rows), _at_most_four(n // lanes)
    cfg["tile_y"] = [m // rows // y, y, rows]
    cfg["tile_x"] = [n // lanes // x, x, lanes]
    cfg["tile_k"] = [k, 1]
    cfg["tile_inner"] = [m // rows, rows]


def _default_dense_nopack_config(cfg: Any, M: Any, N: Any, K: Any) -> None:
    """Sets the splits tile_x, tile_y and tile_k of `cfg` for a product of MxK by NxK whose sums are vectors along K."""
    m, n, k = map(_extent, (M, N, K))
    lanes = _largest_divisor(k)
    cfg["tile_y"], cfg["tile_x"], cfg["tile_k"] = [1, m], [n, 1], [k // lanes, lanes]


def _get_default_config(cfg: Any, data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: Any,
                        is_depthwise: bool = False, layout: str = "NCHW") -> None:
    """Sets the splits of `cfg` for a convolution of `data` (in `layout`) with `kernel` (OIHW), as `_fallback_schedule` does."""
    _fallback_schedule(cfg, _get_workload(data, kernel, strides, padding, dilation, out_dtype, layout))


def _fallback_schedule(cfg: Any, wkl: Workload) -> None:
    """Sets tile_ic, tile_oc, tile_ow of `cfg` for a convolution; for windows of one pixel tile_oh too, else unroll_kw."""
    lanes = get_simd_32bit_lanes()
    window = [(k - 1) * gap + 1 for k, gap in ((wkl.kernel_h, wkl.dilation_h), (wkl.kernel_w, wkl.dilation_w))]
    rows = (wkl.height + wkl.padt + wkl.padb - window[0]) // wkl.stride_h + 1
    columns = (wkl.width + wkl.padl + wkl.padr - window[1]) // wkl.stride_w + 1
    oc = _divisor(wkl.out_filter, lanes)
    ic = _divisor(wkl.in_filter, oc)
    cfg["tile_ic"], cfg["tile_oc"] = [wkl.in_filter // ic, ic], [wkl.out_filter // oc, oc]
    ow = _divisor(columns, _ACCUMULATORS)
    cfg["tile_ow"] = [columns // ow, ow]
    if wkl.kernel_h == wkl.kernel_w == 1:
        oh = _divisor(rows, max(_ACCUMULATORS // ow, 1))
        cfg["tile_oh"] = [rows // oh, oh]
    else:
        cfg["unroll_kw"] = False


def _pack_data(cfg: Any, data: te.Tensor, kernel: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    """Data NCHW and a kernel OIHW in blocks of channels, those of the splits tile_ic and tile_oc of `cfg`."""
    ic, oc = (cfg[knob].size[-1] for knob in ("tile_ic", "tile_oc"))
    return layout_transform(data, "NCHW", f"NCHW{ic}c"), layout_transform(kernel, "OIHW", f"OIHW{ic}i{oc}o")


def _divisor(extent: int, most: int) -> int:
    """The largest divisor of `extent` up to `most`."""
    return next(number for number in range(min(extent, most), 0, -1) if extent % number == 0)


def _extent(size: Any) -> int:
    if isinstance(size, tir.Var | tir.Any):
        return _UNKNOWN
    return int(size)


def _largest_divisor(extent: int) -> int:
    """The largest divisor of `extent` that two vectors of the target hold as float32."""
    return next(width for width in range(2 * get_fp32_len(), 0, -1) if extent % width == 0)


def _at_most_four(extent: int) -> int:
    """The smallest power of two that leaves four iterations at most, or an odd number of them."""
    factor = 1
    while extent // factor > 4 and extent // factor % 2 == 0:
        factor *= 2
    return factor
