"""Draws a directed graph: nodes in layers from top to bottom, with edges routed around the nodes in between.

layers    each node below all of its predecessors
order     within a layer each node near the middle of its neighbours (two sweeps down and up)
edges     that skip layers get positions in these, so that they run between the nodes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tedsl.display.markup import Markup, element, joined
from tedsl.record import record

CHAR, LINE, PAD, GAP_X, GAP_Y = 7.3, 16, 9, 26, 34  # pixels, for 12 pixel monospace
MOST_NODES = 200
LONGEST_LINE = 44  # characters


@record
class Node:
    """A box: its lines of text, and its kind ("input", "inline", ...), which selects its style."""

    lines: tuple[str, ...]
    kind: str = "plain"


@dataclass(eq=False)
class _Place:
    """A position in a layer: a box, or, without a node, a bend of an edge."""

    layer: int
    node: Node | None = None
    x: float = 0.0
    above: list[_Place] = field(default_factory=list)
    below: list[_Place] = field(default_factory=list)

    @property
    def width(self) -> float:
        return CHAR * max(len(_cut(line)) for line in self.node.lines) + 2 * PAD if self.node is not None else 4.0

    @property
    def height(self) -> float:
        return LINE * len(self.node.lines) + 2 * PAD - 4 if self.node is not None else 0.0


def svg_of(nodes: Sequence[Node], edges: Sequence[tuple[int, int]], title: str) -> Markup:
    """Returns the picture. `edges` are pairs of positions in `nodes`; each goes from an earlier node to a later one."""
    shown = len(nodes) if len(nodes) <= MOST_NODES else MOST_NODES
    layers = _layers(nodes[:shown], [(a, b) for a, b in edges if a < b < shown])
    for _ in range(2):
        _sweep(layers, down=True)
        _sweep(layers, down=False)
    width = max((_width(layer) for layer in layers), default=0.0)
    tops = _arrange(layers, width)
    height = tops[-1] if tops else 0.0
    drawn = [*(_edge(place, below, tops) for layer in layers for place in layer for below in place.below),
             *(_box(place, tops[place.layer]) for layer in layers for place in layer if place.node is not None)]
    if shown < len(nodes):
        height += LINE
        drawn.append(element("text", f"... and {len(nodes) - shown} more", x=PAD, y=round(height - 4)))
    return element("svg", element("title", title), joined(*drawn), xmlns="http://www.w3.org/2000/svg", role="img",
                   class_="tedsl-graph", viewBox=f"0 0 {round(width)} {round(height)}", width=round(width),
                   height=round(height))


def _layers(nodes: Sequence[Node], edges: Sequence[tuple[int, int]]) -> list[list[_Place]]:
    depth = [0] * len(nodes)
    for a, b in sorted(edges):
        depth[b] = max(depth[b], depth[a] + 1)
    for at in range(len(nodes)):  # what nothing leads to stands right above its first reader
        readers = [depth[b] for a, b in edges if a == at]
        if readers and not any(b == at for _, b in edges):
            depth[at] = min(readers) - 1
    places = [_Place(depth[at], node) for at, node in enumerate(nodes)]
    layers: list[list[_Place]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for place in places:
        layers[place.layer].append(place)
    for a, b in dict.fromkeys(edges):
        last = places[a]
        for layer in range(depth[a] + 1, depth[b]):
            bend = _Place(layer)
            layers[layer].append(bend)
            _connect(last, bend)
            last = bend
        _connect(last, places[b])
    return layers


def _connect(above: _Place, below: _Place) -> None:
    above.below.append(below)
    below.above.append(above)


def _sweep(layers: list[list[_Place]], down: bool) -> None:
    """Sorts each layer by the middle of each place's neighbours in the layer before."""
    for layer in layers:
        for at, place in enumerate(layer):
            place.x = at
    for layer in layers if down else reversed(layers):
        middle = {}
        for at, place in enumerate(layer):
            near = place.above if down else place.below
            middle[place] = sum(neighbour.x for neighbour in near) / len(near) if near else float(at)
        layer.sort(key=middle.__getitem__)
        for at, place in enumerate(layer):
            place.x = at


def _width(layer: Sequence[_Place]) -> float:
    return sum(place.width for place in layer) + GAP_X * (len(layer) + 1)


def _arrange(layers: list[list[_Place]], width: float) -> list[float]:
    """Sets the middle of each place; returns the top of each layer and, last, the height of the picture."""
    tops, top = [], float(PAD)
    for layer in layers:
        x = (width - _width(layer)) / 2 + GAP_X
        for place in layer:
            place.x = x + place.width / 2
            x += place.width + GAP_X
        tops.append(top)
        top += max(place.height for place in layer) + GAP_Y
    return [*tops, top - GAP_Y + PAD] if tops else []


def _edge(start: _Place, end: _Place, tops: Sequence[float]) -> Markup:
    y, bottom = tops[start.layer] + start.height, tops[end.layer]
    middle = (y + bottom) / 2
    points = [start.x, y, start.x, middle, end.x, middle, end.x, bottom - (5 if end.node is not None else 0)]
    a, b, c, d, e, f, g, h = (round(p, 1) for p in points)
    head = element("path", d=f"M{g - 4},{h - 1} L{g},{h + 5} L{g + 4},{h - 1} Z", class_="head") if end.node is not None else ""
    return joined(element("path", d=f"M{a},{b} C{c},{d} {e},{f} {g},{h}", class_="edge"), Markup(head))


def _box(place: _Place, top: float) -> Markup:
    assert place.node is not None
    left = round(place.x - place.width / 2, 1)
    lines = [element("text", _cut(line), x=round(left + PAD, 1), y=round(top + PAD + 9 + LINE * at, 1),
                     class_="name" if at == 0 else None) for at, line in enumerate(place.node.lines)]
    box = element("rect", x=left, y=round(top, 1), width=round(place.width, 1), height=round(place.height, 1), rx=4)
    return element("g", element("title", "\n".join(place.node.lines)), box, *lines, class_=f"node {place.node.kind}")


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE - 1]}…"
