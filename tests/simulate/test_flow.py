"""PTX text becomes instructions and blocks, in an order in which threads meet again."""

import random

import pytest

from tedsl.errors import DeviceError
from tedsl.simulate.ptx.flow import blocks_of, loops_together
from tedsl.simulate.ptx.parse import parse
from tedsl.simulate.ptx.syntax import Group, Memory, Number, Register, Special, Symbol
from tests.simulate.kernels import kernel


def instructions(body):
    made = parse(kernel(body, ())).kernels["k"].body
    return made[1:-1]


def test_operands():
    one, = instructions("ld.global.v2.f32 {%f1, %f2}, [%rd1+-8];")
    assert one.parts == ("ld", "global", "v2", "f32")
    assert one.operands == (Group((Register("%f1"), Register("%f2"))), Memory(Register("%rd1"), -8))
    one, = instructions("@!%p1 mov.b32 %r1, 0f3F800000;")
    assert one.guard == (Register("%p1"), True) and one.operands[1] == Number(0x3F800000, "f32")
    one, = instructions("shfl.sync.down.b32 %r1|%p1, %r2, 0x10, 31, -1;")
    assert one.operands[0] == Group((Register("%r1"), Register("%p1")), paired=True)
    assert one.operands[2:] == (Number(16), Number(31), Number(-1))
    one, two = instructions("mov.u32 %r1, %tid.x; mov.u64 %rd1, s+4;")
    assert one.operands[1] == Special("%tid.x") and two.operands[1] == Symbol("s", 4)


def test_comments_scopes_and_sources():
    one, two = instructions("""// begin inline asm
        { .reg .b32 %t1; /* a
        comment */ mov.b32 %t1, 5; }
        .loc 1 42 7
        add.s32 %r1, %r1, %r2;""")
    assert (one.source, two.source) == ((0, 0), (1, 42))
    assert two.line > one.line


@pytest.mark.parametrize("text", ["no text at all", ".target sm_80\n.visible .entry k() {", ])
def test_what_is_no_ptx_is_refused(text):
    with pytest.raises(DeviceError):
        parse(text)


def test_a_branch_to_nowhere_is_refused():
    with pytest.raises(DeviceError, match="branches to a label that is not there"):
        blocks_of(parse(kernel("bra NOWHERE;", ())).kernels["k"])


def test_both_sides_of_a_branch_stand_before_their_meeting():
    order = loops_together({0: [2, 1], 1: [3], 2: [3], 3: []}, 0)
    assert order[0] == 0 and order[-1] == 3 and set(order) == {0, 1, 2, 3}


def test_a_loop_stands_before_what_follows_it():
    order = loops_together({0: [1, 4], 1: [2, 3], 2: [1], 3: [4], 4: []}, 0)
    assert order == [0, 1, 2, 3, 4]
    nested = loops_together({0: [1], 1: [2, 9], 2: [3], 3: [4, 5], 4: [3], 5: [6, 7], 6: [1], 7: [1], 9: []}, 0)
    assert nested.index(9) == len(nested) - 1 and nested.index(4) < nested.index(5)


@pytest.mark.parametrize("seed", range(30))
def test_of_random_graphs_edges_go_forward_but_for_those_in_loops(seed):
    """Every edge that goes back lies in a strongly connected component, and each component is contiguous."""
    draw = random.Random(seed)
    count = draw.randint(2, 25)
    graph = {node: draw.sample(range(count), draw.randint(0, 2)) for node in range(count)}
    order = loops_together(graph, 0)
    places = {node: place for place, node in enumerate(order)}
    reached = {node: reach(graph, node) for node in order}
    assert set(order) == {0} | reached[0]
    for node in order:
        for one in graph[node]:
            assert places[one] > places[node] or node in reached[one] or node == one
    for node in order:
        component = [places[one] for one in reached[node] if node in reached.get(one, ())] or [places[node]]
        assert max(component) - min(component) + 1 == len(set(component))


def reach(graph, start):
    found, stack = set(), [start]
    while stack:
        for one in graph[stack.pop()]:
            if one not in found:
                found.add(one)
                stack.append(one)
    return found


def test_many_blocks_need_no_recursion():
    count = 3000
    assert len(loops_together({n: [n + 1] if n + 1 < count else [0] for n in range(count)}, 0)) == count
