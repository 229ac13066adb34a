"""Derivatives that programs define for operations of their own: `te.register_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError, entry
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor

Rule = Callable[[Operation, Any, Sequence[Tensor]], "Mapping[Tensor, Tensor] | Sequence[Tensor | None]"]
_RULES: dict[str | type, Rule] = {}


@entry
def register_gradient(kind: str | type, function: Rule) -> None:
    """Use `function` for the derivative of all operations of a kind: of a tag, a record (`op.info`) or an operation class.

        te.register_gradient("my_exp", lambda op, head, inputs: [head * op.output(0)])

    kind: the tag of the operations, or the class of their records or of the operations themselves.
    function(op, head, inputs): for each of `inputs`, tensors that `op` reads, the derivative of sum(head * op.output(0)), as a
    list in their order or as a mapping; None for zero. The head has the shape of the output after leading dimensions, which
    the results have too; of an operation with several outputs `head` is a list.
    Registered again, the last function counts.
    """
    if not isinstance(kind, (str, type)) or not kind:
        raise ArgumentTypeError(f"register_gradient: the kind is {kind!r}, not a tag, a record class or an operation class",
                                hint='te.register_gradient("my_tag", rule), of operations made with tag="my_tag"')
    if not callable(function):
        raise ArgumentTypeError(f"register_gradient: the rule is {function!r}, not a function",
                                hint="a function of (op, head, inputs) that returns a derivative for each of inputs")
    _RULES[kind] = function


def rule_of(op: Operation) -> Rule | None:
    """The rule that a program registered for `op`: of its tag, else of its record, else of its class."""
    if not _RULES:
        return None
    return _RULES.get(op.tag) or _RULES.get(type(getattr(op, "info", None))) or _RULES.get(type(op))
