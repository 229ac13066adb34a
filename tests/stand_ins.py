"""Stand-ins for modules of TVM that tedsl does not have stay where a program imported them: tests take theirs away again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tedsl.absent import StandIn


@contextmanager
def without_stand_ins() -> Iterator[None]:
    """Takes away the stand-ins that the block imports."""
    before = set(sys.modules)
    try:
        yield
    finally:
        for path in set(sys.modules) - before:
            if isinstance(sys.modules[path], StandIn):
                home, _, name = path.rpartition(".")
                vars(sys.modules.get(home, sys)).pop(name, None)
        for path in set(sys.modules) - before:
            if isinstance(sys.modules[path], StandIn):
                del sys.modules[path]
