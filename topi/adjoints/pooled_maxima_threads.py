"""The adjoint of maxima in windows by blocks of threads: for gradients that were made where no device was named, and are
statements therefore. Where the target names a device, `topi.adjoints.pooling` gives formulas.

    a thread for each window:    the number of the winning tap, kept for the second kernel
    a thread for each element:   the sum of the heads of the windows that it won
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tedsl import te, tir
from topi.extents import product, row_major
from topi.nn.pool.layout import lowest
from topi.threads.launch import each, indices_of

if TYPE_CHECKING:
    from topi.adjoints.pooled_maxima import Along


def by_threads(ib: Any, x: Any, head: Any, result: Any, space: Sequence[Along], threads: int) -> None:
    """Stores what `pooled_maxima.from_planes` stores: x and result are (planes, data), head is (planes, windows)."""
    taps = list(itertools.product(*[range(a.kernel) for a in space]))
    winners = ib.allocate("int32", tuple(head.shape), name="winners")
    with each(ib, product(head.shape), threads) as number:
        window = indices_of(number, head.shape)
        winners[window] = _winner(ib, x, window, space, taps)
    with each(ib, product(result.shape), threads) as number:
        plane, *place = indices_of(number, result.shape)
        total = ib.allocate(x.dtype, (1,), name="cell", scope="local")
        total[0] = te.const(0, x.dtype)
        for tap in taps:
            ahead = [at + (a.before - k) for at, a, k in zip(place, space, tap)]  # of the first window, in elements
            own = [at // a.stride for at, a in zip(ahead, space)]
            reached = [at >= 0 for at in ahead] + [at % a.stride == 0 for at, a in zip(ahead, space) if a.stride > 1]
            reached += [w < a.results for w, a in zip(own, space)]
            near = [te.max(te.min(w, a.results - 1), 0) for w, a in zip(own, space)]  # there without a condition
            won = tir.all(*reached, winners[(plane, *near)].equal(row_major(tap, [a.kernel for a in space])))
            total[0] = total[0] + te.select(won, head[(plane, *near)], te.const(0, x.dtype))
        result[(plane, *place)] = total[0]


def _winner(ib: Any, x: Any, window: Sequence[Any], space: Sequence[Along], taps: Sequence[tuple[int, ...]]) -> Any:
    """The number of the first largest tap of a window; that of the first NaN if there is one."""
    plane, *first = window
    best = winner = None
    for tap in reversed(taps):  # a first one is at least as large as later ones
        own = [w * a.stride + (k - a.before) for w, a, k in zip(first, space, tap)]
        inside = [c for at, a in zip(own, space) for c in (at >= 0, at < a.data)]
        value = ib.let("tap", tir.if_then_else(tir.all(*inside), x[(plane, *own)], lowest(x.dtype)))
        number = te.const(row_major(tap, [a.kernel for a in space]), "int32")
        if best is None:
            best, winner = value, number
            continue
        better = te.any(value >= best, te.isnan(value))
        best, winner = ib.let("best", te.select(better, value, best)), ib.let("winner", te.select(better, number, winner))
    return winner
