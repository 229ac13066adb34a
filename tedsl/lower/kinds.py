"""What lowering does differently for each kind of operation: a table by class. The functions stand in one file per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir.buffer import Buffer
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.stmt import Stmt
from tedsl.lang.extern import ExternOp
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.inline import Inliner
from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.scan.operation import ScanOp
from tedsl.lower.checks import Requirement
from tedsl.lower.compute import BufferOf, plan_formula
from tedsl.lower.extern import extern_statements, plan_extern
from tedsl.lower.hybrid.loops import hybrid_statements, plan_hybrid
from tedsl.lower.nest import Nest
from tedsl.lower.plan import StagePlan
from tedsl.lower.scan.steps import plan_scan, scan_statements
from tedsl.schedule.state import StageState

# Puts the stages that are computed inside loop number k at the start of the body of that loop.
Guests = Callable[[int, Stmt], Stmt]


@dataclass(frozen=True)
class Kind:
    """plan: the plan of a stage, and what the shapes must satisfy; the Inliner (None: nothing is inline) writes formulas that
    are computed inline into it; the ranges are those of axes that are not computed in whole; Accesses says how they are
    kept inside their tensors. statements: its loops, over the buffers of its outputs.
    """

    plan: Callable[[StageState, Inliner | None, Mapping[IterVar, Range], Accesses], tuple[StagePlan, Sequence[Requirement]]]
    statements: Callable[[StagePlan, Sequence[Buffer], BufferOf, Analyzer, Guests], Stmt]


def _loops_of_formula(plan: StagePlan, buffers: Sequence[Buffer], buffer_of: BufferOf, analyzer: Analyzer,
                      guests: Guests) -> Stmt:
    return Nest(plan, buffers, buffer_of, analyzer, guests).build()


KINDS: dict[type[Operation], Kind] = {
    ComputeOp: Kind(plan_formula, _loops_of_formula),
    TensorComputeOp: Kind(plan_formula, _loops_of_formula),
    ExternOp: Kind(plan_extern, extern_statements),
    ScanOp: Kind(plan_scan, scan_statements),
    HybridOp: Kind(plan_hybrid, hybrid_statements),
}


def kind_of(op: Operation) -> Kind:
    """The entry of the table for `op`."""
    kind = KINDS.get(type(op))
    if kind is None:
        raise LoweringError(f"{op.name} is a {type(op).__name__}, which cannot be lowered to loops")
    return kind
