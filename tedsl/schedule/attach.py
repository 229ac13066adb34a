"""Where stages are computed and where they can be: the loops around each stage, and whether a producer precedes all its
readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.ir.container import Array
from tedsl.ir.iters import IterVar
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import shown
from tedsl.lang.operation import Operation
from tedsl.record import record
from tedsl.schedule.scan.stages import Scans, needed_first, scans_of
from tedsl.schedule.state import AttachType, ScheduleState, StageState, find
from tedsl.schedule.vector_guests import vector_around, vectorized, why_not_in_lanes


def attach_path(stage: StageState) -> list[tuple[StageState, IterVar]]:
    """The loops of other stages around `stage`, innermost first. Empty for a stage at the root."""
    return list(_walk_out(stage, scans_of(stage.schedule)))


def paths_of(sch: Any) -> Mapping[Operation, Array[IterVar]]:
    """The loops around each operation of a schedule, innermost first: TVM's CreateAttachPath."""
    state = getattr(sch, "state", None)
    if not isinstance(state, ScheduleState):
        raise ArgumentTypeError(f"CreateAttachPath takes a schedule, not {type_in_words(sch)}", hint="te.create_schedule(C.op)")
    return FrozenDict({stage.op: Array([loop for _, loop in attach_path(stage)]) for stage in state.stages})


def _walk_out(stage: StageState, scans: Scans) -> Iterator[tuple[StageState, IterVar]]:
    while (place := scans.place_of(stage)) is not None:
        host, loop = place
        at = find(host.leaf_iter_vars, loop)
        assert at is not None, f"{loop.name} is a loop of {host.name}: directives keep it"
        for outer in reversed(host.leaf_iter_vars[:at + 1]):
            yield host, outer
        stage = host


@record(eq=False)
class Misplaced:
    """An attached producer and a reader of it outside the loop at which the producer is computed."""

    producer: StageState
    consumer: StageState
    reason: str


def misplaced(schedule: ScheduleState) -> list[Misplaced]:
    """The readers outside of the loop at which their producer is computed.

    While a schedule is being written there may be some that are attached later. Lowering refuses them.
    """
    scans = scans_of(schedule)
    places = {stage: place for stage in schedule.stages if (place := scans.place_of(stage)) is not None}
    if not places:
        return []
    readers = real_consumers(schedule)
    return [Misplaced(stage, reader, _reason(stage, place[1], reader, nest))
            for stage, place in places.items() for reader in readers[stage] for nest in _not_around(place, reader, scans)[:1]]


def _not_around(place: tuple[StageState, IterVar], reader: StageState, scans: Scans) -> list[StageState]:
    """The loop nests of the host of `place`, its own and its versions, in which `reader` stands outside of that loop."""
    host, loop = place
    inside: StageState | None = reader
    if reader is host:
        return []
    while inside is not None and (at := scans.place_of(inside)) is not None:
        if at[0] is host:
            return [nest for nest in (host, *host.versions) if not _within(nest, loop, at[1])]
        inside = at[0]
    return [host]


def _within(nest: StageState, outer: IterVar, inner: IterVar) -> bool:
    """Whether `inner` is `outer` or a loop inside of it, in the order of `nest`."""
    first, last = find(nest.leaf_iter_vars, outer), find(nest.leaf_iter_vars, inner)
    assert first is not None and last is not None, f"{outer.name}, {inner.name} are loops of {nest.name}: directives keep them"
    return first <= last


def _reason(producer: StageState, loop: IterVar, reader: StageState, nest: StageState) -> str:
    version = f" in the version where {shown(nest.condition)}" if nest.version_of is not None else ""
    return (f"{reader.name} reads {producer.name}, which is computed inside loop {loop.name} of "
            f"{nest.name}, and {reader.name} stands outside that loop{version}")


def real_consumers(schedule: ScheduleState) -> dict[StageState, list[StageState]]:
    """For each stage the stages that read it, where an inlined reader is replaced by its own readers."""
    direct = schedule.consumers()
    consumers: dict[StageState, list[StageState]] = {}
    for stage in reversed(schedule.stages):
        readers: dict[StageState, None] = {}
        for reader in direct[stage]:
            inlined = reader.attach_type in (AttachType.INLINE, AttachType.INLINED)
            readers.update(dict.fromkeys(consumers[reader] if inlined else [reader]))
        consumers[stage] = list(readers)
    return consumers


def escapes(producer: StageState, host: StageState, consumers: Mapping[StageState, Sequence[StageState]]) -> StageState | None:
    """A reader of `producer` whose values are used other than by computing `host`; None if there is none.

    An output is always used otherwise: by the caller.
    """
    seen = {producer, host}
    for reader in reversed(consumers[producer]):
        pending = [reader]
        while pending:
            stage = pending.pop()
            if stage in seen:
                continue
            seen.add(stage)
            if stage.is_output or not consumers[stage]:
                return reader
            pending.extend(consumers[stage])
    return None


def reaches(producer: StageState, host: StageState, consumers: Mapping[StageState, Sequence[StageState]]) -> bool:
    """Whether `host` uses `producer`, directly or through other stages."""
    pending, seen = list(consumers[producer]), set()
    while pending:
        stage = pending.pop()
        if stage is host:
            return True
        if stage not in seen:
            seen.add(stage)
            pending.extend(consumers[stage])
    return False


def possible_hosts(producer: StageState, consumers: Mapping[StageState, Sequence[StageState]]) -> list[StageState]:
    """The stages at whose loops `producer` can be computed."""
    scans = scans_of(producer.schedule)
    return [stage for stage in producer.schedule.stages
            if stage is not producer and stage.leaf_iter_vars and stage.attach_type != AttachType.INLINE
            and reaches(producer, stage, consumers) and escapes(producer, stage, consumers) is None
            and not needed_first(producer, stage, scans)]


def at_reader(producer: StageState) -> str:
    """The text of a compute_at for a hint: at a stage where `producer` can be computed, or else at one that reads it."""
    consumers = producer.schedule.consumers()
    hosts = possible_hosts(producer, consumers) or consumers[producer]
    return f"{producer.written}.compute_at({hosts[0].written if hosts else 's[READER]'}, loop)"


def legal_places(producer: StageState) -> list[tuple[StageState, IterVar]]:
    """The loops at which `producer` can be computed now, host by host, outermost first.

    At such a loop all readers of `producer` are inside, what it reads has been computed, and it fits into a vectorized loop
    around.
    """
    if any(producer.is_joined(loop) for loop in producer.leaf_iter_vars):
        return []
    hosts = possible_hosts(producer, producer.schedule.consumers())
    plain = not why_not_in_lanes(producer)
    return [(host, loop) for host in hosts for loop in _room_in(host, plain) if not _breaks(producer, host, loop)]


def _room_in(host: StageState, plain: bool) -> list[IterVar]:
    """The loops of `host` at which a stage can be computed. If it is not `plain` (it does not fit into lanes), only those
    outside vectorized loops.
    """
    loops = [loop for loop in host.leaf_iter_vars if all(find(v.leaf_iter_vars, loop) is not None for v in host.versions)]
    if plain:
        return loops
    first = vectorized(host, host.leaf_iter_vars)
    inner = host.leaf_iter_vars[find(host.leaf_iter_vars, first) or 0:] if first is not None else []
    return [] if vector_around(host) is not None else [loop for loop in loops if find(inner, loop) is None]


def _breaks(producer: StageState, host: StageState, loop: IterVar) -> bool:
    """Whether computing `producer` at `loop` of `host` would make it or one of its readers read values that are not computed
    yet.
    """
    before = producer.attach_type, producer.attach_stage, producer.attach_ivar
    producer.attach_type, producer.attach_stage, producer.attach_ivar = AttachType.SCOPE, host, loop
    try:
        return any(producer in (wrong.producer, wrong.consumer) for wrong in misplaced(producer.schedule))
    finally:
        producer.attach_type, producer.attach_stage, producer.attach_ivar = before
