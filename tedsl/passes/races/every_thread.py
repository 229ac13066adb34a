"""Proves that no two threads touch one element by enumerating the threads, where data decides which threads access memory.

    if (S[x] > S[x ^ 1]) { S[x] = ..;  S[x ^ 1] = .. }    under x ^ 1 > x: thread 0 has 0 and 1, thread 2 has 2 and 3, ...

Conditions on data are assumed to hold. Nothing is proved where values are unknown (sizes that a call decides, indices read from
data), or where the enumeration would take too long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from tedsl.ir.expr import Var
from tedsl.ir.walk.accesses import Access
from tedsl.ir.walk.around import Loop, WithoutLets
from tedsl.ir.walk.visitor import variables
from tedsl.passes.races.known_values import Values, elements, may_hold, on_data, value
from tedsl.passes.threads.gather_threads import Kernel

LOOKS = 1 << 13  # at threads and iterations, for one question
Elements = dict[int, set[int]]  # with the numbers of the threads that touch them


class _Unknown(Exception):
    """Raised where a value is unknown or the enumeration takes too long, so that nothing is proved."""


class EveryThread:
    """Proves for one kernel, thread by thread, that accesses are disjoint."""

    def __init__(self, kernel: Kernel) -> None:
        self.threads = [axis.loop for axis in kernel.axes if not axis.is_block]
        self.blocks = {axis.var: axis.loop for axis in kernel.blocks}
        self.without_lets = WithoutLets(keep=on_data)  # what can be computed again is written out
        self.looks = 0
        self.known: dict[tuple[object, ...], Elements] = {}

    def keep_apart(self, a: Access, b: Access, fixed: Set[Var]) -> bool:
        """Tells whether it is proved that no element is touched by one thread of a block with `a` and by another with `b`.

        The accesses are at the same iteration of the loops `fixed`; in other loops they may be at different ones.
        """
        self.looks = LOOKS
        a, b = (access.without_lets(self.without_lets) for access in (a, b))
        needed = _needed(a) | _needed(b)
        same = {var: loop for var, loop in self.blocks.items() if var in needed}
        same.update((loop.var, loop) for access in (a, b) for loop in access.around.loops()
                    if loop.var in needed and loop.var in fixed)
        try:
            for values in self._iterations(list(same.values()), {}):
                first, second = self._touched(a, values), self._touched(b, values)
                if any(len(first[element] | second[element]) > 1 for element in first.keys() & second.keys()):
                    return False
        except _Unknown:
            return False
        return True

    def _touched(self, access: Access, values: Values) -> Elements:
        """Maps each element that `access` touches, given the `values` of some variables, to the numbers of the threads
        that do.
        """
        index, around, needed = access.index, access.around, _needed(access)
        assert index is not None
        here = (index, around, tuple((var, at) for var, at in values.items() if var in needed))
        if here not in self.known:
            own = [loop for loop in around.loops() if loop.var in needed and loop.var not in values]
            conditions = [condition.value for condition in around.conditions()]
            touched: Elements = {}
            for number, thread in enumerate(self._iterations(self.threads, values)):
                for at in self._iterations(own, thread):
                    if all(may_hold(condition, at) for condition in conditions):
                        known = elements(index, at)
                        if known is None:
                            raise _Unknown
                        for element in known:
                            touched.setdefault(element, set()).add(number)
            self.known[here] = touched
        return self.known[here]

    def _iterations(self, loops: Sequence[Loop], values: Values) -> Iterator[Values]:
        """Yields the values of the variables in each iteration of `loops`, together with `values`."""
        if not loops:
            self.looks -= 1
            if self.looks < 0:
                raise _Unknown
            yield values
            return
        loop = loops[0]
        low, many = value(loop.min, values), value(loop.extent, values)
        if low is None or many is None:
            raise _Unknown
        for k in range(low, low + many):
            yield from self._iterations(loops[1:], {**values, loop.var: k})


def _needed(access: Access) -> set[Var]:
    """Returns the variables that decide whether the access happens, and to which element."""
    exprs = [*access.indices, *(condition.value for condition in access.around.conditions())]
    needed = {var for e in exprs for var in variables(e)}
    for loop in reversed(access.around.loops()):
        if loop.var in needed:
            needed |= {*variables(loop.min), *variables(loop.extent)}
    return needed
