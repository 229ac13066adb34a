"""Pictures of graphs: every node once, producers above readers, nothing overlaps."""

import random
import re

import pytest

from tedsl.display.graph import MOST_NODES, Node, svg_of
from tedsl.display.markup import Markup, element, escaped, joined
from tests.display.structure import checked


def boxes(svg):
    """The rectangles of a picture: (left, top, width, height) by the first line of the node."""
    found = {}
    for node in re.findall(r'<g class="node.*?</g>', str(svg), re.S):
        name = re.search(r"<title>([^\n<]*)", node)[1]
        found[name] = tuple(float(re.search(rf' {k}="([-\d.]+)"', node)[1]) for k in ("x", "y", "width", "height"))
    return found


def overlap(a, b):
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def drawn(names, edges):
    return svg_of([Node((name, "[n] float32")) for name in names], edges, "a graph")


def test_producers_stand_above_their_readers():
    svg = drawn("ABCD", [(0, 1), (1, 2), (0, 2), (2, 3)])
    found = boxes(svg)
    assert list(found) == ["A", "B", "C", "D"] and [found[n][1] for n in "ABCD"] == sorted(found[n][1] for n in "ABCD")
    assert checked(svg).elements[0][1]["role"] == "img" and str(svg).count('class="head"') == 4


def test_an_input_stands_right_above_its_first_reader():
    found = boxes(drawn(["A", "B", "W", "C"], [(0, 1), (1, 3), (2, 3)]))
    assert found["W"][1] == found["B"][1]


@pytest.mark.parametrize("seed", range(10))
def test_nothing_overlaps_and_all_is_inside(seed):
    rng = random.Random(seed)
    names = [f"stage{n}" * rng.randint(1, 3) for n in range(30)]
    edges = [(a, b) for b in range(30) for a in range(b) if rng.random() < 0.1]
    svg = drawn(names, edges)
    found = list(boxes(svg).values())
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', str(svg)).groups())
    assert len(found) == 30
    assert not any(overlap(a, b) for at, a in enumerate(found) for b in found[:at])
    assert all(x >= 0 and y >= 0 and x + w <= width + 1 and y + h <= height + 1 for x, y, w, h in found)


def test_the_same_graph_gives_the_same_picture():
    assert drawn("ABC", [(0, 2), (1, 2)]) == drawn("ABC", [(0, 2), (1, 2)])


def test_no_nodes_and_very_many():
    assert checked(svg_of([], [], "nothing")).elements[0][0] == "svg"
    assert "... and 300 more" in drawn([f"n{k}" for k in range(MOST_NODES + 300)], [])


def test_markup_escapes_everything_that_is_not_markup():
    hostile = "<script>alert('x')</script>&\"\x00\x1b\ud800"
    made = element("p", hostile, title=hostile, class_="a b", data_x=None)
    assert made == ('<p title="&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;���" class="a b">'
                    "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;���</p>")
    assert joined("<", Markup("<br/>"), None, 3) == "&lt;<br/>3" and escaped("a\n\tb") == "a\n\tb"
    made.encode("utf-8")
