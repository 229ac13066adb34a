"""What lowering knows about one stage. The schedule itself is never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.lang.operation import Operation, root_axes
from tedsl.lang.tensor import Tensor
from tedsl.schedule.domains import Tiling
from tedsl.schedule.relations import Split
from tedsl.schedule.state import IterVarAttr, StageState

Key = tuple[Operation, int]  # an output of an operation
Ends = tuple[Expr, Expr]  # lowest and highest value, both included
UNKNOWN = Tiling({}, frozenset())


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop of a stage: its `leaf` of the schedule, its variable, and the value that stands for the leaf.

    A loop of one iteration has no variable; its value is 0. Every loop starts at 0. tail: what passes are told about its last
    iterations (`tails.py`).
    """

    leaf: IterVar
    attr: IterVarAttr
    extent: Expr
    var: Var | None
    value: Expr
    launched: Expr | None = field(default=None, kw_only=True)  # of a loop bound to threads: how many of them the kernel has
    tail: str = ""


@dataclass(frozen=True, eq=False)
class Read:
    """What one iteration of a stage reads of `tensor`: the lowest and highest index in each dimension, None for all of it.

    They are written in the variables of the axes of the stage.
    """

    tensor: Tensor
    region: tuple[Ends | None, ...]


@dataclass(eq=False)
class Launch:
    """The threads of one kernel: the axes that are bound in it, for each tag, and how many threads of a tag there are.

    It begins at loop number `first` of `root`, the outermost one that is bound.
    """

    root: StagePlan
    first: int
    axes: dict[str, list[IterVar]] = field(default_factory=dict)
    counts: dict[str, Expr] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition under which an iteration exists, and what made it needed.

    kind: "tile" (`of` may run beyond its extent: a split that does not come out even), "tensor" (the region of an attached
    stage may leave the tensor along the axis `of`), "short" (a tile moved inwards where there is less than one), "read" (of
    what a tile that is rounded up reads along the axis `of`), "predicate" (the user's).
    splits: those that made it needed, where they did.
    """

    condition: Expr
    kind: str
    of: IterVar | None = None
    splits: tuple[Split, ...] = ()


@dataclass(eq=False)
class StagePlan:
    """A stage that gets loops of its own. Filled in the order of the fields.

    bodies: the formulas with inlined producers and clamped indices; reads: what an iteration reads, each once.
    domains: the ranges of axes that are others than the operation says: steps of scans begin after the first rows, and what
    gives a reduction its range may be computed inline.
    condition: where this specialized version is computed; versions: those of this stage, which has the general loops.
    host, position: the stage and the number of the loop inside which this one is computed; None at the root.
    guests: the stages computed inside loop number k of this one, producers first.
    mins, tiling: where the region of each axis that is computed begins, and the extents of the axes and of all loops.
    padded: the axes that run beyond their regions, to full tiles, with the extents that they have then.
    offsets: for each iteration variable its value minus its minimum, in terms of the loops.
    guards: the conditions that the loops put on the statements.
    launch: the kernel that the stage is part of, if it runs on threads of a device.
    accesses: how those of statements that the user wrote are kept inside their memory.
    """

    stage: StageState
    op: Operation
    bodies: tuple[Expr, ...]
    reads: tuple[Read, ...]
    domains: dict[IterVar, Range] = field(default_factory=dict)
    host: StagePlan | None = None
    position: int = -1
    condition: Expr | None = None
    versions: list[StagePlan] = field(default_factory=list)
    guests: dict[int, list[StagePlan]] = field(default_factory=dict)
    mins: dict[IterVar, Expr] = field(default_factory=dict)
    tiling: Tiling = UNKNOWN
    padded: dict[IterVar, Expr] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    offsets: dict[IterVar, Expr] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    launch: Launch | None = None
    accesses: Accesses = Accesses.PROVED

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """All axes of the operation: those of the elements, then those of the reduction."""
        return tuple(root_axes(self.op))

    @property
    def without_loops(self) -> tuple[IterVar, ...]:
        """The axes inside the calls of an intrinsic: they are computed in whole."""
        return getattr(self.op, "without_loops", ())

    @property
    def leaves(self) -> tuple[IterVar, ...]:
        """The loops of the stage, and the axes that have none."""
        return (*self.stage.leaf_iter_vars, *self.without_loops)

    @property
    def extents(self) -> Mapping[IterVar, Expr]:
        """The extents of the axes in the region that is computed, and of the loops."""
        return self.tiling.extents

    def domain(self, axis: IterVar) -> Range:
        """The values of `axis` for which the formula may be computed."""
        dom = self.domains.get(axis, axis.dom)
        assert dom is not None
        return dom

    @property
    def data_axes(self) -> tuple[IterVar, ...]:
        """The axes of a formula that are dimensions of its outputs. Which part of them is computed, the readers decide."""
        return () if getattr(self.op, "axis_are_loops", False) else getattr(self.op, "axis", ())
