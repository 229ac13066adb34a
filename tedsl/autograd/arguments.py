"""Arguments that hold tensors in tuples, lists and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.autograd.value import Value


def flattened(value: Any) -> list[Any]:
    """What the containers hold, in order; dicts by name."""
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flattened(part)]
    return [value]


def rebuilt(value: Any, function: Callable[[Any], Any]) -> Any:
    """The same containers with `function` of what they hold, in the order of `flattened`."""
    if isinstance(value, dict):
        made = {name: rebuilt(value[name], function) for name in sorted(value)}
        return {name: made[name] for name in value}
    if isinstance(value, (list, tuple)):
        parts = [rebuilt(part, function) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return function(value)


def key_of(value: Any, recording: bool) -> Any:
    """What arguments have in common with all for which the same kernel is right: kinds of tensors, values of the rest.

    recording: whether it matters which tensors need a gradient.
    """
    if isinstance(value, dict):
        return dict, *[(name, key_of(value[name], recording)) for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return type(value), *[key_of(part, recording) for part in value]
    if isinstance(value, Value):
        return value._kind, recording and value._requires_grad
    return type(value), value
