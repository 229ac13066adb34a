"""Regions of one compiler become larger ones, where that makes no cycle.

    a ──► b ──► d         a and d for one compiler, b not: a and d stay two regions, since b needs a and d needs b
    └───────────►
"""

from __future__ import annotations

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.graph.byoc.annotate import Annotation, Part, Region
from tedsl.graph.value import Node


def merge_regions(annotation: Annotation) -> Annotation:
    """Merges regions of the same compiler that exchange values, until none can be merged without a cycle among regions.

    The same object if nothing can be merged.
    """
    if not isinstance(annotation, Annotation):
        raise ArgumentTypeError(f"merge_regions: it takes what annotate returns, not {type_in_words(annotation)}")
    groups = _Groups(annotation)
    merged = False
    while sum(groups.join(before, after) for before, after in groups.edges()):
        merged = True
    return Annotation(annotation.graph, groups.regions()) if merged else annotation


class _Groups:
    """Groups of nodes: regions, and other nodes alone. A group is known by its number; `readers`: the groups that read it."""

    def __init__(self, annotation: Annotation) -> None:
        self._nodes = annotation.graph.nodes
        self._of: dict[Node, int] = {}
        self._compilers: dict[int, str] = {}
        self._parts: dict[int, list[Part]] = {}
        for number, region in enumerate(annotation.regions):
            self._of |= dict.fromkeys(region.nodes, number)
            self._compilers[number], self._parts[number] = region.compiler, list(region.parts)
        for node in self._nodes:
            self._of.setdefault(node, len(annotation.regions) + len(self._of))
        self._readers: dict[int, set[int]] = {number: set() for number in self._of.values()}
        for before, after in self.edges():
            self._readers[before].add(after)

    def edges(self) -> list[tuple[int, int]]:
        """Pairs of groups of which the second reads the first, in the order of the nodes."""
        found = [(self._of[value.node], self._of[node]) for node in self._nodes for value in node.inputs if value.node]
        return list(dict.fromkeys([(before, after) for before, after in found if before != after]))

    def join(self, before: int, after: int) -> bool:
        """Merges two groups, of which the second reads the first, if they are regions of one compiler and nothing stands
        between them. Returns whether it did.
        """
        if before not in self._readers or after not in self._readers or after not in self._readers[before]:
            return False  # merged since
        if self._compilers.get(before) is None or self._compilers.get(before) != self._compilers.get(after):
            return False
        if self._is_indirect(before, after):
            return False
        self._of |= {node: before for node, number in self._of.items() if number == after}
        self._parts[before] += self._parts.pop(after)
        self._readers[before] = (self._readers[before] | self._readers.pop(after)) - {before, after}
        for readers in self._readers.values():
            if after in readers:
                readers.discard(after)
                readers.add(before)
        self._readers[before].discard(before)
        return True

    def _is_indirect(self, before: int, after: int) -> bool:
        """Whether `after` needs `before` through another group as well."""
        waiting = [number for number in self._readers[before] if number != after]
        seen = set(waiting)
        while waiting:
            number = waiting.pop()
            if number == after:
                return True
            fresh = self._readers[number] - seen
            seen |= fresh
            waiting += fresh
        return False

    def regions(self) -> tuple[Region, ...]:
        """The regions, with their parts in the order of the nodes."""
        place = {node: at for at, node in enumerate(self._nodes)}
        made = [Region(self._compilers[number], tuple(sorted(parts, key=lambda part: place[part.nodes[-1]])))
                for number, parts in self._parts.items()]
        return tuple(sorted(made, key=lambda region: place[region.nodes[-1]]))
