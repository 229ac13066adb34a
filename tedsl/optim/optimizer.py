"""What all optimisers share: groups of parameters with options of their own, state by parameter, saving and loading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tedsl.autograd import Tensor
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words

Array = np.ndarray[Any, Any]
Group = dict[str, Any]


class Optimizer:
    """Base of optimisers: changes parameters in place by their gradients.

    groups: dictionaries of "params" and the options that hold for them, such as "lr"; `param_groups` as PyTorch names them.
    state: for each parameter, arrays and numbers by name.
    """

    defaults: ClassVar[Mapping[str, Any]] = {}
    state_arrays: ClassVar[tuple[str, ...]] = ()  # of the shape of the parameter, zeros at first

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], options: Mapping[str, Any]) -> None:
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, dict[str, Any]] = {}
        self._options = {**self.defaults, **options}
        if not isinstance(params, (Tensor, Iterable)):
            raise ArgumentTypeError(f"{self._name}: expected tensors, not {type_in_words(params)}", hint="model.parameters()")
        given = list(params) if not isinstance(params, Tensor) else [params]
        if not given:
            raise ArgumentError(f"{self._name}: there are no parameters",
                                hint="pass model.parameters(), or a list of tensors that require gradients")
        groups: list[Any] = given if isinstance(given[0], Mapping) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds the tensors `group["params"]`, with the options that the group names and those of the optimiser otherwise."""
        if not isinstance(group, Mapping) or "params" not in group:
            raise ArgumentTypeError(f"{self._name}: a group of parameters is a dictionary with \"params\", "
                                    f"not {type_in_words(group)}")
        unknown = [key for key in group if key != "params" and key not in self._options]
        if unknown:
            raise ArgumentError(f"{self._name}: a group of parameters names {', '.join(map(repr, unknown))}; "
                                f"the options are {', '.join(self._options)}")
        params = group["params"]
        made: Group = {**self._options, **group, "params": [params] if isinstance(params, Tensor) else list(params)}
        known = {param for other in self.param_groups for param in other["params"]}
        for place, param in enumerate(made["params"]):
            self._check_parameter(param, place, known)
            known.add(param)
        self._check_options(made)
        self.param_groups.append(made)

    def _check_parameter(self, param: object, place: int, known: set[Tensor]) -> None:
        if not isinstance(param, Tensor):
            raise ArgumentTypeError(f"{self._name}: parameter {place} is {type_in_words(param)}, not a "
                                    "tensor of tedsl.autograd")
        if not (param.is_leaf and param.requires_grad):
            raise ArgumentError(f"{self._name}: parameter {place}, of shape {param.shape}, "
                                + ("does not require a gradient" if param.is_leaf else "is computed from others"),
                                hint="parameters are tensors that the program makes with requires_grad=True")
        if param in known:
            raise ArgumentError(f"{self._name}: parameter {place}, of shape {param.shape}, is there twice")

    def _check_options(self, group: Group) -> None:
        """Raises ArgumentError where an option of `group` has no sense."""
        for name in ("lr", "weight_decay", "momentum", "eps"):
            if name in group and not (isinstance(group[name], (int, float)) and group[name] >= 0):
                raise ArgumentError(f"{self._name}: {name} is {group[name]!r}, not a number from 0")

    def zero_grad(self) -> None:
        """Drops the gradients of all parameters: they become None."""
        for group in self.param_groups:
            for param in group["params"]:
                param.grad = None

    def step(self) -> None:
        """Changes each parameter that has a gradient, once."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._check_gradient(param)
                    self.update(param.data.numpy(), param.grad.data.numpy(), self._state_of(param), group)
                    param.count_change()

    def _check_gradient(self, param: Tensor) -> None:
        grad = param.grad
        if not isinstance(grad, Tensor) or grad.shape != param.shape:
            raise ArgumentError(f"{self._name}: the grad of a parameter of shape {param.shape} was set to "
                                + (f"a tensor of shape {grad.shape}" if isinstance(grad, Tensor) else type_in_words(grad)),
                                hint="a gradient is a tensor of the shape of its parameter; None clears it")

    def update(self, param: Array, grad: Array, state: dict[str, Any], group: Group) -> None:
        """Changes `param` and the arrays of its `state` in place by the rule of this optimiser."""
        raise NotImplementedError

    def _state_of(self, param: Tensor) -> dict[str, Any]:
        if param not in self.state:
            array = param.data.numpy()
            self.state[param] = {"step": 0, **{name: np.zeros_like(array, order="C") for name in self.state_arrays}}
        return self.state[param]

    def state_dict(self) -> dict[str, Any]:
        """The state by the number of the parameter, and the options of each group, as numbers and arrays that can be saved."""
        numbers = self._numbers()
        return {"state": {numbers[param]: {name: np.copy(value) if isinstance(value, np.ndarray) else value
                                           for name, value in state.items()} for param, state in self.state.items()},
                "param_groups": [{**{k: v for k, v in group.items() if k != "params"},
                                  "params": [numbers[param] for param in group["params"]]} for group in self.param_groups]}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Takes the state and the options that `state_dict` of an optimiser of as many parameters gave."""
        if not isinstance(saved, Mapping) or not {"state", "param_groups"} <= saved.keys():
            raise ArgumentTypeError(f"{self._name}: {type_in_words(saved)} is not what state_dict() gave")
        here, there = ([len(group["params"]) for group in groups] for groups in (self.param_groups, saved["param_groups"]))
        if here != there:
            raise ArgumentError(f"{self._name}: the saved state is for groups of {there} parameters, and there are {here}")
        params = list(self._numbers())
        self._check_state(saved["state"], params)
        for group, options in zip(self.param_groups, saved["param_groups"]):
            group.update({k: v for k, v in options.items() if k != "params"})
        self.state = {params[int(number)]: {name: np.array(value) if np.ndim(value) or name in self.state_arrays else value
                                            for name, value in state.items()} for number, state in saved["state"].items()}

    def _check_state(self, saved: Mapping[Any, Mapping[str, Any]], params: Sequence[Tensor]) -> None:
        for number, state in saved.items():
            param = params[int(number)]
            for name in self.state_arrays:
                shape = np.asarray(state.get(name)).shape
                if shape != param.shape:
                    raise ArgumentError(f"{self._name}: the saved {name} of parameter {number} has shape {shape}, and the "
                                        f"parameter has {param.shape}")

    def _numbers(self) -> dict[Tensor, int]:
        return {param: number for number, param in enumerate(p for group in self.param_groups for p in group["params"])}

    def __repr__(self) -> str:
        groups = "; ".join(f"{len(group['params'])} parameters, "
                           + ", ".join(f"{k}={v}" for k, v in group.items() if k != "params") for group in self.param_groups)
        return f"{self._name}({groups})"


