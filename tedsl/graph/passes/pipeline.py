"""The pipeline: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tedsl.graph.graph import Graph
from tedsl.graph.passes.fusion import fuse

Pass: TypeAlias = Callable[[Graph], Graph]

# By level, each after those of the levels below.
LEVELS: tuple[tuple[Pass, ...], ...] = (
    (),
    (fuse,),
)


def pipeline(opt_level: int = 2) -> tuple[Pass, ...]:
    """The passes of a level: 0: none; 1: fusion; 2 and above: all."""
    return LEVELS[max(0, min(opt_level, len(LEVELS) - 1))]
