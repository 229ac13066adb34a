"""A proof that no two threads touch one element, by looking at every thread, where sums do not tell: data decides who comes.

    if (S[x] > S[x ^ 1]) { S[x] = ..;  S[x ^ 1] = .. }    under x ^ 1 > x: thread 0 has 0 and 1, thread 2 has 2 and 3, ...

Conditions on data are taken to hold; what is not known (sizes that a call decides, indices that are looked up), and what
would take too long to look at, is not proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from tedsl.ir import build
from tedsl.ir.expr import Broadcast, Expr, Ramp, Var
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.passes.threads.gather_threads import Kernel
from tedsl.passes.threads.known_values import Values, may_hold, on_data, value

LOOKS = 1 << 13  # at threads and iterations, for one question
Loop = tuple[Var, Expr, Expr]  # the variable, the first value, how many


@dataclass(frozen=True, eq=False)
class Around:
    """What stands around a statement: loops, and conditions."""

    loops: tuple[Loop, ...] = ()
    conditions: tuple[Expr, ...] = ()

    def under(self, *conditions: Expr) -> Around:
        return replace(self, conditions=(*self.conditions, *conditions))

    def within(self, loop: Loop) -> Around:
        return replace(self, loops=(*self.loops, loop))


Elements = dict[int, set[int]]  # with the numbers of the threads that touch them
Place = tuple[Expr, Around]  # the index of an access, and where it stands


class _Unknown(Exception):
    """Nothing is proved."""


class EveryThread:
    """Answers for one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        zero = build.const(0, "int32")
        self.threads: list[Loop] = [(one.var, zero, one.count) for one in kernel.axes if not one.is_block]
        self.blocks: list[Loop] = [(one.var, zero, one.count) for one in kernel.blocks]
        self.lets: dict[Var, Expr] = {}  # what can be computed again
        self.looks = 0
        self.known: dict[tuple[Expr, Around, tuple[tuple[Var, int], ...]], Elements] = {}
        self.arounds: dict[Around, Around] = {}  # without lets
        self.indices: dict[Expr, Expr] = {}

    def let(self, var: Var, given: Expr) -> None:
        if not on_data(given):
            self.lets[var] = substitute(given, self.lets)

    def keep_apart(self, one: Place, other: Place, fixed: Set[Var]) -> bool:
        """Whether no element of one access is one of the other's, in another thread of the block.

        In loops other than `fixed`, the two may be at different iterations.
        """
        self.looks = LOOKS
        one, other = self._without_lets(one), self._without_lets(other)
        needed = _needed(one) | _needed(other)
        loops = (*self.blocks, *one[1].loops, *other[1].loops)
        same = {loop[0]: loop for loop in loops if loop[0] in needed and (loop in self.blocks or loop[0] in fixed)}
        try:
            for values in self._iterations(list(same.values()), {}):
                first, second = self._touched(one, values), self._touched(other, values)
                if any(len(first[element] | second[element]) > 1 for element in first.keys() & second.keys()):
                    return False
        except _Unknown:
            return False
        return True

    def _without_lets(self, place: Place) -> Place:
        index, around = place
        if index not in self.indices:
            self.indices[index] = substitute(index, self.lets)
        if around not in self.arounds:
            loops = tuple((var, substitute(first, self.lets), substitute(count, self.lets))
                          for var, first, count in around.loops)
            self.arounds[around] = Around(loops, tuple(substitute(one, self.lets) for one in around.conditions))
        return self.indices[index], self.arounds[around]

    def _touched(self, place: Place, values: Values) -> Elements:
        """What is touched in an iteration of the loops that both accesses are in."""
        index, around = place
        needed = _needed(place)
        here = (index, around, tuple((var, at) for var, at in values.items() if var in needed))
        if here not in self.known:
            own = [loop for loop in around.loops if loop[0] in needed and loop[0] not in values]
            found: Elements = {}
            for number, thread in enumerate(self._iterations(self.threads, values)):
                for at in self._iterations(own, thread):
                    if all(may_hold(condition, at) for condition in around.conditions):
                        for element in _elements(index, at):
                            found.setdefault(element, set()).add(number)
            self.known[here] = found
        return self.known[here]

    def _iterations(self, loops: Sequence[Loop], values: Values) -> Iterator[Values]:
        """`values` and those of the loops, in each iteration."""
        if not loops:
            self.looks -= 1
            if self.looks < 0:
                raise _Unknown
            yield values
            return
        var, first, count = loops[0]
        low, many = value(first, values), value(count, values)
        if low is None or many is None:
            raise _Unknown
        for k in range(low, low + many):
            yield from self._iterations(loops[1:], {**values, var: k})


def _needed(place: Place) -> set[Var]:
    """The variables that decide which element it is, and whether it is touched."""
    index, around = place
    needed = {var for e in (index, *around.conditions) for var in variables(e)}
    for var, *bounds in reversed(around.loops):
        if var in needed:
            needed |= {other for e in bounds for other in variables(e)}
    return needed


def _elements(index: Expr, values: Values) -> list[int]:
    if isinstance(index, Ramp):
        base, stride = value(index.base, values), value(index.stride, values)
        if base is None or stride is None:
            raise _Unknown
        return [base + lane * stride for lane in range(index.lanes)]
    found = value(index.value if isinstance(index, Broadcast) else index, values)
    if found is None:
        raise _Unknown
    return [found]
