"""Smith normal form of integer matrices."""

from __future__ import annotations

from typing import NamedTuple

Matrix = list[list[int]]


class SmithForm(NamedTuple):
    """left * matrix * right is zero but for `diagonal`, whose positive entries divide one another in order.

    left and right are unimodular: their inverses are integer matrices; that of `right` is `inverse`.
    """

    left: Matrix
    diagonal: list[int]
    right: Matrix
    inverse: Matrix


def smith_normal_form(matrix: Matrix) -> SmithForm:
    """Returns the Smith normal form of a matrix of at least one row."""
    reduction = _Reduction([list(row) for row in matrix])
    rank = 0
    while reduction.bring_pivot(rank):
        reduction.clear(rank)
        rank += 1
    return SmithForm(reduction.left, [reduction.a[i][i] for i in range(rank)], reduction.right, reduction.inverse)


def _unit(size: int) -> Matrix:
    return [[int(i == j) for j in range(size)] for i in range(size)]


class _Reduction:
    """A matrix that is reduced in place, and the operations made so far."""

    def __init__(self, a: Matrix) -> None:
        self.a = a
        self.rows, self.columns = len(a), len(a[0])
        self.left, self.right, self.inverse = _unit(self.rows), _unit(self.columns), _unit(self.columns)

    def bring_pivot(self, k: int) -> bool:
        """Moves the entry of least magnitude among rows and columns from k on to (k, k); False if all are 0."""
        entries = [(abs(self.a[i][j]), i, j) for i in range(k, self.rows) for j in range(k, self.columns) if self.a[i][j]]
        if not entries:
            return False
        _, i, j = min(entries)
        self.swap_rows(i, k)
        self.swap_columns(j, k)
        if self.a[k][k] < 0:
            self.a[k] = [-x for x in self.a[k]]
            self.left[k] = [-x for x in self.left[k]]
        return True

    def clear(self, k: int) -> None:
        """Makes row and column k zero but for the pivot, which divides all that is left then."""
        while True:
            pivot = self.a[k][k]
            for i in range(k + 1, self.rows):
                self.add_row(i, k, -(self.a[i][k] // pivot))
            for j in range(k + 1, self.columns):
                self.add_column(j, k, -(self.a[k][j] // pivot))
            if any(self.a[i][k] for i in range(k + 1, self.rows)) or any(self.a[k][k + 1:]):
                self.bring_pivot(k)  # a remainder, smaller than the pivot
                continue
            odd = next((i for i in range(k + 1, self.rows) if any(x % pivot for x in self.a[i])), None)
            if odd is None:
                return
            self.add_row(k, odd, 1)

    def swap_rows(self, i: int, k: int) -> None:
        for m in (self.a, self.left):
            m[i], m[k] = m[k], m[i]

    def swap_columns(self, j: int, k: int) -> None:
        for m in (self.a, self.right):
            for row in m:
                row[j], row[k] = row[k], row[j]
        self.inverse[j], self.inverse[k] = self.inverse[k], self.inverse[j]

    def add_row(self, i: int, k: int, factor: int) -> None:
        for m in (self.a, self.left):
            m[i] = [x + factor * y for x, y in zip(m[i], m[k])]

    def add_column(self, j: int, k: int, factor: int) -> None:
        for m in (self.a, self.right):
            for row in m:
                row[j] += factor * row[k]
        self.inverse[k] = [x - factor * y for x, y in zip(self.inverse[k], self.inverse[j])]
