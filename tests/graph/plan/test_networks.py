"""The memory of whole networks, one array for each group that fusion makes."""

import pytest

from benchmarks.contenders.of_graphs import graph_of
from tedsl.graph.passes import fuse
from tedsl.graph.plan import plan


@pytest.mark.parametrize("name, groups, separate, size", [
    ("ResNet-18", 23, 10.74, 4.01), ("ResNet-50", 56, 45.27, 7.23), ("MobileNet-V2", 54, 26.72, 6.02)])
def test_the_arena_of_a_network_is_no_larger_than_what_is_in_use_at_one_time(name, groups, separate, size):
    g, _ = graph_of(name, grouped=False)
    made = plan(fuse(g), in_place=False)
    assert (len(made.steps), round(made.separate / 1e6, 2), round(made.size / 1e6, 2)) == (groups, separate, size)
    assert made.size == sum(made.least.values()) == max(made.in_use)
