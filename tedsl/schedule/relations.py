"""The relations between iteration variables: frozen data, in the order in which directives added them.

Lowering propagates values along them: ranges from the axes of the formula to the loops, indices from the loops to the axes.
"""

from __future__ import annotations

from collections.abc import Iterable

from tedsl.ir.build import as_int
from tedsl.ir.calls.lines import elements_per_line
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.lang.tensor import Tensor
from tedsl.record import record

GUARD, MASK, PARTITION, SHIFT_INWARDS, ROUND_UP = TAILS = ("guard", "mask", "partition", "shift_inwards", "round_up")


@record(eq=False)
class Split:
    """`parent = outer * factor + inner`. One of `factor` (iterations of inner) and `nparts` (of outer) is given.

    tail: how a factor that does not divide the extent is handled (`schedule/tails.py`), one of TAILS. lines_of: the tensor at
    whose lines of memory the tiles begin.
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Expr | None = None
    nparts: Expr | None = None
    tail: str = GUARD
    lines_of: Tensor | None = None

    @property
    def given(self) -> Expr:
        """The factor or nparts, whichever the directive gave."""
        given = self.nparts if self.factor is None else self.factor
        assert given is not None
        return given

    @property
    def line(self) -> int:
        """The elements of a line of memory of `lines_of`, a divisor of the factor; 1 without lines_of."""
        factor = None if self.factor is None else as_int(self.factor)
        return 1 if self.lines_of is None or factor is None else elements_per_line(factor, self.lines_of.dtype)

    @property
    def sized(self) -> IterVar:
        """The loop whose number of iterations was given."""
        return self.outer if self.factor is None else self.inner

    @property
    def counted(self) -> IterVar:
        """The other loop, whose number of iterations follows from the extent of the parent."""
        return self.inner if self.factor is None else self.outer


@record(eq=False)
class Fuse:
    """`outer = fused // extent(inner)`, `inner = fused % extent(inner)`."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@record(eq=False)
class Rebase:
    """`parent = rebased + min(parent)`: a loop that starts at 0 for an axis whose region may start elsewhere."""

    parent: IterVar
    rebased: IterVar


@record(eq=False)
class Singleton:
    """A loop of one iteration that is derived from no axis."""

    iter: IterVar


Relation = Split | Fuse | Rebase | Singleton


def parents_of(relation: Relation) -> tuple[IterVar, ...]:
    """The iteration variables that the relation consumes."""
    match relation:
        case Split(parent=p) | Rebase(parent=p):
            return (p,)
        case Fuse(outer=o, inner=i):
            return (o, i)
        case Singleton():
            return ()


def children_of(relation: Relation) -> tuple[IterVar, ...]:
    """The iteration variables that the relation defines."""
    match relation:
        case Split(outer=o, inner=i):
            return (o, i)
        case Fuse(fused=f):
            return (f,)
        case Rebase(rebased=r):
            return (r,)
        case Singleton(iter=i):
            return (i,)


def derived(parent: IterVar, suffix: str) -> IterVar:
    """A new loop named after `parent`, without a range: lowering determines it."""
    return IterVar(None, Var(parent.name + suffix, parent.dtype), unmarked(parent))


def unmarked(loop: IterVar) -> IterType:
    """The kind of `loop`; DATA_PAR for a loop that a hybrid script writes as parallel, vectorized or unrolled."""
    marked = (IterType.UNROLLED, IterType.VECTORIZED, IterType.PARALLELIZED)
    return IterType.DATA_PAR if loop.iter_type in marked else loop.iter_type


def fused_of(outer: IterVar, inner: IterVar, extent: Expr | None = None) -> IterVar:
    """A new loop for `outer` and `inner`, named after both, of a dtype that holds its `extent`."""
    dtype = max(outer.dtype, inner.dtype, *(() if extent is None else (extent.dtype,)), key=lambda of: of.bits)
    kind = IterType(max(unmarked(outer), unmarked(inner)))
    return IterVar(None, Var(f"{outer.name}.{inner.name}.fused", dtype), kind)


def singleton() -> IterVar:
    """A new loop of one iteration."""
    return IterVar(Range.from_min_extent(0, 1), Var("singleton"))


def touched_by(axes: Iterable[IterVar], relations: Iterable[Relation]) -> set[IterVar]:
    """`axes` and every iteration variable connected to them by `relations`, upwards or downwards."""
    touched, pending = set(axes), list(relations)
    while True:
        near = [r for r in pending if touched & set(parents_of(r) + children_of(r))]
        if not near:
            return touched
        for r in near:
            touched.update(parents_of(r) + children_of(r))
        pending = [r for r in pending if not any(r is n for n in near)]
