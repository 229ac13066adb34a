"""The pipeline: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tedsl.errors import ArgumentError
from tedsl.graph.graph import Graph
from tedsl.graph.passes.drop_dead import drop_dead
from tedsl.graph.passes.fold_batch_norm import fold_batch_norm
from tedsl.graph.passes.fold_constants import fold_constants
from tedsl.graph.passes.fusion import fuse
from tedsl.graph.passes.images import by_groups
from tedsl.graph.passes.layouts import layouts
from tedsl.graph.passes.merge_equal import merge_equal
from tedsl.graph.passes.pack import pack_weights
from tedsl.graph.passes.quantized import quantized
from tedsl.graph.passes.simplify import simplify
from tedsl.graph.passes.winograd import use_winograd

Pass: TypeAlias = Callable[[Graph], Graph]

SAME: tuple[Pass, ...] = (fold_constants, simplify, merge_equal, drop_dead)

# By level.
LEVELS: tuple[tuple[Pass, ...], ...] = (
    (),
    (*SAME, fuse, by_groups, pack_weights),
    (quantized, *SAME, fold_batch_norm, merge_equal, layouts, fuse, use_winograd, by_groups, pack_weights),
)


def pipeline(opt_level: int = 2) -> tuple[Pass, ...]:
    """The passes of a level.

    0: none. 1: those after which the same sums are made of the same terms. 2 and above: also those that save work by other
    formulas, whose results differ in the last digits.
    """
    if isinstance(opt_level, bool) or not isinstance(opt_level, int) or opt_level < 0:
        raise ArgumentError(f"opt_level is {opt_level!r}; it is an int of at least 0",
                            hint=f"levels above {len(LEVELS) - 1} are the last")
    return LEVELS[max(0, min(opt_level, len(LEVELS) - 1))]
