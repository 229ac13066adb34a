"""The data of lowering: immutable values derived from a schedule, each made by one step.

    Computation    what a stage computes and reads, with inlined producers         one function per kind of operation (`kinds`)
    Placement      the same at a place: inside which loop, in which version        `computations`, `versions`
    StagePlan      the same with its region and its loops                          `regions/bounds`
    Launch         the threads of a kernel                                         `threads/launches`
    Program        all plans, and their relations                                  `regions/bounds`
    Guard          a condition that the loops put on the statements                `nest`, while it writes them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.lang.operation import Operation, root_axes
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.schedule.domains import Tiling
from tedsl.schedule.relations import Split
from tedsl.schedule.state import IterVarAttr, StageState

Key = tuple[Operation, int]  # an output of an operation
Ends = tuple[Expr, Expr]  # lowest and highest value, both included


@record(eq=False)
class Loop:
    """One loop of a stage: its `leaf` of the schedule, its variable, and the value that stands for the leaf.

    A loop of one iteration has no variable; its value is 0. Every loop starts at 0. tail: what passes are told about its last
    iterations (`uneven_splits.tail_of`).
    """

    leaf: IterVar
    attr: IterVarAttr
    extent: Expr
    var: Var | None
    value: Expr
    tail: str = ""


@record(eq=False)
class Read:
    """What one iteration of a stage reads of `tensor`: the lowest and highest index in each dimension, None for a whole
    dimension.

    Indices are expressions of the axes of the stage.
    """

    tensor: Tensor
    region: tuple[Ends | None, ...]


@record(eq=False)
class Computation:
    """What a stage computes.

    bodies: the formulas with inlined producers and clamped indices. reads: what an iteration reads, each once. domains: ranges
    of axes that differ from those of the operation: the steps of a scan begin after the first rows, and the range of a
    reduction may be an expression computed inline. accesses: how accesses of handwritten statements are kept inside their
    memory.
    """

    op: Operation
    bodies: tuple[Expr, ...]
    reads: tuple[Read, ...]
    domains: Mapping[IterVar, Range] = field(default_factory=FrozenDict)
    accesses: Accesses = Accesses.PROVED

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """All axes of the operation: those of the elements, then those of the reduction."""
        return tuple(root_axes(self.op))

    @property
    def data_axes(self) -> tuple[IterVar, ...]:
        """The axes that are dimensions of the outputs; of these, only the region that consumers read is computed."""
        return () if self.op.axis_are_loops else getattr(self.op, "axis", ())

    @property
    def without_loops(self) -> tuple[IterVar, ...]:
        """The axes inside calls of an intrinsic: the intrinsic iterates over them, so they get no loops."""
        return self.op.without_loops

    def domain(self, axis: IterVar) -> Range:
        """The values of `axis` for which the formula may be computed."""
        dom = self.domains.get(axis, axis.dom)
        assert dom is not None
        return dom


@record(eq=False, kw_only=True)
class Placement(Computation):
    """A computation at one place: as the loops of `stage`, inside loop number `position` of `host` (at the root: None, -1).

    A stage that is computed inside a host with versions has a placement in each of them.
    condition: where this version is computed, None for the general loops. general: for a version, the placement of the loops
    that run where its condition does not hold.
    """

    stage: StageState
    host: Placement | None = None
    position: int = -1
    general: Placement | None = None

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def condition(self) -> Expr | None:
        """Where this version is computed; None for the general loops."""
        return None if self.general is None else self.stage.condition

    @property
    def leaves(self) -> tuple[IterVar, ...]:
        """The loops of the stage, and the axes that have none."""
        return (*self.stage.leaf_iter_vars, *self.without_loops)


@record(eq=False, kw_only=True)
class StagePlan(Placement):
    """A placed stage with its region and its loops.

    mins: the start of the region along each axis; tiling: the extents of the axes within the region, and of the loops.
    padded: the axes that run beyond their regions, to full tiles, with their padded extents.
    offsets: for each iteration variable its value minus its minimum, in terms of the loops.
    """

    host: StagePlan | None = None
    general: StagePlan | None = None
    mins: Mapping[IterVar, Expr]
    tiling: Tiling
    padded: Mapping[IterVar, Expr]
    loops: tuple[Loop, ...]
    offsets: Mapping[IterVar, Expr]

    @property
    def extents(self) -> Mapping[IterVar, Expr]:
        """The extents of the axes in the region that is computed, and of the loops."""
        return self.tiling.extents


@record(eq=False)
class Launch:
    """The threads of one kernel: for each tag the axes that are bound to it, and the number of threads.

    The kernel begins at loop number `first` of `root`, the outermost bound loop.
    """

    root: StagePlan
    first: int
    axes: Mapping[str, Sequence[IterVar]]
    counts: Mapping[str, Expr]


@record(eq=False)
class Program:
    """All plans of a schedule, producers first, versions before the general loops, and how they relate.

    guests: for each plan the stages computed inside its loop number k, producers first. versions: those of a plan, in the
    order in which their conditions are tested. launches: for a stage that runs on threads of a device, its kernel.
    """

    plans: tuple[StagePlan, ...]
    guests: Mapping[StagePlan, Mapping[int, Sequence[StagePlan]]]
    versions: Mapping[StagePlan, Sequence[StagePlan]]
    launches: Mapping[StagePlan, Launch]

    def guests_at(self, plan: StagePlan, at: int) -> Sequence[StagePlan]:
        """The stages computed inside loop number `at` of `plan`, producers first."""
        return self.guests.get(plan, {}).get(at, ())

    def inside(self, plan: StagePlan) -> Iterator[StagePlan]:
        """All stages computed inside the loops of `plan`, also those inside the loops of its guests."""
        for guests in self.guests.get(plan, {}).values():
            for guest in guests:
                yield guest
                yield from self.inside(guest)


@record(eq=False)
class Guard:
    """A condition under which an iteration exists, and the reason for it.

    kind: "tile" (`of` may run beyond its extent: an uneven split), "tensor" (the region of an attached stage may leave the
    tensor along the axis `of`), "short" (a tile that was moved inwards, in an extent smaller than one tile), "read" (what a
    rounded-up tile reads along the axis `of`), "predicate" (the user's). splits: the splits that caused it, if any.
    """

    condition: Expr
    kind: str
    of: IterVar | None = None
    splits: tuple[Split, ...] = ()
