"""A model of what a graph moves between memory and caches where its layers run for groups of images, one after the other.

A layer reads what another has left from the cache in which it still is: all that was touched meanwhile has to fit beside it.
Few images at once touch less, but weights are read again for each group. Of ResNet-50, on a core with 1 MB of L2 and 32 MB of
L3, layers of 56 x 56 pixels take 400 us an image one by one and 600 eight at once; those of 14 x 14 pixels by winograd 580 and
440, as their weights come from memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tedsl.graph.value import Value
from tedsl.record import record
from tedsl.target.machine import Machine

# In bytes that come from memory: a byte that comes from L3, and a call of a kernel.
_FROM_L3 = 0.1
_CALL = 48 << 10
_PART = 0.5  # of a cache that holds what is expected there: other things are in it too, and its sets fill unevenly
_MOST = 16  # groups: plans and calls grow with them
_LONGEST = 64  # stages of a segment: longer ones are not looked for
_WORTH = 0.9  # of what is moved all at once: below, what the model neglects does not matter


@record(eq=False)
class Layer:
    """A node. reads: what others have computed of images. weights: the bytes that it reads for any number of images. given:
    those that it reads of inputs, for each image.
    """

    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    weights: int
    given: float = 0.0


@record(eq=False)
class Stage:
    """Layers that run for the same groups. Of what is computed in stages before, one value is read, by the first layer.

    alone: whether each layer treats images alone.
    """

    layers: tuple[Layer, ...]
    alone: bool


@record
class Segment:
    """Stages from `begin` to `end` that run one after the other for each group of `size` images."""

    begin: int
    end: int
    size: int


class Traffic:
    """What stages move for `count` images, in bytes that come from memory."""

    def __init__(self, stages: Sequence[Stage], count: int, machine: Machine) -> None:
        self.stages, self.count, self.machine = stages, count, machine
        self.sizes = [count // parts for parts in range(min(_MOST, count), 0, -1) if count % parts == 0]
        self.within = {size: [self._of_images(stage, size) for stage in stages] for size in self.sizes}
        self.entered = {size: [self._entered(begin, size) for begin in range(len(stages))] for size in self.sizes}
        self.weights = [sum([layer.weights for layer in stage.layers]) for stage in stages]
        self.touched = [max([self._touched(layer) for layer in stage.layers]) for stage in stages]  # by one layer

    def segments(self) -> list[Segment]:
        """The segments for which least is moved; a stage each, of all images, if that is hardly more."""
        costs, last, at_once = [0.0], list[Segment](), 0.0  # for the stages until each: the least, and its last segment
        for end in range(1, len(self.stages) + 1):
            ways = list(self._last(end))
            cost, segment = min([(costs[way.begin] + cost, way) for way, cost in ways], key=lambda pair: pair[0])
            costs.append(cost)
            last.append(segment)
            at_once += ways[0][1]
        if costs[-1] >= _WORTH * at_once:
            return [Segment(at, at + 1, self.count) for at in range(len(self.stages))]
        found = [last[-1]]
        while found[-1].begin:
            found.append(last[found[-1].begin - 1])
        return found[::-1]

    def _last(self, end: int) -> Iterator[tuple[Segment, float]]:
        """The segments that end before stage `end`, and what each moves. First that of all images, which is of one stage: more
        make no difference.
        """
        for size in reversed(self.sizes):
            images, weights, kept = 0.0, 0, 0.0
            for begin in reversed(range(max(0, end - (_LONGEST if size < self.count else 1)), end)):
                if size < self.count and not self.stages[begin].alone:
                    break
                images += self.within[size][begin]
                weights += self.weights[begin]
                kept = max(kept, size * self.touched[begin])
                again = self.count // size - 1  # from memory for the first group
                cost = images + weights * (1.0 + again * self._price(weights + kept)) + self.entered[size][begin]
                yield Segment(begin, end, size), cost

    def _touched(self, layer: Layer) -> float:
        """The bytes that a layer touches for an image."""
        return sum([value.spec.bytes for value in (*layer.reads, *layer.writes)]) / self.count + layer.given

    def _price(self, distance: float) -> float:
        """That of a byte, if so many others were touched since it was."""
        if distance <= _PART * self.machine.l2.size:
            return 0.0
        return _FROM_L3 if distance <= _PART * self.machine.l3.size else 1.0

    def _of_images(self, stage: Stage, size: int) -> float:
        """What layers read of each other, which is written first; and their calls."""
        total, touched = float(self.count // size * len(stage.layers) * _CALL), 0.0
        last: dict[Value, float] = {}  # what was touched until a value was
        read: set[Value] = set()
        for layer in stage.layers:
            here = size * self._touched(layer) + layer.weights
            for value in layer.reads:
                times = 1 if value in read else 2
                total += times * value.spec.bytes * self._price(touched - last.get(value, touched) + here)
                last[value] = touched
            read.update(layer.reads)
            touched += here
            last |= dict.fromkeys(layer.writes, touched)
        return total

    def _entered(self, begin: int, size: int) -> float:
        """What more it costs groups of `size` images to read what the segment before has left: that of all images."""
        first = self.stages[begin].layers[0]
        touched = self._touched(first)
        more = self._price(self.count * touched) - self._price(size * touched)
        return 2 * more * sum([value.spec.bytes for value in first.reads]) if begin else 0.0
