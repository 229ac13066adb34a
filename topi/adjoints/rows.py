"""Adjoints of operators that look at each row: softmax, normalizations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te
from topi.adjoints import row_norm
from topi.adjoints.parts import Part, Parts, in_dtype
from topi.extents import product
from topi.injective import injective
from topi.kinds import ChannelNormOp, NormalizeOp, ReduceOp, SoftmaxOp
from topi.reduction import sum as sum_of

Element = Callable[..., Any]  # from indices to an expression


def of_softmax(record: SoftmaxOp, op: te.Operation, head: te.Tensor) -> Parts:
    """Of y = softmax(x): (head - sum(head * y)) * y. Of z = log_softmax(x): head - exp(z) * sum(head)."""
    def made() -> te.Tensor:
        h, y = wide(head), wide(op.output(0))
        total = sum_of(h if record.logarithm else h * y, record.axis, keepdims=True)

        def formula(*i: Any) -> Any:
            of_row = total(*[0 if d == record.axis else at for d, at in enumerate(i)])
            return h(*i) - te.exp(y(*i)) * of_row if record.logarithm else (h(*i) - of_row) * y(*i)

        return injective("softmax_adjoint", head.shape, formula)

    return [(record.source, made)]


def of_normalization(record: NormalizeOp, op: te.Operation, head: te.Tensor) -> Parts:
    """Of y = n * gamma + beta with n = (x - mean) * scale, over a row:

    source:  scale * (g - mean(g) - n * mean(g * n)) with g = head * gamma;   gamma: the sum over rows of head * n
    """
    of_source, of_gamma, of_beta = _terms_of_normalization(record, head)
    kept = [d for d in range(head.ndim) if d not in record.axes]

    @functools.cache
    def of_scales() -> Sequence[te.Tensor]:
        return sums_of_both(wide(record.source), kept, of_gamma, of_beta, "scale_terms")

    parts: list[Part] = [(record.source, of_source)]
    if record.gamma is not None:
        parts.append((record.gamma, lambda: of_scales()[0]))
    if record.beta is not None:
        parts.append((record.beta, lambda: of_scales()[1] if record.gamma is not None else sum_of(wide(head), kept)))
    return parts


def of_normalization_together(record: NormalizeOp, op: te.Operation, head: te.Tensor,
                              inputs: Sequence[te.Tensor]) -> Parts:
    """The same where data and gamma get adjoints, in one walk over the rows; None where `row_norm` does not fit."""
    if record.gamma not in inputs or record.source not in inputs or not row_norm.fits(record, head):
        return None
    of_source, of_gamma, of_beta = _terms_of_normalization(record, head)
    found = row_norm.in_one_walk(record, head, of_source(), [of_gamma, *([] if record.beta is None else [of_beta])])
    operands = [tensor for tensor in (record.source, record.gamma, record.beta) if tensor is not None]
    return [(operand, functools.partial(found.__getitem__, n)) for n, operand in enumerate(operands)]


def _terms_of_normalization(record: NormalizeOp, head: te.Tensor) -> tuple[Callable[[], te.Tensor], Element, Element]:
    """The adjoint by data, and what each element adds to those by gamma and beta."""
    x, h, axes = wide(record.source), wide(head), record.axes
    kept = [d for d in range(x.ndim) if d not in axes]
    count = product([x.shape[d] for d in axes])
    divisor = te.const(count, x.dtype) if isinstance(count, int) else count.astype(x.dtype)

    def mean_of(element: Element, name: str) -> te.Tensor:
        total = sum_of(injective(name, x.shape, element), axes)
        mean: te.Tensor = te.map_elements("divide", lambda e: e / divisor, total, name=f"{name}_mean")
        return mean

    def of_row(statistic: te.Tensor, i: Any) -> Any:
        return statistic(*[i[d] for d in kept])

    mean = mean_of(lambda *i: x(*i), "row")
    variance = mean_of(lambda *i: (x(*i) - of_row(mean, i)) * (x(*i) - of_row(mean, i)), "deviation")
    scale = te.map_elements("rsqrt", lambda e: te.const(1, x.dtype) / te.sqrt(e + te.const(record.epsilon, x.dtype)), variance,
                            name="row_scale")

    def normal(*i: Any) -> Any:
        return (x(*i) - of_row(mean, i)) * of_row(scale, i)

    def scaled(*i: Any) -> Any:
        gamma = record.gamma
        return h(*i) if gamma is None else h(*i) * gamma(*[i[d] for d in axes]).astype(x.dtype)

    def of_source() -> te.Tensor:
        first, second = sums_of_both(x, axes, scaled, lambda *i: scaled(*i) * (x(*i) - of_row(mean, i)), "row_terms")
        share = te.compute(first.shape, lambda *i: first(*i) / divisor, name="head_mean")
        slope = te.compute(first.shape, lambda *i: second(*i) * scale(*i) / divisor, name="head_times_row_mean")
        return injective("normalization_adjoint", x.shape, lambda *i: of_row(scale, i) * (
            scaled(*i) - of_row(share, i) - normal(*i) * of_row(slope, i)))

    return of_source, lambda *i: h(*i) * normal(*i), lambda *i: h(*i)


def of_channels(record: ChannelNormOp, op: te.Operation, head: te.Tensor) -> Parts:
    """Of y = n * gamma + beta with n = (x - mean) * scale, over all but the channels:

    beta:  b = the sum of head;   gamma:  g = the sum of head * n;   source:  scale * gamma * (head - (b + n * g) / count)
    """
    x, h, mean, scale, gamma = wide(record.source), wide(head), record.mean, record.scale, record.gamma
    axes = tuple(d for d in range(x.ndim) if d != record.axis)
    count = product([x.shape[d] for d in axes])
    divisor = te.const(count, x.dtype) if isinstance(count, int) else count.astype(x.dtype)

    def normal(*i: Any) -> Any:
        return (x(*i) - mean(i[record.axis])) * scale(i[record.axis])

    @functools.cache
    def sums() -> Sequence[te.Tensor]:
        return sums_of_both(x, axes, lambda *i: h(*i) * normal(*i), lambda *i: h(*i), "channel_terms")

    def of_source() -> te.Tensor:
        of_gamma, of_beta = sums()
        slope = te.compute(mean.shape, lambda c: of_gamma(c) / divisor, name="slope")
        share = te.compute(mean.shape, lambda c: of_beta(c) / divisor, name="share")
        factor = scale if gamma is None else te.compute(
            mean.shape, lambda c: scale(c) * gamma(c).astype(x.dtype), name="factor")
        return injective("normalization_adjoint", x.shape, lambda *i: factor(i[record.axis]) * (
            h(*i) - share(i[record.axis]) - normal(*i) * slope(i[record.axis])))

    parts: list[Part] = [(record.source, of_source)]
    parts += [(gamma, lambda: sums()[0])] if gamma is not None else []
    parts += [(record.beta, lambda: sums()[1])] if record.beta is not None else []
    return parts


def sums_of_both(source: te.Tensor, axes: Sequence[int], one: Element, other: Element, name: str) -> Sequence[te.Tensor]:
    """The sums over `axes` of two formulas of the elements of `source`, in one look at it."""
    loops = {d: te.reduce_axis((0, source.shape[d]), name=f"k{d}") for d in axes}
    kept = [d for d in range(source.ndim) if d not in loops]
    both = te.comm_reducer(lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda t, u: (te.const(0, t), te.const(0, u)), name="sums")

    if not loops:
        return [injective(name, source.shape, element) for element in (one, other)]

    def formula(*i: Any) -> Any:
        at = {**dict(zip(kept, i)), **loops}
        place = [at[d] for d in range(source.ndim)]
        return both((one(*place), other(*place)), axis=list(loops.values()))

    sums: Sequence[te.Tensor] = te.compute([source.shape[d] for d in kept], formula, name=name, tag="comm_reduce_idx",
                                           info=ReduceOp("sums", source, tuple(axes), False), axes="ax")
    return sums


def wide(tensor: te.Tensor) -> te.Tensor:
    """The tensor as float32 if it holds 16-bit floats."""
    return in_dtype(tensor, "float32") if tensor.dtype.bits < 32 else tensor
