"""Graphs at random: element-wise operators, views, parts, joins, reductions, several outputs, values that are read twice."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tedsl.graph import Graph, Spec, Value, constant, ops

SHAPES = ((2, 6), (3, 4), (12,), (2, 2, 3))
UNARY = (ops.nn.relu, ops.tanh, ops.negative)


@st.composite
def graphs(draw, most: int = 12) -> Graph:
    """A graph of up to `most` nodes over arrays of twelve elements, or of twelve lines of memory."""
    line = draw(st.sampled_from((1, 16)))
    shapes = [(*shape[:-1], line * shape[-1]) for shape in SHAPES]
    inputs = [Value(f"x{at}", Spec(draw(st.sampled_from(shapes)))) for at in range(draw(st.integers(1, 3)))]
    values: list[Value] = [*inputs, constant(np.linspace(-1, 1, 12 * line, dtype="float32").reshape(3, 4 * line), name="w")]
    for _ in range(draw(st.integers(1, most))):
        values += _node(draw, values, shapes)
    made = values[len(inputs) + 1:]
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
    if draw(st.integers(0, 9)) == 0:
        outputs.append(draw(st.sampled_from(values)))  # an input or a constant may be an output
    return Graph(inputs, outputs, "random_graph")


def _node(draw, values: list[Value], shapes) -> list[Value]:
    x = draw(st.sampled_from(values))
    kind = draw(st.sampled_from(("unary", "binary", "view", "split", "joined", "turned", "softmax")))
    if kind == "unary":
        return [draw(st.sampled_from(UNARY))(x)]
    if kind == "binary":
        y = draw(st.sampled_from(values))
        return [ops.add(x, y if y.shape == x.shape else ops.reshape(y, x.shape))]
    if kind == "view":
        return [ops.reshape(x, draw(st.sampled_from(shapes)))]
    if kind == "split":
        return [ops.concatenate(list(reversed(ops.split(x, 2, 0))), 0)] if x.shape[0] % 2 == 0 else [ops.tanh(x)]
    if kind == "joined" and x.shape[0] % 2 == 0:
        parts = [draw(st.sampled_from(UNARY))(part) for part in ops.split(x, 2, 0)]
        return [ops.concatenate(draw(st.sampled_from((parts, [*parts[1:], parts[0]]))), 0)]
    if kind == "turned" and len(x.shape) == 2:
        return [ops.reshape(ops.transpose(x, (1, 0)), x.shape)]
    return [ops.nn.softmax(x)]
