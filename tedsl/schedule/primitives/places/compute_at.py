"""compute_at: a producer is computed inside a loop of a stage that uses it."""

from __future__ import annotations

from typing import Any

from tedsl.ir.script import shown
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.schedule.attach import at_reader, escapes, legal_places, possible_hosts, reaches, real_consumers
from tedsl.schedule.scan.checks import check_place
from tedsl.schedule.scan.stages import needed_first, scans_of
from tedsl.schedule.state import AttachType, StageState, describe, find, show
from tedsl.schedule.vector_guests import vector_around, vectorized, why_not_in_lanes


def compute_at(stage: StageState, host: Any, loop: Any) -> None:
    """Compute, at the start of each iteration of `loop` of `host`, the part of `stage` that the iteration reads.

        for i: P[i] = f(i);  for i: C[i] = g(P[i])   →   for i: P[i] = f(i); C[i] = g(P[i])
    """
    must_be_possible(stage, host, loop)
    stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.SCOPE, host, loop


def must_be_possible(stage: StageState, host: Any, loop: Any, said: str = "") -> None:
    """Refuses a place where `stage` would not be computed before each use of it. said: the directive, by default compute_at."""
    directive = said or f"compute_at({show(host)}, {show(loop)})"
    stage.must_have_loops(directive)
    stage.must_not_be_joined(stage.leaf_iter_vars, directive)
    _check_host(stage, host, directive)
    directive += f" of {stage.name}"  # from here on the loops are those of the host
    at = host.position_of(loop, directive)
    for version in host.versions:
        if find(version.leaf_iter_vars, loop) is None:
            raise host.refuse(directive, f"the version of {host.name} where {shown(version.condition)} has no loop "
                              f"{loop.name}: its loops are {', '.join(version.loop_names())}",
                              hint="choose a loop that both have")
    check_place(stage, host, loop, directive)
    vector = vectorized(host, host.leaf_iter_vars[:at + 1])
    around = (host, vector) if vector is not None else vector_around(host)
    why = why_not_in_lanes(stage) if around is not None else ""
    if around is not None and why:
        raise host.refuse(directive, f"{around[1].name} of {around[0].name} is vectorized: {why}",
                          hint=f"compute {stage.name} at a loop outside of {around[1].name}: {_places(stage)}")


def _check_host(stage: StageState, host: Any, directive: str) -> None:
    if not isinstance(host, StageState):
        raise stage.refuse(directive, f"the first argument is a stage, got {describe(host)}",
                           hint=f"write {at_reader(stage)}")
    if host.schedule is not stage.schedule:
        raise stage.refuse(directive, f"{host.name} is a stage of another schedule",
                           hint=f"take both stages from one schedule: {stage.written}.compute_at(s[{host.name}], axis)")
    if isinstance(host.op, HybridOp):
        raise stage.refuse(directive, f"{host.name} is a hybrid script, which uses the whole of {stage.name} in every "
                           "iteration", hint=f"leave {stage.name} at the root")
    if host.version_of is not None:
        raise stage.refuse(directive, f"{host.name} is a specialized version here: what is computed in one version is in all",
                           hint=f"write {stage.written}.compute_at({host.written}, loop), with a loop that all versions have")
    if host is stage:
        raise stage.refuse(directive, f"{stage.name} cannot be computed inside itself", hint=_places(stage))
    if stage.is_output:
        raise stage.refuse(directive, f"{stage.name} is an output of the schedule: outputs are computed on their own",
                           hint=f"attach its producers to it, or make {stage.name} no output of create_schedule")
    consumers = stage.schedule.consumers()
    if not reaches(stage, host, consumers):
        before = f": it is computed before {stage.name}, which uses it" if reaches(host, stage, consumers) else ""
        raise stage.refuse(directive, f"{host.name} does not use {stage.name}{before}", hint=_places(stage))
    if host.attach_type in (AttachType.INLINE, AttachType.INLINED):
        raise stage.refuse(directive, f"{host.name} is computed inline: it has no loops of its own", hint=_places(stage))
    other = escapes(stage, host, consumers)
    if other is not None:
        raise stage.refuse(directive, f"{other.name} uses {stage.name} too and is not computed inside {host.name}: "
                           f"it would find nothing there", hint=_places(stage))


def _places(stage: StageState) -> str:
    """A list, for a hint, of the loops at which `stage` can be computed now; if there are none, of the stages at whose loops it
    might be after other directives.
    """
    hosts = possible_hosts(stage, stage.schedule.consumers()) if not stage.is_output else []
    if not hosts:
        scans = scans_of(stage.schedule)
        first = next((one for one in stage.schedule.stages if needed_first(stage, one, scans)), None)
        if first is not None:
            return f"leave {stage.name} at the root: {first.name} needs it for its first rows, before its loops"
        return f"no stage uses {stage.name} alone: leave it at the root"
    legal = legal_places(stage)
    if legal:
        now = {host: [loop.name for other, loop in legal if other is host] for host, _ in legal}
        return f"{stage.name} can be computed at " + " or ".join(f"a loop of {h.name} ({', '.join(now[h])})" for h in now)
    readers = [f"{reader.name}" for reader in real_consumers(stage.schedule)[stage] if reader not in hosts]
    return f"leave {stage.name} at the root, or first compute {' and '.join(readers) or 'its readers'} inside of " \
           f"{' or '.join(host.name for host in hosts)}"
