"""One node of a model, as the functions of `operators` see it: values, attributes, the version of its operator set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from tedsl.graph.onnx.refusal import Unsupported, inputs_behind
from tedsl.graph.value import Value


class Call:
    """A node of a model. inputs: None where an optional one is left out. extents: what is known of values of symbolic shapes.

    opset: the version of the operator set that the node belongs to. results: how many outputs are wanted, up to the last named.
    """

    def __init__(self, operator: str, opset: int, inputs: Sequence[Value | None], attributes: Mapping[str, Any], results: int,
                 extents: Mapping[Value, Any]) -> None:
        self.operator, self.opset, self.results = operator, opset, results
        self.inputs, self.attributes = tuple(inputs), attributes
        self._extents = extents

    def __getitem__(self, at: int) -> Value:
        """Input number `at`, which is not optional."""
        value = self.get(at)
        if value is None:
            raise Unsupported(f"its input number {at} is left out")
        return value

    def get(self, at: int) -> Value | None:
        """Input number `at`; None if it is left out."""
        return self.inputs[at] if at < len(self.inputs) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def array(self, at: int) -> Any:
        """The elements of input number `at`, which has to be a constant."""
        value = self[at]
        if value.data is None:
            raise Unsupported(f"its input number {at} ({value.name}) is not a constant", inputs_behind(value))
        return value.data

    def number(self, at: int, default: Any) -> Any:
        """The only element of the constant input number `at`; the default if it is left out."""
        return default if self.get(at) is None else self.array(at).reshape(-1)[0].item()

    def extents(self, at: int) -> tuple[Any, ...]:
        """Input number `at` as whole numbers and symbolic extents: a constant, or computed from the shapes of values."""
        value = self[at]
        known = self._extents.get(value)
        array = self.array(at) if known is None else known
        return tuple([int(one) if isinstance(one, (int, numpy.integer)) else one for one in array.reshape(-1)])

    def axes(self, name: str, at: int) -> tuple[int, ...] | None:
        """Axes given as an attribute by old operator sets and as an input by new ones; None if they are left out."""
        if name in self.attributes:
            return tuple(self.attributes[name])
        return tuple(map(int, self.array(at).reshape(-1))) if self.get(at) is not None else None

    def static_shape(self, at: int) -> tuple[int, ...]:
        """The shape of input number `at`, which must have no symbolic extents."""
        value = self[at]
        if not value.spec.is_static:
            raise Unsupported(f"its input number {at} ({value.name}: {value.spec}) has symbolic extents")
        return tuple([extent for extent in value.shape if isinstance(extent, int)])
