"""Adjoints of operators that look at each row: softmax, normalizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from topi.adjoints.parts import Part, Parts, in_dtype
from topi.extents import product
from topi.injective import injective
from topi.kinds import NormalizeOp, SoftmaxOp
from topi.reduction import sum as sum_of


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
    x, h, axes = wide(record.source), wide(head), record.axes
    kept = [d for d in range(x.ndim) if d not in axes]
    count = product([x.shape[d] for d in axes])
    divisor = te.const(count, x.dtype) if isinstance(count, int) else count.astype(x.dtype)

    def mean_of(element: Callable[..., Any], name: str) -> te.Tensor:
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
        first = mean_of(scaled, "head")
        second = mean_of(lambda *i: scaled(*i) * normal(*i), "head_times_row")
        return injective("normalization_adjoint", x.shape, lambda *i: of_row(scale, i) * (
            scaled(*i) - of_row(first, i) - normal(*i) * of_row(second, i)))

    parts: list[Part] = [(record.source, of_source)]
    if record.gamma is not None:
        parts.append((record.gamma, lambda: sum_of(injective("gamma_terms", x.shape, lambda *i: h(*i) * normal(*i)), kept)))
    if record.beta is not None:
        parts.append((record.beta, lambda: sum_of(h, kept)))
    return parts


def wide(tensor: te.Tensor) -> te.Tensor:
    """The tensor as float32 if it holds 16-bit floats."""
    return in_dtype(tensor, "float32") if tensor.dtype.bits < 32 else tensor
