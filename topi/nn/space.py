"""Blocks of space become channels or batches, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, indices_at, row_major, shown
from topi.injective import injective
from topi.nn.pad import pad
from topi.nn.pool.layout import letters_of


@checked
def space_to_depth(data: te.Tensor, block_size: int, layout: str = "NCHW") -> te.Tensor:
    """out[n, (dy * block + dx) * C + c, y, x] = data[n, c, y * block + dy, x * block + dx]; layout "NCHW" or "NHWC".

    The same as tf.nn.space_to_depth.
    """
    where, block = f"space_to_depth of {data.name}", block_size
    n, c, h, w = _nchw(data, layout, where)
    for d in (h, w):
        _require_multiple(data, d, block, where)
    extents = data.shape[n], data.shape[c] * block * block, data.shape[h] // block, data.shape[w] // block
    shape = _placed(extents, (n, c, h, w))

    def formula(*i: Any) -> Any:
        within, channel = i[c] // data.shape[c], i[c] % data.shape[c]
        return data(*_placed((i[n], channel, i[h] * block + within // block, i[w] * block + within % block), (n, c, h, w)))

    return injective("space_to_depth", shape, formula)


@checked
def depth_to_space(data: te.Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> te.Tensor:
    """out[n, c, y * block + dy, x * block + dx] = data[n, channel, y, x]; layout "NCHW" or "NHWC".

    mode "DCR": channel is (dy * block + dx) * C + c, the inverse of space_to_depth; "CDR": c * block ** 2 + dy * block + dx
    (also called CRD; torch.nn.PixelShuffle).
    """
    where, block = f"depth_to_space of {data.name}", block_size
    n, c, h, w = _nchw(data, layout, where)
    if mode not in ("DCR", "CDR", "CRD"):
        raise ArgumentError(f'{where}: mode is "{mode}"', hint='"DCR" or "CDR"')
    _require_multiple(data, c, block * block, where)
    channels = data.shape[c] // (block * block)
    shape = _placed((data.shape[n], channels, data.shape[h] * block, data.shape[w] * block), (n, c, h, w))

    def formula(*i: Any) -> Any:
        within = i[h] % block * block + i[w] % block
        channel = within * channels + i[c] if mode == "DCR" else i[c] * (block * block) + within
        return data(*_placed((i[n], channel, i[h] // block, i[w] // block), (n, c, h, w)))

    return injective("depth_to_space", shape, formula)


@checked
def pixel_shuffle(data: te.Tensor, upscale_factor: int, name: str = "PixelShuffle") -> te.Tensor:
    """out[..., c, y * r + dy, x * r + dx] = data[..., (c * r + dy) * r + dx, y, x] with r = upscale_factor, for the last three
    dimensions. Same as torch.nn.PixelShuffle: Shi et al., 2016.
    """
    where, r = f"pixel_shuffle of {data.name}", upscale_factor
    if data.ndim < 3 or r < 1:
        raise ShapeError(f"{where}: the shape is {shown(data.shape)} and the factor {r}",
                         hint="(..., channels * r * r, rows, columns), and a factor of at least 1")
    _require_multiple(data, data.ndim - 3, r * r, where)
    *batch, c, h, w = data.shape

    def formula(*i: Any) -> Any:
        *rest, channel, y, x = i
        return data(*rest, (channel * r + y % r) * r + x % r, y // r, x // r)

    return injective("pixel_shuffle", [*batch, c // (r * r), h * r, w * r], formula, name=name)


@checked
def space_to_batch_nd(data: te.Tensor, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int],
                      pad_value: float = 0.0) -> te.Tensor:
    """Places in blocks of the dimensions 1, 2, ... become batches, after padding; the same as tf.space_to_batch_nd.

    out[place * N + n, y, x, ...] = padded[n, y * block[0] + dy, x * block[1] + dx, ...] with place = dy * block[1] + dx.
    """
    where, rank = f"space_to_batch_nd of {data.name}", len(block_shape)
    for name, widths in (("pad_before", pad_before), ("pad_after", pad_after)):
        _require_length(name, widths, rank, data, where)
    rest = [0] * (data.ndim - 1 - rank)
    padded = pad(data, [0, *pad_before, *rest], [0, *pad_after, *rest], pad_value)
    for d, block in enumerate(block_shape, 1):
        _require_multiple(padded, d, block, where)
    batch, places = data.shape[0], 1
    for block in block_shape:
        places *= block
    shape = [batch * places, *[n // b for n, b in zip(padded.shape[1:], block_shape)], *padded.shape[1 + rank:]]

    def formula(*i: Any) -> Any:
        within = indices_at(i[0] // batch, list(block_shape))
        at = [index * block + shift for index, block, shift in zip(i[1:], block_shape, within)]
        return padded(i[0] % batch, *at, *i[1 + rank:])

    return injective("space_to_batch_nd", shape, formula)


@checked
def batch_to_space_nd(data: te.Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int],
                      crop_end_list: Sequence[int]) -> te.Tensor:
    """The inverse of space_to_batch_nd: batches become places in blocks, then elements at both ends are left out."""
    where, rank = f"batch_to_space_nd of {data.name}", len(block_shape)
    for name, widths in (("crop_begin_list", crop_begin_list), ("crop_end_list", crop_end_list)):
        _require_length(name, widths, rank, data, where)
    places = 1
    for block in block_shape:
        places *= block
    _require_multiple(data, 0, places, where)
    batch = data.shape[0] // places
    extents = [n * b - first - last for n, b, first, last in zip(data.shape[1:], block_shape, crop_begin_list, crop_end_list)]
    if any((as_int(n) or 0) < 0 for n in extents):
        raise ShapeError(f"{where}: more is cropped than there is: {tuple(crop_begin_list)} and {tuple(crop_end_list)} of "
                         f"{shown(data.shape)} with blocks {tuple(block_shape)}")

    def formula(*i: Any) -> Any:
        at = [index + first for index, first in zip(i[1:], crop_begin_list)]
        place = row_major([index % b for index, b in zip(at, block_shape)], list(block_shape))
        return data(place * batch + i[0], *[index // b for index, b in zip(at, block_shape)], *i[1 + rank:])

    return injective("batch_to_space_nd", [batch, *extents, *data.shape[1 + rank:]], formula)


def _nchw(data: te.Tensor, layout: str, where: str) -> tuple[int, int, int, int]:
    """The dimensions of batch, channels, height and width."""
    if layout not in ("NCHW", "NHWC"):
        raise ArgumentError(f'{where}: layout is "{layout}"', hint='"NCHW" or "NHWC"')
    letters = letters_of(layout, data, "HW", where)
    return letters.index("N"), letters.index("C"), letters.index("H"), letters.index("W")


def _placed(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    placed: list[Any] = [None] * len(values)
    for place, value in zip(places, values):
        placed[place] = value
    return placed


def _require_multiple(data: te.Tensor, d: int, block: int, where: str) -> None:
    extent = as_int(data.shape[d])
    if block < 1 or (extent is not None and extent % block):
        raise ShapeError(f"{where}: dimension {d} of {shown(data.shape)} is not divisible by {block}")


def _require_length(name: str, widths: Sequence[Any], rank: int, data: te.Tensor, where: str) -> None:
    if len(widths) != rank or data.ndim < rank + 1 or min(widths, default=0) < 0:
        raise ShapeError(f"{where}: {name} is {tuple(widths)} for {rank} blocks and the shape {shown(data.shape)}",
                         hint="a number from 0 on for each block; dimension 0 is the batch")
