"""Gradients by te.gradient, scheduled by topi, beside the backward functions of torch: float32, images in NCHW, batch 4.

Torch's functions get what its forward pass saves (statistics of normalizations, places of maxima); ours computes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import topi
from benchmarks import networks, reference
from benchmarks.case import Case, Contender, Maker, maker
from benchmarks.contenders import ours, with_torch
from benchmarks.networks import Conv
from benchmarks.suites.products import bytes_of, drawn, named
from tedsl import te

BATCH = 4
DENSE = ((32, 512, 1000), (64, 1024, 1024), (512, 512, 512))
BATCHED = ((12, 128, 64, 128), (8, 256, 256, 64))
ROWS = ((512, 512), (4096, 1024), (128, 32000))
IMAGES = ((4, 64, 56, 56), (4, 256, 14, 14))
POOLED = (4, 64, 112, 112)


def differentiated(formula: Callable[..., te.Tensor], arrays: Sequence[Any], wanted: Sequence[int]) -> Contender:
    """The gradient of `formula` by its arguments number `wanted`; the last array is the head."""
    *inputs, head = ours.placeholders(arrays)
    found = te.gradient(formula(*inputs), [inputs[n] for n in wanted], head)
    return ours.scheduled(found, [*inputs, head], arrays)


def by_torch(threads: int, function: Callable[..., Any], arrays: Sequence[Any]) -> dict[str, Contender]:
    """`function(torch, *tensors)`, which gives the gradients, in the order of ours."""
    torch = with_torch.torch_or_none(threads)
    if torch is None:
        return {}
    tensors = [torch.from_numpy(array) for array in arrays]

    def view(found: Any) -> Any:
        return tuple(one.contiguous().numpy() for one in found) if len(found) > 1 else found[0].contiguous().numpy()

    return {"torch": with_torch.calling(lambda: function(torch, *tensors), view)}


def joined(results: Any) -> Any:
    """Several arrays as one vector."""
    return np.concatenate([np.ravel(one) for one in results]) if isinstance(results, tuple) else results


def plain(network: str) -> Counter[Conv]:
    """The convolutions of a network without activations, and how often each occurs."""
    found: Counter[Conv] = Counter()
    for spec, times in networks.convolutions(network).items():
        found[replace(spec, activation="")] += times
    return found


def _case(contenders: dict[str, Contender], expected: Callable[[], Any], terms: int, operations: float, read: float,
          written: float, times: int = 1, factor: float = 1.0) -> Case:
    seen = {name: Contender(one.call, None if one.result is None else lambda one=one: joined(one.result()))
            for name, one in contenders.items()}
    return Case("gradients", seen, lambda: joined(expected()), terms, operations, read, written, factor, times=times)


# --- convolutions -----------------------------------------------------------------------------------------------------

def convolution(spec: Conv, of_kernel: bool, times: int, threads: int) -> Case:
    """The gradient of a convolution by its data or by its kernel."""
    x, w, head = drawn((BATCH, spec.channels, spec.size, spec.size), (spec.filters, spec.channels, spec.kernel, spec.kernel),
                       (BATCH, spec.filters, spec.out, spec.out))
    contenders = {"tedsl": differentiated(lambda x, w: topi.nn.conv2d_nchw(x, w, spec.stride, spec.pad, 1), [x, w, head],
                                          [1 if of_kernel else 0])}
    contenders |= by_torch(threads, lambda torch, x, w, h: [torch.ops.aten.convolution_backward(
        h, x, w, None, [spec.stride] * 2, [spec.pad] * 2, [1, 1], False, [0, 0], 1,
        [not of_kernel, of_kernel, False])[1 if of_kernel else 0]], [x, w, head])
    terms = BATCH * spec.out**2 if of_kernel else spec.filters * spec.kernel**2
    return _case(contenders, lambda: reference.gradient_of_convolution(x, w, head, spec.stride, spec.pad, of_kernel), terms,
                 BATCH * spec.operations, bytes_of(x if of_kernel else w, head), bytes_of(w if of_kernel else x), times)


# --- products ---------------------------------------------------------------------------------------------------------

def dense(rows: int, inner: int, columns: int, threads: int) -> Case:
    """Both gradients of a fully connected layer."""
    x, w, head = drawn((rows, inner), (columns, inner), (rows, columns))
    contenders = {"tedsl": differentiated(topi.nn.dense, [x, w, head], [0, 1])}
    contenders |= by_torch(threads, lambda torch, x, w, h: [h @ w, h.t() @ x], [x, w, head])
    wide = [reference.wide(a) for a in (x, w, head)]
    return _case(contenders, lambda: (wide[2] @ wide[1], wide[2].T @ wide[0]), max(rows, columns),
                 4.0 * rows * inner * columns, bytes_of(x, w, head), bytes_of(x, w))


def batched(batch: int, rows: int, inner: int, columns: int, threads: int) -> Case:
    """Both gradients of a batch of products of rows with rows."""
    a, b, head = drawn((batch, rows, inner), (batch, columns, inner), (batch, rows, columns))
    contenders = {"tedsl": differentiated(topi.nn.batch_matmul, [a, b, head], [0, 1])}
    contenders |= by_torch(threads, lambda torch, a, b, h: [h @ b, h.transpose(1, 2) @ a], [a, b, head])
    wide = [reference.wide(one) for one in (a, b, head)]
    return _case(contenders, lambda: (wide[2] @ wide[1], wide[2].swapaxes(1, 2) @ wide[0]), max(rows, columns),
                 4.0 * batch * rows * inner * columns, bytes_of(a, b, head), bytes_of(a, b))


# --- rows and images --------------------------------------------------------------------------------------------------

def cross_entropy(shape: tuple[int, int], threads: int) -> Case:
    """The mean cross entropy of softmax: forward and backward."""
    (x,) = drawn(shape)
    labels = np.random.default_rng(1).integers(0, shape[1], shape[0]).astype("int64")
    X, T = ours.placeholders([x, labels])
    logarithms = topi.nn.log_softmax(X)
    weights = topi.full((shape[1],), "float32", 1.0)
    loss = topi.nn.nll_loss(logarithms, T, weights, "mean", -100)
    contenders = {"tedsl": ours.scheduled(te.gradient(loss, [X], topi.full((), "float32", 1.0)), [X, T], [x, labels])}

    def backward(torch: Any, x: Any, t: Any) -> Any:
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            torch.nn.functional.cross_entropy(leaf, t).backward()
        return [leaf.grad]

    contenders |= by_torch(threads, backward, [x, labels])

    def expected() -> Any:
        found = reference.softmax(x)
        found[np.arange(shape[0]), labels] -= 1
        return found / shape[0]

    return _case(contenders, expected, shape[1], 0.0, bytes_of(x), bytes_of(x))


def layer_norm(shape: tuple[int, int], threads: int) -> Case:
    """The gradients of the normalization of rows by data, gamma and beta."""
    x, gamma, beta, head = drawn(shape, shape[1:], shape[1:], shape)
    contenders = {"tedsl": differentiated(lambda x, g, b: topi.nn.layer_norm(x, g, b, -1), [x, gamma, beta, head], [0, 1, 2])}

    def backward(torch: Any, x: Any, g: Any, b: Any, h: Any) -> Callable[[], Any]:
        _, mean, scale = torch.native_layer_norm(x, g.shape, g, b, 1e-5)
        return lambda: torch.ops.aten.native_layer_norm_backward(h, x, g.shape, mean, scale, g, b, [True] * 3)

    contenders |= _prepared(threads, backward, [x, gamma, beta, head])
    return _case(contenders, lambda: reference.gradient_of_normalization(x, gamma, head, (1,)), max(shape), 0.0,
                 bytes_of(x, head), bytes_of(x), factor=4.0)


def batch_norm(shape: tuple[int, ...], threads: int) -> Case:
    """A normalization of each channel by its own statistics, and its gradients by data, gamma and beta."""
    x, gamma, beta, head = drawn(shape, shape[1:2], shape[1:2], shape)
    X, G, B, H = inputs = ours.placeholders([x, gamma, beta, head])
    moving = [te.placeholder(shape[1:2], name=name) for name in ("mean", "variance")]
    y = topi.nn.batch_norm(X, G, B, *moving, training=True)[0]
    contenders = {"tedsl": ours.scheduled([y, *te.gradient(y, [X, G, B], H)], inputs, [x, gamma, beta, head])}

    def both(torch: Any, x: Any, g: Any, b: Any, h: Any) -> Any:
        y, mean, scale = torch.native_batch_norm(x, g, b, None, None, True, 0.1, 1e-5)
        return [y, *torch.ops.aten.native_batch_norm_backward(h, x, g, None, None, mean, scale, True, 1e-5, [True] * 3)]

    contenders |= by_torch(threads, both, [x, gamma, beta, head])

    def expected() -> Any:
        last = [np.moveaxis(one, 1, -1) for one in (x, head)]
        axes = tuple(range(x.ndim - 1))
        of_x, *rest = reference.gradient_of_normalization(last[0], gamma, last[1], axes)
        centred = reference.wide(last[0]) - last[0].mean(axis=axes, dtype="float64")
        normal = centred / np.sqrt((centred**2).mean(axis=axes) + 1e-5) * gamma + beta
        return (np.moveaxis(normal, -1, 1), np.moveaxis(of_x, -1, 1), *rest)

    return _case(contenders, expected, x.size // shape[1], 0.0, bytes_of(x, head), 2 * bytes_of(x), factor=4.0)


def max_pool(shape: tuple[int, ...], threads: int) -> Case:
    """The gradient of maxima in windows of 3 x 3 with stride 2 and padding 1."""
    (x,) = drawn(shape)
    (head,) = drawn((*shape[:2], (shape[2] - 1) // 2 + 1, (shape[3] - 1) // 2 + 1))
    contenders = {"tedsl": differentiated(
        lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), [x, head], [0])}

    def backward(torch: Any, x: Any, h: Any) -> Callable[[], Any]:
        settings = [3, 3], [2, 2], [1, 1], [1, 1], False
        _, places = torch.ops.aten.max_pool2d_with_indices(x, *settings)
        return lambda: [torch.ops.aten.max_pool2d_with_indices_backward(h, x, *settings, places)]

    contenders |= _prepared(threads, backward, [x, head])
    return _case(contenders, lambda: reference.gradient_of_max_pool(x, head, 3, 2, 1), 9, 0.0, bytes_of(x, head), bytes_of(x))


def _prepared(threads: int, make: Callable[..., Callable[[], Any]], arrays: Sequence[Any]) -> dict[str, Contender]:
    """A backward function of torch that needs what the forward pass saves: `make(torch, *tensors)` gives it."""
    torch = with_torch.torch_or_none(threads)
    if torch is None:
        return {}
    call = make(torch, *[torch.from_numpy(array) for array in arrays])
    return by_torch(threads, lambda torch, *tensors: call(), arrays)


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = []
    for spec, times in sorted(plain("ResNet-18").items(), key=lambda pair: -pair[0].size):
        made += [maker(f"{spec} by data", convolution, spec, False, times, threads),
                 maker(f"{spec} by kernel", convolution, spec, True, times, threads)]
    made += [maker(f"gradients of dense {named(size)}", dense, *size, threads) for size in DENSE]
    made += [maker(f"gradients of batch_matmul {named(size)}", batched, *size, threads) for size in BATCHED]
    for shape in ROWS:
        made += [maker(f"gradient of cross entropy {named(shape)}", cross_entropy, shape, threads),
                 maker(f"gradients of layer_norm {named(shape)}", layer_norm, shape, threads)]
    made += [maker(f"batch_norm and gradients {named(shape)}", batch_norm, shape, threads) for shape in IMAGES]
    return [*made, maker(f"gradient of max_pool {named(POOLED)}", max_pool, POOLED, threads)]
