"""Loss functions."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import differ, opening, require_integers, shown
from topi.reduction import sum as sum_of


@checked
def nll_loss(predictions: te.Tensor, targets: te.Tensor, weights: te.Tensor, reduction: str, ignore_index: int) -> te.Tensor:
    """The negative log likelihood: -weights[t] * predictions[n, t, ...] with t = targets[n, ...], 0 where t is ignore_index.

    predictions: (batch, classes, ...), logarithms of probabilities. targets: (batch, ...), classes. weights: (classes,).
    reduction: "none" for the shape of the targets, "sum", or "mean", which divides by the sum of the weights that were used.
    The same as torch.nn.functional.nll_loss.
    """
    where = opening("nll_loss", predictions, targets)
    if reduction not in ("none", "sum", "mean"):
        raise ArgumentError(f'{where}: reduction is "{reduction}"', hint='"none", "sum" or "mean"')
    expected = [predictions.shape[0], *predictions.shape[2:]] if predictions.ndim > 1 else []
    if predictions.ndim < 1 or len(expected) != targets.ndim or any(differ(a, b) for a, b in zip(targets.shape, expected)):
        raise ShapeError(f"{where}: targets are {shown(targets.shape)} and predictions {shown(predictions.shape)}",
                         hint="predictions have a dimension of classes more, at place 1")
    classes = predictions.shape[1 if predictions.ndim > 1 else 0]
    if weights.ndim != 1 or differ(weights.shape[0], classes):
        raise ShapeError(f"{where}: weights are {shown(weights.shape)} for {classes!r} classes")
    require_integers(targets, where, "targets")

    def chosen(value: Any, *i: Any) -> Any:
        return te.if_then_else(targets(*i).equal(te.const(ignore_index, targets.dtype)), te.const(0, predictions.dtype), value)

    def loss(*i: Any) -> Any:
        t = targets(*i)
        place = (i[0], t, *i[1:]) if i else (t,)
        return chosen(-predictions(*place) * weights(t), *i)

    losses: te.Tensor = te.compute(targets.shape, loss, name="nll_loss", tag="broadcast", axes="ax")
    if reduction == "none":
        return losses
    total = sum_of(losses)
    if reduction == "sum":
        return total
    used = sum_of(te.compute(targets.shape, lambda *i: chosen(weights(targets(*i)), *i), name="nll_loss_weights",
                             tag="broadcast", axes="ax"))
    mean: te.Tensor = total / used
    return mean
