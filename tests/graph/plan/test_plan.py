"""Memory plans of graphs."""

import numpy as np
import pytest
from hypothesis import given, settings

from tedsl import graph, te
from tedsl.errors import GraphError
from tedsl.graph import Graph, Spec, ops
from tedsl.graph.plan import plan
from tests.graph.random_graphs import graphs


def traced(fn, *shapes):
    return graph.trace(fn, *[Spec(shape) for shape in shapes])


def in_use(memory):
    return range(memory.begin, memory.end + 1)


@given(graphs())
@settings(deadline=None, max_examples=100)
def test_values_that_are_needed_together_have_memory_of_their_own(g):
    made = plan(g)
    blocks = list(made.blocks)
    for at, a in enumerate(blocks):
        for b in blocks[:at]:
            if a.begin <= b.end and b.begin <= a.end:
                assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert all(block.offset + block.size <= made.size for block in blocks)
    assert sum(made.least.values()) <= made.size <= made.separate


@given(graphs())
@settings(deadline=None, max_examples=100)
def test_every_value_has_one_place(g):
    made = plan(g)
    values = [value for memory in made.memories for value in memory.values]
    expected = {*g.inputs, *g.constants, *[out for node in g.nodes for out in node.outputs]}
    assert len(values) == len(set(values)) and set(values) == expected


def test_a_view_is_no_step_and_has_the_memory_of_its_operand():
    g = traced(lambda x: ops.nn.softmax(ops.reshape(ops.tanh(x), (6,))), (2, 3))
    made = plan(g)
    assert [node.operator for node in made.steps] == ["tanh", "nn.softmax"]
    assert [len(block.values) for block in made.blocks] == [2]


def test_parts_and_what_is_joined_are_no_steps():
    def fn(x):
        first, second = ops.split(ops.tanh(x), 2, 0)
        return ops.nn.softmax(ops.concatenate([ops.nn.softmax(second), ops.negative(first)], 0))

    g = traced(fn, (4, 16))
    made = plan(g)
    assert [node.operator for node in made.steps] == ["tanh", "nn.softmax", "negative", "nn.softmax"]
    assert [list(block.values.values()) for block in made.blocks] == [[0, 0, 128], [0, 0, 128]]
    assert made.size == 512 and not made.overwritten, "parts of the first are read until the second is complete"
    assert "(2, 16)" not in str(made) and "at 128" in str(made)


@pytest.mark.parametrize("fn, steps", [
    (lambda x: ops.concatenate([ops.tanh(x), x], 0), 2),
    (lambda x: ops.concatenate([ops.tanh(x)] * 2, 0), 2),
    (lambda x: ops.concatenate([ops.tanh(x), np.ones((2, 16), "float32")], 0), 2),
    (lambda x: [a := ops.tanh(x), ops.concatenate([a, ops.negative(x)], 0)], 3),
    (lambda x: [ops.reshape(a := ops.tanh(x), (64,)), ops.concatenate([a, ops.negative(x)], 0)], 3),
    (lambda x: [ops.concatenate([a := ops.tanh(x), ops.negative(x)], 0), ops.concatenate([a, ops.nn.relu(x)], 0)], 4),
    (lambda x: ops.concatenate(ops.split(ops.tanh(x), 2, 0), 0), 2),
    (lambda x: ops.split(ops.tanh(x), 2, 0), 2),
    (lambda x: ops.reshape(ops.split(ops.tanh(x), 2, 0)[1], (32,)), 2),
    (lambda x: ops.concatenate([ops.tanh(x), ops.negative(x)], 1), 3)],
    ids=["an input", "one twice", "a constant", "an output", "a view that is an output", "for two", "parts",
         "parts for the caller", "a view of a part for the caller", "another axis"])
def test_what_stands_elsewhere_is_copied(fn, steps):
    g = traced(fn, (4, 16))
    assert len(plan(g).steps) == steps


def test_parts_that_begin_inside_of_lines_are_copied():
    def fn(x):
        first, second = ops.split(ops.tanh(x), 2, 0)
        return ops.concatenate([ops.nn.softmax(second), ops.nn.softmax(first)], 0)

    assert len(plan(traced(fn, (4, 8))).steps) == 3
    assert len(plan(traced(fn, (4, 7))).steps) == 5


def test_a_result_may_stand_where_its_last_read_operand_stood():
    g = traced(lambda x: ops.nn.softmax(ops.tanh(ops.nn.relu(ops.nn.softmax(x)))), (4, 16))
    made = plan(g)
    assert len(made.overwritten) == 2 and len(made.blocks) == 1
    assert len(plan(g, in_place=False).blocks) == 3


def test_an_operand_that_is_read_again_is_not_overwritten():
    def fn(x):
        a = ops.nn.softmax(x)
        return ops.nn.softmax(ops.tanh(a) * a)

    made = plan(traced(fn, (4, 16)))
    assert [node.operator for node in made.overwritten] == ["multiply"]


@pytest.mark.parametrize("last", [ops.transpose, ops.nn.softmax, lambda a: ops.add(a, ops.transpose(a)),
                                  lambda a: ops.cumsum(a, 0), lambda a: ops.flip(a, 0)],
                         ids=["transpose", "softmax", "turned too", "cumsum", "flip"])
def test_what_reads_elements_elsewhere_is_not_in_place(last):
    g = traced(lambda x: ops.nn.softmax(last(ops.nn.softmax(x))), (4, 4))
    assert last is ops.transpose or not any(node.operator != "add" for node in plan(g).overwritten)
    assert not [node for node in plan(g).overwritten if node.operator in ("transpose", "nn.softmax", "cumsum", "flip")]


def test_inputs_constants_and_outputs_are_not_in_the_arena():
    g = traced(lambda x: ops.tanh(x) + np.ones((2, 3), "float32"), (2, 3))
    made = plan(g)
    assert made.size == made.separate or {memory.home for memory in made.memories} == {"input", "constant", "output"}
    assert made.size == 0


def test_each_device_has_an_arena():
    g = traced(lambda x: ops.nn.softmax(ops.nn.softmax(ops.nn.softmax(x))), (4, 16))
    made = plan(g, device_of=lambda value: "cpu" if value.node is g.nodes[0] else "cuda:0")
    assert dict(made.sizes) == {"cpu": 256, "cuda:0": 256}


def test_the_text_says_offset_size_and_steps():
    made = plan(traced(lambda x: ops.nn.softmax(ops.nn.softmax(x)), (4, 16)))
    assert str(made) == ("memory of main: 256 bytes for 1 blocks, placed largest first\n"
                         "256 bytes are in use at one time, 256 bytes would be needed without sharing\n"
                         "offset  bytes  steps  values\n"
                         "     0    256    0-1  softmax float32[4, 16]")


def test_the_picture_has_a_box_for_each_block():
    made = plan(traced(lambda x: ops.nn.softmax(ops.nn.softmax(ops.nn.softmax(x))), (4, 16)))
    assert made._repr_svg_().count("<rect") == len(made.blocks) == 2
    assert "<svg" in made._repr_html_()


def test_extents_have_to_be_known():
    n = te.var("n")
    g = graph.trace(ops.tanh, Spec((n, 4)))
    with pytest.raises(GraphError, match=r"whose size is not known(.|\n)*with_inputs"):
        plan(g)


def test_a_graph_without_nodes_needs_no_memory():
    x = graph.Value("x", Spec((2,)))
    assert plan(Graph([x], [x])).size == 0
