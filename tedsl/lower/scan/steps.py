"""Lowering of te.scan: the first rows, then a loop over the steps, which computes the updates and their producers.

    realize scan([0, m], [0, n]) {
      for i { scan[0, i] = init... }                     the stage of init writes there itself, or is copied
      for t { for i { scan[t + 1, i] = update... } }     the states and the updates are the memory of the scan
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.stmt import BufferStore, For, ForKind, Stmt, seq
from tedsl.lang.inline import Inliner
from tedsl.lang.scan.operation import ScanOp
from tedsl.lower.checks import Requirement
from tedsl.lower.nest import Nest
from tedsl.lower.plan import Computation, Read
from tedsl.lower.site import Site
from tedsl.lower.threads.wrap import between_steps
from tedsl.schedule.state import StageState


def scan_computation(stage: StageState, inliner: Inliner | None, domains: Mapping[IterVar, Range], accesses: Accesses) \
        -> tuple[Computation, Sequence[Requirement]]:
    """Returns the computation of a te.scan: it reads all first rows before its loops, and row t of each update in step t."""
    op = stage.op
    assert isinstance(op, ScanOp)
    t = op.scan_axis.var
    reads = [Read(tensor, (None,) * tensor.ndim) for tensor in op.init]
    reads += [Read(tensor, ((t, t), *[None] * (tensor.ndim - 1))) for tensor in op.update]
    first, rows = op.init[0].shape[0], op.state_placeholder[0].shape[0]
    enough = build.less_equal(first, rows)
    requirement = Requirement(enough, f"{op.name} begins with {shown(first)} row(s), and its states have {shown(rows)} in all")
    return Computation(op, (), tuple(reads)), [] if build.is_true(enough) else [requirement]


def scan_statements(site: Site) -> Stmt:
    """Copies of first rows that are stored elsewhere, and the loop over the steps, inside which the updates are computed."""
    plan, op = site.plan, site.plan.op
    assert isinstance(op, ScanOp)
    copies = [_copy(first, buffer) for first, buffer in zip(map(site.buffer_of, op.init), site.buffers) if first is not buffer]
    nest = Nest(site)
    last = len(plan.loops) - 1
    step = nest.guarded(seq(between_steps(plan), site.after_guests(last, seq())), plan.offsets, nest.starts(), nest.translate)
    return nest.marked(seq(*copies, nest.wrap(0, last, nest.inside(last, step))))


def _copy(source: Buffer, target: Buffer) -> Stmt:
    """A loop nest that copies the elements of `source` to the same indices of `target`."""
    indices = tuple([Var(f"ax{dim}", extent.dtype) for dim, extent in enumerate(source.shape)])
    stmt: Stmt = BufferStore(target, BufferLoad(source, indices), indices)
    for var, extent in zip(reversed(indices), reversed(source.shape)):
        stmt = For(var, build.const(0, var.dtype), extent, ForKind.SERIAL, stmt)
    return stmt
