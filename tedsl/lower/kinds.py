"""The table, by class of operation, of functions that lower it, which stand in one file per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tedsl.errors import LoweringError, type_in_words
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
from tedsl.lower.compute import formula_computation
from tedsl.lower.extern import extern_computation, extern_statements
from tedsl.lower.hybrid.loops import hybrid_computation, hybrid_statements
from tedsl.lower.nest import Nest
from tedsl.lower.plan import Computation
from tedsl.lower.scan.steps import scan_computation, scan_statements
from tedsl.lower.site import Site
from tedsl.record import record
from tedsl.schedule.state import StageState


@record
class Kind:
    """The functions that lower one class of operations.

    computation(stage, inliner, domains, accesses) returns what the stage computes and the requirements on the shapes. inliner:
    inlines producers into the formula (None: nothing is inline). domains: the ranges of axes that are not computed whole.
    accesses: how indices are kept inside their tensors.

    statements(site) returns the loops of the stage over the buffers of its outputs.
    """

    computation: Callable[[StageState, Inliner | None, Mapping[IterVar, Range], Accesses],
                          tuple[Computation, Sequence[Requirement]]]
    statements: Callable[[Site], Stmt]


def _formula_statements(site: Site) -> Stmt:
    return Nest(site).build()


KINDS: dict[type[Operation], Kind] = {
    ComputeOp: Kind(formula_computation, _formula_statements),
    TensorComputeOp: Kind(formula_computation, _formula_statements),
    ExternOp: Kind(extern_computation, extern_statements),
    ScanOp: Kind(scan_computation, scan_statements),
    HybridOp: Kind(hybrid_computation, hybrid_statements),
}


def kind_of(op: Operation) -> Kind:
    """The entry of the table for `op`."""
    kind = KINDS.get(type(op))
    if kind is None:
        raise LoweringError(f"{op.name} is {type_in_words(op)}, which cannot be lowered to loops")
    return kind
