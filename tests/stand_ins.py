"""Stand-ins for modules of TVM that tedsl does not have stay where a program imported them: tests take theirs away again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tedsl.absent import StandIn


@contextmanager
def without_stand_ins() -> Iterator[None]:
    """Takes away the stand-ins that the block imports."""
    before = _modules()
    try:
        yield
    finally:
        after = _modules()
        if after is not before:
            imported = [path for path in after - before if isinstance(sys.modules.get(path), StandIn)]
            for path in imported:
                home, _, name = path.rpartition(".")
                vars(sys.modules.get(home, sys)).pop(name, None)
            for path in imported:
                del sys.modules[path]


_known: tuple[int, str, frozenset[str]] = (0, "", frozenset())  # how many modules there are, the last one, their names


def _modules() -> frozenset[str]:
    """The names of all modules: the same object as before if none was imported, which is so in most tests."""
    global _known
    count, last = len(sys.modules), next(reversed(sys.modules))
    if (count, last) != _known[:2]:
        _known = count, last, frozenset(sys.modules)
    return _known[2]
