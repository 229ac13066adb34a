"""Module: parameters, buffers and modules inside of it, by the names of its attributes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import IO, Any, ClassVar, TypeVar, cast
from zipfile import BadZipFile

import numpy as np

from tedsl.autograd import Tensor
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError, type_in_words

M = TypeVar("M", bound="Module")


class Module:
    """Base of networks and layers. A subclass makes its parameters and layers in `__init__`, and computes in `forward`.

    Attributes that are tensors with `requires_grad` are parameters; those whose names stand in `buffers` are saved with them;
    modules, also in lists and tuples, are parts. training: whether it behaves as in training (dropout, batch norm).
    """

    buffers: ClassVar[tuple[str, ...]] = ()
    training: bool = True
    _own: frozenset[str] = frozenset()  # the attributes that were set to parameters, which may have been frozen since

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if isinstance(value, Tensor) and value.requires_grad:
            object.__setattr__(self, "_own", self._own | {name})
        elif name in self._own and not isinstance(value, Tensor):
            object.__setattr__(self, "_own", self._own - {name})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise TedslError(f"{type(self).__name__} has no forward", hint="def forward(self, x): return ...")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    # --- what it holds ------------------------------------------------------------------------------------------------

    def children(self) -> Iterator[tuple[str, Module]]:
        """The modules in its attributes, by name; those of a list by its name and their numbers."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, (list, tuple)):
                yield from ((f"{name}.{place}", part) for place, part in enumerate(value) if isinstance(part, Module))

    def modules(self) -> Iterator[tuple[str, Module]]:
        """It and all modules inside of it, each once, by path."""
        waiting: list[tuple[str, Module]] = [("", self)]
        seen: set[int] = set()
        while waiting:
            path, module = waiting.pop()
            if id(module) not in seen:
                seen.add(id(module))
                yield path, module
                waiting += reversed([(f"{path}.{name}" if path else name, child) for name, child in module.children()])

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters, each once, by path."""
        seen: set[int] = set()
        for path, value in self._named(lambda module, name, value: isinstance(value, Tensor) and value.requires_grad):
            if id(value) not in seen:
                seen.add(id(value))
                yield path, value

    def parameters(self) -> list[Tensor]:
        """The parameters, each once."""
        return [value for _, value in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors that are saved and are no parameters, by path."""
        return self._named(lambda module, name, value: name in module.buffers)

    def _named(self, chosen: Any) -> Iterator[tuple[str, Tensor]]:
        for path, module in self.modules():
            for name, value in vars(module).items():
                if chosen(module, name, value):
                    yield (f"{path}.{name}" if path else name), value

    # --- how it behaves -----------------------------------------------------------------------------------------------

    def train(self: M, mode: bool = True) -> M:
        """Makes it and its modules behave as in training, or as afterwards."""
        for _, module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """Makes it and its modules behave as after training."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Drops the gradients of its parameters."""
        for parameter in self.parameters():
            parameter.grad = None

    # --- saving -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the arrays of parameters and buffers, by path."""
        return {path: np.copy(value.data.numpy()) for path, value in self._state().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the elements of arrays by path, as `state_dict` gave them. Raises ArgumentError, with nothing changed, where
        names or shapes differ.
        """
        if not isinstance(state, Mapping):
            raise ArgumentTypeError(f"{type(self).__name__}.load_state_dict: {type_in_words(state)} is not what state_dict() "
                                    "gave",
                                    hint="load(path) reads a file that save(path) wrote")
        own = self._state()
        wrong = [f"{path} is missing" for path in own if path not in state]
        wrong += [f"{path} is not in the module" for path in state if path not in own]
        wrong += [f"{path} has shape {np.shape(state[path])}, not {value.shape}" for path, value in own.items()
                  if path in state and np.shape(state[path]) != value.shape]
        if wrong:
            raise ArgumentError(f"{type(self).__name__}.load_state_dict: " + "; ".join(wrong[:5])
                                + f"; and {len(wrong) - 5} more" * (len(wrong) > 5))
        for path, value in own.items():
            value.detach().copy_(_converted(np.asarray(state[path]), value.data.numpy().dtype))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `state_dict` to an .npz file. Raises ArgumentError where it cannot be written."""
        with _opened(path, "wb", f"{type(self).__name__}.save", "the folder must exist and be writable") as file:
            arrays: dict[str, Any] = self.state_dict()
            np.savez(file, **arrays)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Takes what `save` wrote. Raises ArgumentError for a file that is not there, or is another."""
        try:
            with _opened(path, "rb", f"{type(self).__name__}.load", "save(path) writes one") as file, \
                    np.load(file, allow_pickle=False) as saved:
                state = dict(saved)
        except ArgumentError:
            raise
        except (ValueError, TypeError, AttributeError, BadZipFile):
            raise ArgumentError(f"{type(self).__name__}.load: {os.fspath(path)!r} is not a file that save(path) wrote",
                                hint="it is an .npz file of arrays by their paths in the network") from None
        self.load_state_dict(state)

    def _state(self) -> dict[str, Tensor]:
        """What is saved: parameters, also those that were frozen by `requires_grad = False`, and buffers."""
        seen: set[int] = set()
        found = {}
        for path, value in self._named(lambda module, name, value: name in module._own or
                                       (isinstance(value, Tensor) and value.requires_grad)):
            if id(value) not in seen:
                seen.add(id(value))
                found[path] = value
        return {**found, **dict(self.named_buffers())}

    # --- how it is shown ----------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands between the parentheses of a layer."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self.children()]
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else self.extra_repr()
        return f"{type(self).__name__}({inside})"


def _opened(path: str | os.PathLike[str], mode: str, where: str, hint: str) -> IO[bytes]:
    """The file at `path`. Raises ArgumentError where it cannot be opened."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"{where}: {type_in_words(path)} is not the path of a file")
    try:
        return cast("IO[bytes]", open(path, mode))
    except OSError as error:
        raise ArgumentError(f"{where}: {os.fspath(path)!r}: {error.strerror}", hint=hint) from None


def _converted(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Elements of a file in the dtype of a parameter. numpy writes bfloat16 as bytes without a type."""
    return array.view(dtype) if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize else array.astype(dtype)


class Sequential(Module):
    """Modules and functions, each applied to the result of the one before."""

    def __init__(self, *layers: Any) -> None:
        for place, layer in enumerate(layers):
            if not callable(layer):
                raise ArgumentTypeError(f"Sequential: layer {place} is {type_in_words(layer)}, not a module or a function")
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def children(self) -> Iterator[tuple[str, Module]]:
        for place, layer in enumerate(self.layers):
            if isinstance(layer, Module):
                yield str(place), layer

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, place: int) -> Any:
        return self.layers[place]
