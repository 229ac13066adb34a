"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tedsl import te
from tedsl.autograd import Tensor
from tedsl.errors import ArgumentError
from tedsl.optim.optimizer import Array, Group, Optimizer
from tedsl.optim.update import update_rule


class Adam(Optimizer):
    """param -= lr * mean' / (sqrt(square') + eps), with running means of the gradient and of its square.

    mean = b1 * mean + (1 - b1) * g and square = b2 * square + (1 - b2) * g * g, where b1, b2 = betas and
    g = gradient + weight_decay * param; mean' = mean / (1 - b1**step), square' = square / (1 - b2**step).
    """

    state_arrays = ("mean", "square")
    decoupled = False  # whether the decay of weights goes past the running means

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def _check_options(self, group: Group) -> None:
        super()._check_options(group)
        betas = group["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ArgumentError(f"{self._name}: betas is {betas}, not two numbers from 0 and below 1")

    def update(self, param: Array, grad: Array, state: dict[str, Any], group: Group) -> None:
        state["step"] += 1
        first, second = group["betas"]
        decay = group["weight_decay"]
        adam_step(param, state["mean"], state["square"], grad, rate=group["lr"] / (1 - first ** state["step"]),
                  kept=1 - group["lr"] * decay if self.decoupled else 1.0, decay=0.0 if self.decoupled else decay,
                  first=first, first_rest=1 - first, second=second, second_rest=1 - second,
                  root=(1 - second ** state["step"]) ** -0.5, eps=group["eps"])


class AdamW(Adam):
    """Adam whose weights decay apart from the gradient: param *= 1 - lr * weight_decay before each step."""

    decoupled = True

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.01) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


@update_rule(written=["p", "m", "v"], read=["g"],
             scalars=["rate", "kept", "decay", "first", "first_rest", "second", "second_rest", "root", "eps"])
def adam_step(p: Any, m: Any, v: Any, g: Any, rate: Any, kept: Any, decay: Any, first: Any, first_rest: Any, second: Any,
              second_rest: Any, root: Any, eps: Any) -> tuple[Any, ...]:
    g = g + decay * p
    m = first * m + first_rest * g
    v = second * v + second_rest * g * g
    return kept * p - rate * m / (te.sqrt(v) * root + eps), m, v
