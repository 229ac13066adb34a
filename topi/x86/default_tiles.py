"""Tiles of templates that have no record: what TVM's templates of dense layers call where `cfg.is_fallback`.

A loop of `extent` iterations is split so that the innermost ones fill registers and the next at most four of them.
"""

from __future__ import annotations

from typing import Any

from tedsl import tir
from topi.x86.utils import get_fp32_len

_UNKNOWN = 16  # iterations that a loop of unknown extent is taken to have


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
