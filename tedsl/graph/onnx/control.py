"""Control flow that is known at import: the branch of an If that is taken, the steps of Scan and Loop one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from tedsl.graph.onnx.refusal import Unsupported, inputs_behind
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant

Inputs = Sequence["Value | None"]
Body = Callable[[Any, Inputs, str], "list[Value]"]  # the results of a graph for values of its inputs, at a place
CONTROL = ("If", "Scan", "Loop")


def controlled(operator: str, attributes: Mapping[str, Any], inputs: Inputs, body: Body) -> list[Value]:
    """The results of a node that holds graphs. body: imports such a graph."""
    return {"If": _branch, "Scan": _scan, "Loop": _loop}[operator](attributes, inputs, body)


def _known(value: Value | None, what: str) -> Any:
    if value is None or value.data is None:
        raise Unsupported(f"{what} is not a constant", inputs_behind(value) if value is not None else ())
    return value.data.item()


def _branch(attributes: Mapping[str, Any], inputs: Inputs, body: Body) -> list[Value]:
    wanted = "then_branch" if _known(inputs[0], "its condition") else "else_branch"
    return body(attributes[wanted], (), "")


def _scan(attributes: Mapping[str, Any], inputs: Inputs, body: Body) -> list[Value]:
    """A step for each index along the scanned dimensions; each gives states to the next, and parts of the other results."""
    count = attributes["num_scan_inputs"]
    states: list[Any] = list(inputs[:-count])
    axes = attributes.get("scan_input_axes", (0,) * count)
    back = attributes.get("scan_input_directions", (0,) * count)
    parts = [_parts(value, axis, bool(reverse)) for value, axis, reverse in zip(inputs[-count:], axes, back)]
    rows = []
    for step, scanned in enumerate(zip(*parts)):
        made = body(attributes["body"], [*states, *scanned], f"{step}/")
        rows.append(made[len(states):])
        states = made[:len(states)]
    kept = len(rows[0])
    places = attributes.get("scan_output_axes", (0,) * kept)
    turned = attributes.get("scan_output_directions", (0,) * kept)
    return [*states, *[_stacked([row[at] for row in rows], places[at], bool(turned[at])) for at in range(kept)]]


def _parts(value: Value | None, axis: int, reverse: bool) -> list[Value]:
    assert value is not None
    axis %= len(value.shape)
    extent = value.shape[axis]
    if not isinstance(extent, int) or not extent:
        raise Unsupported(f"steps over an extent of {extent}")
    cut = ops.split(value, extent, axis) if extent > 1 else [value]
    steps = [ops.squeeze(part, axis) for part in cut]
    return steps[::-1] if reverse else steps


def _stacked(values: list[Value], axis: int, reverse: bool) -> Value:
    made: Value = ops.stack(values[::-1] if reverse else values, axis)
    return made


def _loop(attributes: Mapping[str, Any], inputs: Inputs, body: Body) -> list[Value]:
    """A step for each number below the constant trip count, as long as the condition is the constant true."""
    limit = _known(inputs[0], "its number of steps")
    going = True if inputs[1] is None else _known(inputs[1], "its condition")
    states: list[Any] = list(inputs[2:])
    rows, step = [], 0
    while going and step < limit:
        begin = constant(numpy.array(step, "int64"))
        made = body(attributes["body"], [begin, constant(numpy.array(going)), *states], f"{step}/")
        going = bool(_known(made[0], "its condition after a step"))
        states, row = made[1:len(states) + 1], made[len(states) + 1:]
        rows.append(row)
        step += 1
    if not rows:
        if len(attributes["body"].output) > len(states) + 1:
            raise Unsupported("a loop without steps whose results are collected")
        return states
    return [*states, *[_stacked([row[at] for row in rows], 0, False) for at in range(len(rows[0]))]]
