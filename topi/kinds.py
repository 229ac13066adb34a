"""Typed records of operator families, which operators store in `op.info` for schedules to find their stages.

Element-wise and broadcasting operators leave `te.ElementwiseOp`. Records that are `Differentiable` give the derivative of
their operator in operators (`topi.adjoints`), which has fast schedules; the formulas of all others are differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import ClassVar

from tedsl import te
from tedsl.record import record


class Differentiable:
    """A record whose operator has an adjoint. operand_fields: the fields that hold what the operator was called with: tensors,
    None where one was left out, or tuples of them.
    """

    operand_fields: ClassVar[tuple[str, ...]] = ()

    def operands(self, op: te.Operation) -> tuple[te.Tensor, ...]:
        """The tensors that the operator was called with."""
        tensors: list[te.Tensor] = []
        for name in self.operand_fields:
            given = getattr(self, name)
            tensors += given if isinstance(given, tuple) else [] if given is None else [given]
        return tuple(tensors)

    def adjoint(self, op: te.Operation, head: te.Tensor, inputs: Sequence[te.Tensor]) -> Mapping[te.Tensor, te.Tensor] | None:
        """For each of `inputs`, some of the operands, the derivative of sum(head * op.output(0)); None if there is no adjoint
        in operators for this case.
        """
        from topi.adjoints.table import adjoint_of

        return adjoint_of(self, op, head, inputs)

    def adjoint_of_heads(self, op: te.Operation, head: te.Tensor,
                         inputs: Sequence[te.Tensor]) -> Mapping[te.Tensor, te.Tensor] | None:
        """The same for a head with leading dimensions, which the adjoints have too; of operators that are statements."""
        from topi.adjoints.table import adjoint_of_heads

        return adjoint_of_heads(self, op, head, inputs)


@record
class InjectiveOp:
    """Each element of the result depends on one element of each input: padding, transposing, ..."""

    operator: str


@record
class ExchangeOp:
    """Weights with another last dimension, stored for what reads them several times: convolutions of parts of them, or the
    steps of a recurrence.
    """

    operator: str


@record
class ReduceOp(Differentiable):
    """A reduction of `source` over its dimensions `axes` (sorted, from 0)."""

    operand_fields: ClassVar[tuple[str, ...]] = ("source",)

    operator: str
    source: te.Tensor
    axes: tuple[int, ...]
    keepdims: bool


@record
class SoftmaxOp(Differentiable):
    """softmax of `source` along `axis`, or its logarithm; `stages` are computed for it before: maximum, exponentials, sum."""

    operand_fields: ClassVar[tuple[str, ...]] = ("source",)

    source: te.Tensor
    axis: int
    stages: tuple[te.Tensor, ...]
    logarithm: bool = False


@record
class RowsOp:
    """Formulas over rows, each with statistics of its own. Fusion finds them in a graph; no operator leaves this record."""


@record
class NormalizeOp(Differentiable):
    """A normalization of each row of `source`, over its dimensions `axes` (sorted, from 0), by its own statistics; `stages` in
    order. gamma, beta: what it is scaled with and what is added, if anything; epsilon: what is added to the variance.
    """

    operand_fields: ClassVar[tuple[str, ...]] = ("source", "gamma", "beta")

    operator: str
    source: te.Tensor
    axes: tuple[int, ...]
    stages: tuple[te.Tensor, ...]
    gamma: te.Tensor | None = None
    beta: te.Tensor | None = None
    epsilon: float = 0.0


@record
class RowScaleOp:
    """As `NormalizeOp`, of rows whose factors are not one for each of their elements, or without a mean; adjoints follow the
    formula.
    """

    operator: str
    source: te.Tensor
    axes: tuple[int, ...]
    stages: tuple[te.Tensor, ...]


@record
class ChannelNormOp(Differentiable):
    """A normalization of each channel, an index of dimension `axis` of `source`, by its own statistics: `mean` and `scale`, the
    inverse of the standard deviation. gamma, beta: what it is scaled with and what is added, if anything.
    """

    operand_fields: ClassVar[tuple[str, ...]] = ("source", "gamma", "beta")

    operator: str
    source: te.Tensor
    axis: int
    mean: te.Tensor
    scale: te.Tensor
    gamma: te.Tensor | None = None
    beta: te.Tensor | None = None


@record
class MatmulOp(Differentiable):
    """A product of matrices, a[..., i, k] * b[..., k, j], either of them stored transposed; `batched`: of several."""

    operand_fields: ClassVar[tuple[str, ...]] = ("a", "b",)

    operator: str
    a: te.Tensor
    b: te.Tensor
    transpose_a: bool
    transpose_b: bool
    batched: bool = False


@record
class ScatterOp(Differentiable):
    """Stores at positions that another tensor holds. axis: the only dimension in which they differ from the source, or None.

    tensors: what the operator was called with. adds: whether elements are added to those that are there.
    """

    operand_fields: ClassVar[tuple[str, ...]] = ("tensors",)

    operator: str
    axis: int | None
    tensors: tuple[te.Tensor, ...] = field(default=(), compare=False)
    adds: bool = False


@record
class CumulativeOp(Differentiable):
    """Running sums or products of `source` along `axis`. exclusive: without the element itself."""

    operand_fields: ClassVar[tuple[str, ...]] = ("source",)

    operator: str
    source: te.Tensor
    axis: int
    exclusive: bool = False


@record
class SortOp(Differentiable):
    """`source` put in order along `axis`, whole or the first elements of it; or places in that order."""

    operand_fields: ClassVar[tuple[str, ...]] = ("source",)

    operator: str
    source: te.Tensor
    axis: int
    ascending: bool = True


@record
class ConvOp(Differentiable):
    """A convolution of `data` with `kernel`; `padded` is what it reads: `data` with zeros around it.

    layout, kernel_layout: a letter for each dimension, "NCHW" and "OIHW". The rest has an entry for each of D, H, W.
    """

    operand_fields: ClassVar[tuple[str, ...]] = ("data", "kernel")

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


@record
class PanelsOp:
    """Weights read from `panels` of `wide` results each.

    Of a convolution: (panels, channels, height, width, 1, wide), or (panels, height, width, channels / group, wide, group).
    Of a product: (panels, terms, wide), or (panels, terms / group, wide, group).
    """

    operator: str
    panels: te.Tensor
    wide: int
    group: int = 1


@record
class DepthwiseConvOp(ConvOp):
    """A convolution of each channel alone; the kernel's letters are C (channel) and M (results for each channel)."""


@record
class PackedConvOp(ConvOp):
    """A convolution of layouts with blocks of channels innermost, "NCHWc" and "OIHWio"."""


@record
class PackedDepthwiseConvOp(ConvOp):
    """A convolution of each channel alone, of layouts with blocks of channels innermost."""


@record
class TransposedConvOp(Differentiable):
    """A transposed convolution as one with stride 1: sums of `padded` (data with zeros in and around it) times `flipped`."""

    operand_fields: ClassVar[tuple[str, ...]] = ("data", "kernel")

    operator: str
    data: te.Tensor
    kernel: te.Tensor
    padded: te.Tensor
    flipped: te.Tensor
    layout: str
    kernel_layout: str
    strides: tuple[int, ...]
    groups: int = 1
    before: tuple[int, ...] = ()  # the padding that the convolution would have of which this is the gradient


@record
class TiledConvOp(Differentiable):
    """A convolution with stride and dilation 1 that other operators compute by tiles, as in winograd."""

    operand_fields: ClassVar[tuple[str, ...]] = ("data", "kernel")

    operator: str
    data: te.Tensor
    kernel: te.Tensor
    layout: str
    kernel_layout: str
    before: tuple[int, ...]
    after: tuple[int, ...]


@record
class TransformOp:
    """A product of small constant matrices with parts of a tensor, as in winograd.

    stages: the stages computed for it before. small: the numbers of the axes that select rows of the matrices; in each of
    `stages` all of these but the last.
    """

    operator: str
    stages: tuple[te.Tensor, ...]
    small: tuple[int, ...]


@record
class PoolOp(Differentiable):
    """The maximum or the sum ("max", "sum") in windows of `padded`, which is `data` with a border.

    layout: a letter for each dimension, "NCHWc". The rest has an entry for each spatial dimension, in the order of the layout.
    """

    operand_fields: ClassVar[tuple[str, ...]] = ("data",)

    operator: str
    data: te.Tensor
    padded: te.Tensor
    layout: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...] = field(default=(), compare=False)
    after: tuple[int, ...] = field(default=(), compare=False)


@record
class InterleaveOp(Differentiable):
    """Tensors put together element by element: result[i * steps + start] = part[i], a start for each of `parts`."""

    operand_fields: ClassVar[tuple[str, ...]] = ("parts",)

    operator: str
    parts: tuple[te.Tensor, ...]
    starts: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]


@record
class PlacedSumOp(Differentiable):
    """Sums of the elements of `grads` at `places`: positions, in row-major order, in the neighbouring dimensions `dims` of the
    result; elements with the place -1 are left out. The other dimensions are those of `grads`.
    """

    operand_fields: ClassVar[tuple[str, ...]] = ("grads", "places")

    operator: str
    grads: te.Tensor
    places: te.Tensor
    dims: tuple[int, ...]


@record
class TogetherOp:
    """Results that statements compute together. formulas: for each of them a tensor of the same values, made of formulas and
    operators: te.gradient and te.jvp differentiate these.
    """

    operator: str
    formulas: tuple[te.Tensor, ...]


@record
class AdaptivePoolOp:
    """The maximum or the sum in as many parts of each spatial dimension as the result has elements."""

    operator: str
    data: te.Tensor
    layout: str


@record
class EinsumOp(Differentiable):
    """The sum of products of `tensors` that `subscripts` describe."""

    operand_fields: ClassVar[tuple[str, ...]] = ("tensors",)

    subscripts: str
    tensors: tuple[te.Tensor, ...]


@record
class WindowSumOp:
    """Sums in windows of `size` neighbours along `axis` of `padded`, which is `source` with a border of zeros."""

    operator: str
    source: te.Tensor
    padded: te.Tensor
    axis: int
    size: int
