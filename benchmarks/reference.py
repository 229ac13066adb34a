"""Results in float64, by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np


def wide(array: Any) -> Any:
    """The array in float64."""
    return np.asarray(array).astype("float64")


def activated(y: Any, activation: str) -> Any:
    """y with "relu", "relu6" or nothing."""
    return np.clip(y, 0.0, 6.0 if activation == "relu6" else None) if activation else y


def convolution(x: Any, w: Any, b: Any, stride: int, pad: int, groups: int = 1, activation: str = "") -> Any:
    """The convolution of (N, C, ...) with (O, C / groups, ...), any number of dimensions of space, plus a bias."""
    rank = x.ndim - 2
    x, w = np.pad(wide(x), [(0, 0)] * 2 + [(pad, pad)] * rank), wide(w)
    space = [(n - k) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:])]
    batch, filters = x.shape[0], w.shape[0]
    y = np.zeros((batch, groups, filters // groups, int(np.prod(space))))
    for tap in np.ndindex(*w.shape[2:]):
        window = tuple(slice(k, k + stride * (n - 1) + 1, stride) for k, n in zip(tap, space))
        seen = x[(slice(None), slice(None), *window)].reshape(batch, groups, x.shape[1] // groups, -1)
        y += w[(slice(None), slice(None), *tap)].reshape(groups, filters // groups, -1) @ seen
    y = y.reshape(batch, filters, *space)
    return activated(y + wide(b).reshape(-1, *[1] * rank) if b is not None else y, activation)


def pool(x: Any, kernel: int, stride: int, pad: int, kind: str) -> Any:
    """max or avg over windows of NCHW; an average counts the padding."""
    x = np.pad(wide(x), [(0, 0)] * 2 + [(pad, pad)] * 2, constant_values=-np.inf if kind == "max" else 0.0)
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    return windows.max(axis=(-2, -1)) if kind == "max" else windows.mean(axis=(-2, -1))


def softmax(x: Any, axis: int = -1, log: bool = False) -> Any:
    """softmax or its logarithm."""
    shifted = wide(x) - np.max(x, axis=axis, keepdims=True)
    total = np.exp(shifted).sum(axis=axis, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float = 1e-5) -> Any:
    """Normalization of the last dimension."""
    x = wide(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * wide(gamma) + wide(beta)


def attention(q: Any, k: Any, v: Any) -> Any:
    """softmax(q kᵀ / sqrt(d)) v."""
    q, k, v = wide(q), wide(k), wide(v)
    return softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v


def transposed_convolution(x: Any, w: Any, stride: int, pad: int) -> Any:
    """The transposed convolution of NCHW images with (C, O, h, w) weights."""
    x, w = wide(x), wide(w)
    batch, _, height, width = x.shape
    full = np.zeros((batch, w.shape[1], *[(n - 1) * stride + k for n, k in zip((height, width), w.shape[2:])]))
    for ky, kx in np.ndindex(*w.shape[2:]):
        window = slice(ky, ky + stride * (height - 1) + 1, stride), slice(kx, kx + stride * (width - 1) + 1, stride)
        full[(slice(None), slice(None), *window)] += np.einsum("nchw,co->nohw", x, w[:, :, ky, kx], optimize=True)
    return full[:, :, pad:full.shape[2] - pad, pad:full.shape[3] - pad]


def resize(x: Any, size: Any, method: str, alpha: float) -> Any:
    """NCHW images of another size: "nearest_neighbor" rounds places down; "linear" and "cubic" are between pixel centres."""
    rows, columns = (_resizing(n, m, method, alpha) for n, m in zip(x.shape[2:], size))
    return rows @ wide(x) @ columns.T


def _resizing(n: int, m: int, method: str, alpha: float) -> Any:
    """The matrix that makes m numbers of n."""
    matrix = np.zeros((m, n))
    for i in range(m):
        if method == "nearest_neighbor":
            matrix[i, int(i * n / m)] = 1.0
            continue
        place = (i + 0.5) * n / m - 0.5
        first = int(np.floor(place))
        for tap in range(-1, 3):
            distance = abs(place - (first + tap))
            weight = _cubic(distance, alpha) if method == "cubic" else max(0.0, 1.0 - distance)
            matrix[i, min(max(first + tap, 0), n - 1)] += weight
    return matrix


def _cubic(d: float, a: float) -> float:
    if d < 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


# --- gradients ------------------------------------------------------------------------------------------------------------

def gradient_of_convolution(x: Any, w: Any, head: Any, stride: int, pad: int, of_kernel: bool) -> Any:
    """The gradient of sum(head * convolution) of NCHW by the kernel, or by the data."""
    padded = np.pad(wide(x), [(0, 0)] * 2 + [(pad, pad)] * 2)
    h, of_data, of_weights = wide(head), np.zeros(padded.shape), np.zeros(w.shape)
    for ky, kx in np.ndindex(*w.shape[2:]):
        window = (slice(None), slice(None), *[slice(k, k + stride * (n - 1) + 1, stride)
                                              for k, n in zip((ky, kx), head.shape[2:])])
        if of_kernel:
            of_weights[:, :, ky, kx] = np.tensordot(h, padded[window], ((0, 2, 3), (0, 2, 3)))
        else:
            of_data[window] += np.moveaxis(np.tensordot(wide(w)[:, :, ky, kx], h, ((0,), (1,))), 0, 1)
    return of_weights if of_kernel else of_data[:, :, pad:pad + x.shape[2], pad:pad + x.shape[3]]


def gradient_of_normalization(x: Any, gamma: Any, head: Any, axes: tuple[int, ...], epsilon: float = 1e-5) -> Any:
    """The gradients by x, gamma and beta of the normalization over `axes`; gamma has one element for each of the last
    dimension.
    """
    x, h = wide(x), wide(head)
    centred = x - x.mean(axis=axes, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + epsilon)
    normal, g = centred * scale, h * wide(gamma)
    of_x = scale * (g - g.mean(axis=axes, keepdims=True) - normal * (g * normal).mean(axis=axes, keepdims=True))
    rows = tuple(range(x.ndim - 1))
    return of_x, (h * normal).sum(axis=rows), h.sum(axis=rows)


def gradient_of_max_pool(x: Any, head: Any, kernel: int, stride: int, pad: int) -> Any:
    """The head of each window of NCHW at its first largest element."""
    padded = np.pad(wide(x), [(0, 0)] * 2 + [(pad, pad)] * 2, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    places = windows.reshape(*windows.shape[:4], -1).argmax(-1)
    found = np.zeros(padded.shape)
    n, c, y, col = np.indices(places.shape)
    np.add.at(found, (n, c, y * stride + places // kernel, col * stride + places % kernel), wide(head))
    return found[:, :, pad:pad + x.shape[2], pad:pad + x.shape[3]]
