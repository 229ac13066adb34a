"""compute_inline: the formula of a stage is written into the stages that read it."""

from __future__ import annotations

from tedsl.ir.expr import Reduce
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.attach import at_reader
from tedsl.schedule.state import AttachType, StageState, show
from tedsl.schedule.tails import must_have_one_version


def compute_inline(stage: StageState) -> None:
    """Replace every read of `stage` by its formula, so that it has no loops.

        for i: P[i] = f(i);  for i: C[i] = g(P[i])   →   for i: C[i] = g(f(i))
    """
    directive = "compute_inline()"
    stage.must_have_loops(directive)
    stage.must_not_be_joined(stage.leaf_iter_vars, directive)
    if stage.is_output:
        raise stage.refuse(directive, f"{stage.name} is an output of the schedule: its values must be stored",
                           hint="inline the stages that it reads instead")
    bodies = getattr(stage.op, "body", None)
    if not isinstance(bodies, tuple):
        raise stage.refuse(directive, f"{stage.name} is not made by te.compute: it has no formula",
                           hint="compute it at a loop of its reader instead")
    if any(isinstance(body, Reduce) for body in bodies):
        raise stage.refuse(directive, f"{stage.name} is a reduction: it needs loops and a place to add up",
                           hint=f"compute_at puts it inside a loop of its reader: {at_reader(stage)}")
    if type(stage.op) is not ComputeOp:
        raise stage.refuse(directive, f"{stage.name} is computed by calls of an intrinsic, which write to memory",
                           hint="compute_at puts it inside a loop of its reader")
    whole = [reader for reader in stage.schedule.consumers()[stage] if type(reader.op) is not ComputeOp]
    if whole:
        what = "is computed by calls of an intrinsic" if isinstance(whole[0].op, ComputeOp) else "is not made by te.compute"
        raise stage.refuse(directive, f"{whole[0].name} {what}: it reads {stage.name} in memory, there is no "
                           "formula to write it into",
                           hint=f"leave {stage.name} at the root, or read a te.compute that copies it")
    must_have_one_version(stage, directive)
    groups = [group for group, host in stage.schedule.group_hosts.items() if host is stage]
    if groups:  # first: its stages come back to this loop when they are moved alone
        loop = stage.schedule.group_loops[groups[0]]
        raise stage.refuse(directive, f"{groups[0].name} is computed at loop {loop.name} of it",
                           hint=f"call {groups[0].name}.compute_root() first")
    guests = stage.guests()
    if guests:
        raise stage.refuse(directive, f"{guests[0].name} is computed at loop {show(guests[0].attach_ivar)} of it",
                           hint=f"call {guests[0].written}.compute_root() first, or inline it too")
    stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.INLINE, None, None
