"""Operators of networks on tensors with values: formulas of topi, with the parameters that users of PyTorch know."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

import topi
from tedsl import te
from tedsl.autograd import Tensor, from_numpy, op
from tedsl.autograd.tensor import check_places
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError, type_in_words

Pair = int | Sequence[int]
LEFT_OUT = -100  # a target that no loss counts


def pair(value: Pair, what: str) -> tuple[int, int]:
    """One number for both spatial dimensions, or one for each."""
    both = (value, value) if isinstance(value, int) else tuple(value)
    if len(both) != 2 or not all(isinstance(one, int) for one in both):
        raise ArgumentError(f"{what} is {value!r}, not an integer or a pair of integers")
    return both


# --- formulas: tensors of te in and out -------------------------------------------------------------------------------

def _linear(x: te.Tensor, weight: te.Tensor, bias: te.Tensor | None) -> te.Tensor:
    outer = [int(extent) for extent in x.shape[:-1]]
    rows = x if len(outer) == 1 else topi.reshape(x, (math.prod(outer), x.shape[-1]))
    made: te.Tensor = topi.nn.dense(rows, weight, bias)
    return made if len(outer) == 1 else topi.reshape(made, (*outer, weight.shape[0]))


def _conv2d(x: te.Tensor, weight: te.Tensor, bias: te.Tensor | None, stride: tuple[int, int], padding: tuple[int, int],
            dilation: tuple[int, int], groups: int) -> te.Tensor:
    pads = (*padding, *padding)
    made: te.Tensor = topi.nn.conv2d_nchw(x, weight, stride, pads, dilation) if groups == 1 else \
        topi.nn.group_conv2d_nchw(x, weight, stride, pads, dilation, groups)
    return made if bias is None else topi.nn.bias_add(made, bias)


def _pool2d(x: te.Tensor, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int], kind: str) -> te.Tensor:
    made: te.Tensor = topi.nn.pool2d(x, kernel, stride, (1, 1), (*padding, *padding), kind)
    return made


def _batch_norm(x: te.Tensor, weight: te.Tensor, bias: te.Tensor, eps: float) -> list[te.Tensor]:
    """Normalized by the statistics of the batch; then these: mean and variance for each channel, dimension 1."""
    nothing = topi.full((x.shape[1],), x.dtype, 0)  # running statistics, of which momentum 1 takes no part
    made: list[te.Tensor] = topi.nn.batch_norm(x, weight, bias, nothing, nothing, 1, eps, training=True, momentum=1.0)
    return made


def _batch_norm_of(x: te.Tensor, weight: te.Tensor, bias: te.Tensor, mean: te.Tensor, variance: te.Tensor,
                   eps: float) -> te.Tensor:
    made: te.Tensor = topi.nn.batch_norm(x, weight, bias, mean, variance, 1, eps)[0]
    return made


def _layer_norm(x: te.Tensor, weight: te.Tensor, bias: te.Tensor | None, eps: float) -> te.Tensor:
    return topi.nn.layer_norm(x, weight, bias, tuple(range(x.ndim - weight.ndim, x.ndim)), eps)


def _embedding(index: te.Tensor, weight: te.Tensor) -> te.Tensor:
    made: te.Tensor = topi.take(weight, index, 0)
    return made


def _cross_entropy(x: te.Tensor, target: te.Tensor, reduction: str) -> te.Tensor:
    ones = topi.full((x.shape[1],), x.dtype, 1)
    if x.ndim == 2:
        return topi.nn.nll_loss(topi.nn.log_softmax(x, 1), target, ones, reduction, LEFT_OUT)
    classes, inner = int(x.shape[1]), [int(extent) for extent in x.shape[2:]]
    rows = topi.reshape(topi.transpose(x, (0, *range(2, x.ndim), 1)), (int(x.shape[0]) * math.prod(inner), classes))
    losses = topi.nn.nll_loss(topi.nn.log_softmax(rows, 1), topi.reshape(target, (rows.shape[0],)), ones, reduction, LEFT_OUT)
    return topi.reshape(losses, target.shape) if reduction == "none" else losses


def _mse(x: te.Tensor, target: te.Tensor, reduction: str) -> te.Tensor:
    squares = te.compute(x.shape, lambda *i: (x(*i) - target(*i)) * (x(*i) - target(*i)), name="squares", tag="broadcast")
    if reduction == "none":
        return squares
    total = topi.sum(squares)
    return total if reduction == "sum" else total * (1.0 / max(math.prod(int(extent) for extent in x.shape), 1))


def _gelu(x: te.Tensor) -> te.Tensor:
    half, root = te.const(0.5, x.dtype), te.const(math.sqrt(0.5), x.dtype)
    return te.compute(x.shape, lambda *i: x(*i) * half * (te.const(1, x.dtype) + te.erf(x(*i) * root)), name="gelu",
                      tag="elemwise")


def _attention(q: te.Tensor, k: te.Tensor, v: te.Tensor, scale: float, causal: bool) -> te.Tensor:
    """q, k, v: (batch, length, features)."""
    scores = topi.nn.batch_matmul(q, k)
    scaled = te.compute(scores.shape, lambda b, i, j: te.if_then_else(j <= i, scores(b, i, j) * scale, te.min_value(q.dtype))
                        if causal else scores(b, i, j) * scale, name="scaled", tag="injective")
    made: te.Tensor = topi.nn.batch_matmul(topi.nn.softmax(scaled, 2), v, transpose_b=False)
    return made


_LINEAR, _CONV, _POOL = op(_linear, "Linear"), op(_conv2d, "Conv2D"), op(_pool2d, "Pool2D")
_NORM, _NORM_OF, _ROWS = op(_batch_norm, "BatchNorm"), op(_batch_norm_of, "BatchNorm"), op(_layer_norm, "LayerNorm")
_TAKE, _ENTROPY, _SQUARES = op(_embedding, "Embedding"), op(_cross_entropy, "CrossEntropy"), op(_mse, "MseLoss")
_GELU, _ATTENTION = op(_gelu, "Gelu"), op(_attention, "Attention")


# --- operators --------------------------------------------------------------------------------------------------------

def _check_tensors(where: str, *given: object) -> None:
    for one in given:
        if not hasattr(one, "ndim"):
            raise ArgumentTypeError(f"{where}: {type_in_words(one)} is not a tensor", hint="autograd.tensor(values)")


def _tensor(where: str, given: Any) -> Any:
    """A tensor; an array of numpy becomes one."""
    _check_tensors(where, given)
    return from_numpy(given) if isinstance(given, numpy.ndarray) else given


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias. x: (..., in), weight: (out, in), bias: (out,). Returns (..., out)."""
    _check_tensors("linear", x, weight)
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(f"linear: x has shape {x.shape} and the weight {weight.shape}",
                         hint=f"the last dimension of x is to be {weight.shape[-1] if weight.ndim else 'that of the weight'}")
    made: Tensor = _LINEAR(x, weight, bias)
    return made


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1,
           groups: int = 1) -> Tensor:
    """A convolution with zeros around x. x: (batch, in, h, w), weight: (out, in / groups, kh, kw), bias: (out,)."""
    _check_tensors("conv2d", x, weight)
    if x.ndim != 4 or weight.ndim != 4 or x.shape[1] != weight.shape[1] * groups:
        raise ShapeError(f"conv2d: x has shape {x.shape} and the weight {weight.shape}, in {groups} group{'s' * (groups > 1)}",
                         hint="x is (batch, channels, height, width), the weight (out, channels / groups, height, width)")
    made: Tensor = _CONV(x, weight, bias, pair(stride, "conv2d: stride"), pair(padding, "conv2d: padding"),
                         pair(dilation, "conv2d: dilation"), groups)
    return made


def max_pool2d(x: Tensor, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> Tensor:
    """The maximum of each window. stride: by default the size of the window."""
    return _pooled(x, kernel_size, stride, padding, "max")


def avg_pool2d(x: Tensor, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> Tensor:
    """The mean of each window, with the zeros of the padding. stride: by default the size of the window."""
    return _pooled(x, kernel_size, stride, padding, "avg")


def _pooled(x: Tensor, kernel_size: Pair, stride: Pair | None, padding: Pair, kind: str) -> Tensor:
    _check_tensors(f"{kind}_pool2d", x)
    if x.ndim != 4:
        raise ShapeError(f"{kind}_pool2d: x has shape {x.shape}, not (batch, channels, height, width)")
    kernel = pair(kernel_size, f"{kind}_pool2d: kernel_size")
    made: Tensor = _POOL(x, kernel, kernel if stride is None else pair(stride, f"{kind}_pool2d: stride"),
                         pair(padding, f"{kind}_pool2d: padding"), kind)
    return made


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """x normalized by the statistics of each channel (dimension 1), and these: mean and variance, divided by the number of
    elements. Formula: Ioffe and Szegedy, 2015.
    """
    _check_channels("batch_norm", x, weight, bias)
    out, mean, variance = _NORM(x, weight, bias, eps)
    return out, mean, variance


def batch_norm_of(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, eps: float = 1e-5) -> Tensor:
    """x normalized by given statistics of each channel (dimension 1)."""
    _check_channels("batch_norm_of", x, weight, bias, mean, variance)
    made: Tensor = _NORM_OF(x, weight, bias, mean, variance, eps)
    return made


def _check_channels(where: str, x: Tensor, *vectors: Tensor) -> None:
    _check_tensors(where, x, *vectors)
    for vector in vectors:
        if x.ndim < 2 or vector.shape != (x.shape[1],):
            raise ShapeError(f"{where}: x has shape {x.shape}, and a vector with an element for each channel {vector.shape}",
                             hint="channels are dimension 1 of x")


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """x normalized over its last dimensions, those of the weight and the bias."""
    _check_tensors("layer_norm", x, weight)
    if weight.shape != x.shape[x.ndim - weight.ndim:]:
        raise ShapeError(f"layer_norm: x has shape {x.shape}, and the weight {weight.shape} is not its last dimensions")
    made: Tensor = _ROWS(x, weight, bias, eps)
    return made


def embedding(index: Tensor, weight: Tensor) -> Tensor:
    """The rows of the weight at `index`, integers of any shape. Returns index.shape + (features,)."""
    index, weight = _tensor("embedding", index), _tensor("embedding", weight)
    if index.dtype.is_float or weight.ndim != 2:
        raise ShapeError(f"embedding: the index is {index.dtype} and the weight has shape {weight.shape}",
                         hint="the index holds integers, the weight is (rows, features)")
    check_places(index, 0, weight.shape[0], "embedding: the index")
    made: Tensor = _TAKE(index, weight)
    return made


def cross_entropy(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """-log softmax(x) at the target classes. x: (batch, classes, ...), target: (batch, ...), integers; -100 is left out.

    reduction: "mean", "sum", or "none" for the shape of the target.
    """
    x, target = _tensor("cross_entropy", x), _tensor("cross_entropy", target)
    if x.ndim < 2 or target.dtype.is_float or target.shape != (x.shape[0], *x.shape[2:]):
        raise ShapeError(f"cross_entropy: x has shape {x.shape}, and the target {target.shape} of {target.dtype}",
                         hint="x is (batch, classes, ...) and the target (batch, ...), integers")
    if isinstance(target, Tensor):
        classes = target.data.numpy()
        check_places(from_numpy(classes[classes != LEFT_OUT]), 0, x.shape[1], "cross_entropy: the target")
    made: Tensor = _ENTROPY(x, target, _checked(reduction, "cross_entropy"))
    return made


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The squares of differences. reduction: "mean", "sum", or "none"."""
    _check_tensors("mse_loss", x, target)
    if x.shape != target.shape:
        raise ShapeError(f"mse_loss: x has shape {x.shape}, and the target {target.shape}")
    made: Tensor = _SQUARES(x, target, _checked(reduction, "mse_loss"))
    return made


def _checked(reduction: str, where: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f'{where}: reduction is {reduction!r}', hint='"mean", "sum" or "none"')
    return reduction


def relu(x: Tensor) -> Tensor:
    """max(x, 0), whose derivative at 0 is 0."""
    made: Tensor = _tensor("relu", x).relu()
    return made


def gelu(x: Tensor) -> Tensor:
    """x times the probability that a normal number is below x (Hendrycks and Gimpel 2016)."""
    _check_tensors("gelu", x)
    made: Tensor = _GELU(x)
    return made


def attention(query: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Tensor:
    """softmax(query @ key.T / sqrt(features)) @ value (Vaswani et al. 2017). All: (batch, length, features).

    causal: whether each place sees only itself and those before.
    """
    _check_tensors("attention", query, key, value)
    shapes = [one.shape for one in (query, key, value)]
    if any(len(shape) != 3 for shape in shapes) or shapes[0][2] != shapes[1][2] or shapes[1][:2] != shapes[2][:2]:
        raise ShapeError(f"attention: query, key and value have shapes {shapes[0]}, {shapes[1]} and {shapes[2]}",
                         hint="each is (batch, length, features), key and value of one length, query and key of equal features")
    made: Tensor = _ATTENTION(query, key, value, 1 / math.sqrt(shapes[0][2]), causal)
    return made
