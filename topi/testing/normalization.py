"""Normalizations, rearrangements of blocks and losses in plain numpy, by TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def batch_norm(x: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, axis: int = 1,
               epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> list[Array]:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta along `axis`, and mean and variance unchanged."""
    shape = [-1 if d == axis % x.ndim else 1 for d in range(x.ndim)]
    out = (x - moving_mean.reshape(shape)) / np.sqrt(moving_var.reshape(shape) + epsilon)
    out = out * gamma.reshape(shape) if scale else out
    return [(out + beta.reshape(shape) if center else out).astype(x.dtype), moving_mean, moving_var]


def softmax_python(a_np: Array, axis: int = 1) -> Array:
    """exp(a - max) / sum(exp(a - max)) along `axis`, whose default is TVM's."""
    powers = np.exp(a_np.astype("float64") - a_np.max(axis=axis, keepdims=True))
    result: Array = (powers / powers.sum(axis=axis, keepdims=True)).astype(a_np.dtype)
    return result


def log_softmax_python(a_np: Array, axis: int = 1) -> Array:
    """a - max - log(sum(exp(a - max))) along `axis`, whose default is TVM's."""
    moved = a_np.astype("float64") - a_np.max(axis=axis, keepdims=True)
    result: Array = (moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))).astype(a_np.dtype)
    return result


def layer_norm_python(data: Array, gamma: Array, beta: Array, axis: int | Sequence[int], epsilon: float = 1e-5) -> Array:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the dimensions `axis`."""
    axes = sorted(d % data.ndim for d in ([axis] if isinstance(axis, int) else axis))
    wide, shape = data.astype("float64"), [n if d in axes else 1 for d, n in enumerate(data.shape)]
    spread = np.sqrt(wide.var(axis=tuple(axes), keepdims=True) + epsilon)
    result: Array = (wide - wide.mean(axis=tuple(axes), keepdims=True)) / spread * gamma.reshape(shape) + beta.reshape(shape)
    return result.astype(data.dtype)


def lrn_python(a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float) -> Array:
    """a / (bias + alpha / size * sum of squares of the neighbours along `axis`) ** beta; in TVM's order of parameters."""
    moved = np.moveaxis(a_np.astype("float64"), axis, 0)
    sums = [np.square(moved[max(i - size // 2, 0):i + size // 2 + 1]).sum(0) for i in range(len(moved))]
    out: Array = moved / (bias + alpha / size * np.stack(sums)) ** beta
    result: Array = np.moveaxis(out, 0, axis).astype(a_np.dtype)
    return result


def l2_normalize_python(a_np: Array, eps: float, axis: int | tuple[int, ...] | None = None) -> Array:
    """a / sqrt(max(sum of squares, eps))."""
    squares = np.sum(np.square(a_np.astype("float64")), axis, keepdims=True)
    out: Array = a_np / np.sqrt(np.maximum(squares, eps))
    return out.astype(a_np.dtype)


def space_to_depth_python(data: Array, block_size: int) -> Array:
    """Blocks of (n, c, h, w) become channels, the place in the block outermost."""
    n, c, h, w = data.shape
    blocks = data.reshape(n, c, h // block_size, block_size, w // block_size, block_size)
    return blocks.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * block_size**2, h // block_size, w // block_size)


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Array:
    """Channels of (n, c, h, w) become blocks; in mode "DCR" the place in the block is outermost, else innermost."""
    n, c, h, w = data.shape
    channels = c // block_size**2
    if mode == "DCR":
        parts = data.reshape(n, block_size, block_size, channels, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = data.reshape(n, channels, block_size, block_size, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, channels, h * block_size, w * block_size)


def space_to_batch_nd_python(data: Array, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int],
                             pad_value: float = 0) -> Array:
    """The slices with steps of each position in the blocks, joined along the batch."""
    rest = [(0, 0)] * (data.ndim - 1 - len(block_shape))
    padded = np.pad(data, [(0, 0), *zip(pad_before, pad_after), *rest], constant_values=pad_value)
    places = np.ndindex(*block_shape)
    parts = [padded[(slice(None), *[slice(at, None, b) for at, b in zip(place, block_shape)])] for place in places]
    return np.concatenate(parts)


def batch_to_space_nd_python(data: Array, block_shape: Sequence[int], crop_begin_list: Sequence[int],
                             crop_end_list: Sequence[int]) -> Array:
    """The inverse of space_to_batch_nd_python, without the cropped elements."""
    batch = data.shape[0] // int(np.prod(block_shape))
    spread = [n * b for n, b in zip(data.shape[1:], block_shape)]
    out = np.empty((batch, *spread, *data.shape[1 + len(block_shape):]), data.dtype)
    for number, place in enumerate(np.ndindex(*block_shape)):
        where = tuple([slice(at, None, b) for at, b in zip(place, block_shape)])
        out[(slice(None), *where)] = data[number * batch:(number + 1) * batch]
    return out[(slice(None), *[slice(first, n - last) for first, last, n in zip(crop_begin_list, crop_end_list, spread)])]


def nll_loss(predictions: Array, targets: Array, weights: Array, reduction: str = "mean", ignore_index: int = -100) -> Array:
    """-weights[t] * predictions[n, t, ...], element by element."""
    losses, used = np.zeros(targets.shape, predictions.dtype), np.zeros(targets.shape, weights.dtype)
    for place in np.ndindex(*targets.shape):
        t = int(targets[place])
        if t != ignore_index:
            losses[place] = -weights[t] * predictions[(place[0], t, *place[1:]) if place else (t,)]
            used[place] = weights[t]
    if reduction == "none":
        return losses
    return np.asarray(losses.sum() / (used.sum() if reduction == "mean" else 1), predictions.dtype)
