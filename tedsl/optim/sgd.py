"""Stochastic gradient descent, with momentum, Nesterov's momentum and weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tedsl.autograd import Tensor
from tedsl.errors import ArgumentError
from tedsl.optim.optimizer import Array, Group, Optimizer
from tedsl.optim.update import update_rule


class SGD(Optimizer):
    """param -= lr * direction, where direction is the gradient, or with momentum a running sum of gradients.

    buffer = momentum * buffer + (1 - dampening) * g, the first one g; g = gradient + weight_decay * param. direction: the
    buffer, or with `nesterov` g + momentum * buffer (Sutskever et al. 2013, in the form that PyTorch takes).
    """

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], lr: float = 1e-3, momentum: float = 0.0,
                 dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov})

    def _check_options(self, group: Group) -> None:
        super()._check_options(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentError(f"SGD: nesterov needs a momentum above 0 and no dampening; momentum is {group['momentum']}, "
                                f"dampening {group['dampening']}")

    def update(self, param: Array, grad: Array, state: dict[str, Any], group: Group) -> None:
        rate, decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        state["step"] += 1
        if momentum == 0:
            sgd_step(param, grad, lr=rate, decay=decay)
            return
        if "momentum" not in state:
            state["momentum"] = np.zeros_like(param, order="C")
        kept, taken = (0.0, 1.0) if state["step"] == 1 else (momentum, 1 - group["dampening"])
        rule = sgd_nesterov_step if group["nesterov"] else sgd_momentum_step
        rule(param, state["momentum"], grad, lr=rate, decay=decay, momentum=momentum, kept=kept, taken=taken)


@update_rule(written=["p"], read=["g"], scalars=["lr", "decay"])
def sgd_step(p: Any, g: Any, lr: Any, decay: Any) -> tuple[Any, ...]:
    return (p - lr * (g + decay * p),)


@update_rule(written=["p", "m"], read=["g"], scalars=["lr", "decay", "momentum", "kept", "taken"])
def sgd_momentum_step(p: Any, m: Any, g: Any, lr: Any, decay: Any, momentum: Any, kept: Any, taken: Any) -> tuple[Any, ...]:
    m = kept * m + taken * (g + decay * p)
    return p - lr * m, m


@update_rule(written=["p", "m"], read=["g"], scalars=["lr", "decay", "momentum", "kept", "taken"])
def sgd_nesterov_step(p: Any, m: Any, g: Any, lr: Any, decay: Any, momentum: Any, kept: Any, taken: Any) -> tuple[Any, ...]:
    g = g + decay * p
    m = kept * m + taken * g
    return p - lr * (g + momentum * m), m
