"""Typed records of operator families, which operators store in `op.info` for schedules to find their stages.

Element-wise and broadcasting operators leave `te.ElementwiseOp`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tedsl import te


@dataclass(frozen=True)
class InjectiveOp:
    """Each element of the result depends on one element of each input: padding, transposing, ..."""

    operator: str


@dataclass(frozen=True)
class ReduceOp:
    """A reduction of `source` over its dimensions `axes` (sorted, from 0)."""

    operator: str
    source: te.Tensor
    axes: tuple[int, ...]
    keepdims: bool


@dataclass(frozen=True)
class SoftmaxOp:
    """softmax or log_softmax of `source` along `axis`; `stages` are computed for it before: maximum, exponentials, sum, ..."""

    source: te.Tensor
    axis: int
    stages: tuple[te.Tensor, ...]


@dataclass(frozen=True)
class RowsOp:
    """Formulas over rows, each with statistics of its own. Fusion finds them in a graph; no operator leaves this record."""


@dataclass(frozen=True)
class NormalizeOp:
    """A normalization of each row of `source`, over its dimensions `axes` (sorted, from 0), by its own statistics; `stages` in
    order.
    """

    operator: str
    source: te.Tensor
    axes: tuple[int, ...]
    stages: tuple[te.Tensor, ...]


@dataclass(frozen=True)
class MatmulOp:
    """A product of matrices, a[..., i, k] * b[..., k, j], either of them stored transposed; `batched`: of several."""

    operator: str
    a: te.Tensor
    b: te.Tensor
    transpose_a: bool
    transpose_b: bool
    batched: bool = False


@dataclass(frozen=True)
class ScatterOp:
    """Stores at positions that another tensor holds. axis: the only dimension in which they differ from the source, or None."""

    operator: str
    axis: int | None


@dataclass(frozen=True)
class CumulativeOp:
    """Running sums or products of `source` along `axis`."""

    operator: str
    source: te.Tensor
    axis: int


@dataclass(frozen=True)
class SortOp:
    """`source` put in order along `axis`, whole or the first elements of it; or places in that order."""

    operator: str
    source: te.Tensor
    axis: int


@dataclass(frozen=True)
class ConvOp:
    """A convolution of `data` with `kernel`; `padded` is what it reads: `data` with zeros around it.

    layout, kernel_layout: a letter for each dimension, "NCHW" and "OIHW". The rest has an entry for each of D, H, W.
    """

    operator: str
    data: te.Tensor
    padded: te.Tensor
    kernel: te.Tensor
    layout: str
    kernel_layout: str
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    groups: int = 1


@dataclass(frozen=True)
class DepthwiseConvOp(ConvOp):
    """A convolution of each channel alone; the kernel's letters are C (channel) and M (results for each channel)."""


@dataclass(frozen=True)
class PackedConvOp(ConvOp):
    """A convolution of layouts with blocks of channels innermost, "NCHWc" and "OIHWio"."""


@dataclass(frozen=True)
class PackedDepthwiseConvOp(ConvOp):
    """A convolution of each channel alone, of layouts with blocks of channels innermost."""


@dataclass(frozen=True)
class TransposedConvOp:
    """A transposed convolution as one with stride 1: sums of `padded` (data with zeros in and around it) times `flipped`."""

    operator: str
    data: te.Tensor
    kernel: te.Tensor
    padded: te.Tensor
    flipped: te.Tensor
    layout: str
    kernel_layout: str
    strides: tuple[int, ...]
    groups: int = 1


@dataclass(frozen=True)
class TransformOp:
    """A product of small constant matrices with parts of a tensor, as in winograd.

    stages: the stages computed for it before. small: the numbers of the axes that select rows of the matrices; in each of
    `stages` all of these but the last.
    """

    operator: str
    stages: tuple[te.Tensor, ...]
    small: tuple[int, ...]


@dataclass(frozen=True)
class PoolOp:
    """The maximum or the sum ("max", "sum") in windows of `padded`, which is `data` with a border.

    layout: a letter for each dimension, "NCHWc". The rest has an entry for each spatial dimension, in the order of the layout.
    """

    operator: str
    data: te.Tensor
    padded: te.Tensor
    layout: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]


@dataclass(frozen=True)
class AdaptivePoolOp:
    """The maximum or the sum in as many parts of each spatial dimension as the result has elements."""

    operator: str
    data: te.Tensor
    layout: str


@dataclass(frozen=True)
class EinsumOp:
    """The sum of products of `operands` that `subscripts` describe."""

    subscripts: str
    operands: tuple[te.Tensor, ...]


@dataclass(frozen=True)
class WindowSumOp:
    """Sums in windows of `size` neighbours along `axis` of `padded`, which is `source` with a border of zeros."""

    operator: str
    source: te.Tensor
    padded: te.Tensor
    axis: int
    size: int
