"""The adjoints of the normalization of rows by blocks of threads: for gradients that were made where no device was named, and
are statements therefore. Where the target names a device, `topi.adjoints.rows` gives formulas.

    a thread for each row:                       its statistics, kept for the second kernel; the adjoint by data
    a thread for each column of each chunk:      the sums of gamma and beta over the rows of the chunk
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from tedsl import te
from topi.threads.launch import each


def by_threads(ib: Any, x: Any, head: Any, gamma: Any, epsilon: float, result: Any, sums: Sequence[Any], part: int,
               threads: int) -> None:
    """Stores what `row_norm.in_one_walk` stores: x, head and result are (rows, count), gamma (count,), the sums of gamma and
    beta, if there is one, (chunks, count). part: rows of a chunk.
    """
    (rows, count), chunks = (int(n) for n in x.shape), int(sums[0].shape[0])
    kept = ib.allocate(x.dtype, (rows, 2), name="statistics")  # mean and scale of each row
    with each(ib, rows, threads) as row:
        _rows(ib, count, lambda k: x[row, k], lambda k: head[row, k], lambda k: gamma[k], epsilon, result, kept, row)
    with each(ib, chunks * count, threads) as number:
        chunk, column = number // count, number % count
        cells = [_cell(ib, x.dtype) for _ in sums]
        with ib.for_range(0, part, name="within") as within:
            row = chunk * part + within
            with ib.if_scope(row < rows) if rows % part else nullcontext():
                terms = [head[row, column] * ((x[row, column] - kept[row, 0]) * kept[row, 1]), head[row, column]]
                for cell, term in zip(cells, terms):
                    cell[0] = cell[0] + term
        for total, cell in zip(sums, cells):
            total[chunk, column] = cell[0]


Element = Callable[[Any], Any]


def _rows(ib: Any, count: int, x: Element, head: Element, gamma: Element, epsilon: float, result: Any, kept: Any,
          row: Any) -> None:
    """The statistics and the adjoint of one row, by one thread."""
    divisor, one = te.const(count, result.dtype), te.const(1, result.dtype)

    def total(term: Element) -> Any:
        cell = _cell(ib, result.dtype)
        with ib.for_range(0, count, name="k") as k:
            cell[0] = cell[0] + term(k)
        return ib.let("total", cell[0])

    mean = ib.let("mean", total(x) / divisor)
    squares = total(lambda k: (x(k) - mean) * (x(k) - mean))
    scale = ib.let("scale", one / te.sqrt(squares / divisor + te.const(epsilon, result.dtype)))
    kept[row, 0] = mean
    kept[row, 1] = scale
    share = ib.let("share", total(lambda k: head(k) * gamma(k)) / divisor)
    slope = ib.let("slope", total(lambda k: head(k) * gamma(k) * (x(k) - mean)) * scale / divisor * scale)
    with ib.for_range(0, count, name="k") as k:
        result[row, k] = scale * (head(k) * gamma(k) - share - (x(k) - mean) * slope)


def _cell(ib: Any, dtype: Any) -> Any:
    """A register that holds 0."""
    cell = ib.allocate(dtype, (1,), name="cell", scope="local")
    cell[0] = te.const(0, dtype)
    return cell
