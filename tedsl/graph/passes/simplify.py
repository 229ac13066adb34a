"""simplify: nodes that change nothing, and pairs of nodes that are one.

    x * 1, x + 0, identity(x), cast(x, x.dtype)            x
    reshape(reshape(x)), flatten(squeeze(x)), ...          reshape(x), or x
    transpose(transpose(x))                                transpose(x), or x
    nn.conv2d(nn.pad(x, ...), w, padding=...)              nn.conv2d(x, w, padding=the sum of both)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.graph.apply import apply, made
from tedsl.graph.graph import Graph
from tedsl.graph.match import Match, Pattern, a_constant, anything, op, replace
from tedsl.graph.plan.views import VIEWS
from tedsl.graph.value import Node, Value
from topi.nn.utils import get_pad_tuple

Rule = tuple[Pattern, Callable[[Match], Any]]
_CONVOLUTIONS = {"nn.conv2d": "padding", "nn.conv2d_nchw": "padding"}


def simplify(graph: Graph) -> Graph:
    """The graph after all rules, until none applies."""
    while True:
        simpler = graph
        for pattern, change in _RULES:
            simpler = replace(simpler, pattern, change)
        if simpler is graph:
            return graph
        graph = simpler


def _operand(found: Match) -> Value | None:
    """The operand, if it has the shape and the dtype of the result."""
    return found["x"] if found["x"].spec == found.value.spec else None


def _view(found: Match) -> Value | None:
    """A view of a view, as one."""
    x = found["x"]
    if x.spec == found.value.spec:
        return x
    if "inner" not in found or not found.value.spec.is_static or x.dtype != found.value.dtype:
        return None
    result: Value = apply("reshape", x, tuple(found.value.shape))
    return result


def _axes(value: Value) -> list[int]:
    node, rank = _node(value), len(value.shape)
    axes = node.arguments.get("axes")
    return [axis % rank for axis in axes] if axes else list(reversed(range(rank)))


def _transpose(found: Match) -> Value | None:
    outer = _axes(found.value)
    if "inner" not in found:
        return found["x"] if outer == list(range(len(outer))) else None
    inner = _axes(found["inner"])
    axes = [inner[axis] for axis in outer]
    result: Value = found["x"] if axes == list(range(len(axes))) else apply("transpose", found["x"], tuple(axes))
    return result


def _padded(found: Match) -> Value | None:
    """A convolution that pads its data itself, where zeros are added around the image alone."""
    pad, conv = _node(found["padded"]), _node(found.value)
    before = pad.arguments["pad_before"]
    after = pad.arguments.get("pad_after") or before
    padding, kernel = conv.arguments.get("padding"), found["w"].shape[2:]
    layouts = [conv.arguments.get(name) for name in ("layout", "data_layout", "kernel_layout")]
    widths = (*before, *after)
    if not all(isinstance(width, int) and width >= 0 for width in widths) or any((*before[:2], *after[:2])) or \
            len(before) != 4 or any(layout not in (None, "", "NCHW", "OIHW") for layout in layouts) or \
            not all(isinstance(extent, int) for extent in kernel) or isinstance(padding, str):
        return None
    top, left, down, right = get_pad_tuple(list(padding) if isinstance(padding, tuple) else padding, kernel)
    whole = (top + before[2], left + before[3], down + after[2], right + after[3])
    first = next(iter(conv.arguments))
    return made(conv.operator, {**conv.arguments, first: found["x"], "padding": whole}).outputs[0]


def _node(value: Value) -> Node:
    assert value.node is not None
    return value.node


def _rules() -> tuple[Rule, ...]:
    x = anything("x")
    same = [op("identity", x), op("cast", x), op("broadcast_to", x), op(("concatenate", "elemwise_sum"), x),
            op(("add", "subtract"), x, a_constant(0)), op(("multiply", "divide"), x, a_constant(1))]
    rules: list[Rule] = [(pattern, _operand) for pattern in same]
    views = tuple(sorted(VIEWS))
    rules += [(op(views, op(views, x, name="inner")), _view), (op(views, x), _view)]
    rules += [(op("transpose", op("transpose", x, name="inner")), _transpose), (op("transpose", x), _transpose)]
    rules.append((op("nn.relu", op("nn.relu", x, name="inner")), lambda found: found["inner"]))
    pad = op("nn.pad", x, name="padded", pad_value=lambda given: given == 0)
    rules.append((op(tuple(_CONVOLUTIONS), pad, anything("w")), _padded))
    return tuple(rules)


_RULES = _rules()
