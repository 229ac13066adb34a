"""reverse_compute_at: a consumer is computed inside a loop of its producer.

    for io: for ii: P[i] = f(i);  for i: C[i] = g(P[i])
                                  →   for io: { for ii: P[i] = f(i); for ii: C[i] = g(P[i]) }         (at io, i = io*8 + ii)

Stages are nested in one way only, by compute_at: a producer is inside its consumer. So the consumer takes over the loops of the
producer down to the given loop, and the producer keeps those inside and is computed at that loop of the consumer. That is the
same program if every element of the consumer reads the element of the producer at its own indices, in any order of dimensions:
then both are cut into the same tiles. Everything else is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import ProducerLoad, Var
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.node import Node
from tedsl.ir.script import shown
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.extern import ExternOp
from tedsl.lang.operation import ComputeOp, root_axes
from tedsl.schedule.attach import real_consumers
from tedsl.schedule.domains import written_tiling
from tedsl.schedule.normalize import normalized
from tedsl.schedule.primitives.places.compute_at import must_be_possible
from tedsl.schedule.relations import ROUND_UP, SHIFT_INWARDS, Fuse, Rebase, Relation, Singleton, Split, children_of, parents_of
from tedsl.schedule.state import AttachType, IterVarAttr, StageState, describe, find, show
from tedsl.schedule.tails import must_have_one_version

Axes = dict[IterVar, IterVar]


def reverse_compute_at(stage: StageState, producer: Any, loop: Any) -> tuple[IterVar, ...]:
    """Computes, at the end of each iteration of `loop` of `producer`, the elements of `stage` that read the elements computed
    there.

    Returns the loops of `stage`, those of the producer first. Schedule the producer first: its present loops are taken over.
    """
    directive = f"reverse_compute_at({show(producer)}, {show(loop)})"
    if isinstance(producer, StageState) and not isinstance(loop, IterVar):
        producer.position_of(loop, f"{directive} of {stage.name}")
    axes = _check_stages(stage, producer, directive)
    for one in (stage, producer):
        must_have_one_version(one, directive)
    _check_fresh(stage, directive)
    directive += f" of {stage.name}"  # from here on the loops are those of the producer
    place = producer.position_of(loop, directive)
    _check_loops(producer, place, directive)
    must_be_possible(producer, stage, stage.leaf_iter_vars[0], directive)
    mirror = Mirror(producer, place, axes)
    problem = mirror.problem()
    if problem:
        raise producer.refuse(directive, problem, hint=_other_way(stage, producer))
    mirror.apply(stage)
    return tuple(stage.leaf_iter_vars)


def _other_way(stage: StageState, producer: StageState) -> str:
    if isinstance(stage.op, ExternOp):
        return f"leave {stage.name} where it is: no stage can be computed inside its statements"
    return f"split the loops of {stage.name} as wanted and call {producer.written}.compute_at({stage.written}, loop)"


def _check_stages(stage: StageState, producer: Any, directive: str) -> Axes:
    """The axis of `stage` for each axis of `producer`; refuses stages that cannot be nested this way."""
    stage.must_have_loops(directive)
    if not isinstance(producer, StageState):
        raise stage.refuse(directive, f"the first argument is a stage, got {describe(producer)}",
                           hint=f"write {stage.written}.reverse_compute_at(s[P], axis_of_P)")
    if producer.schedule is not stage.schedule:
        raise stage.refuse(directive, f"{producer.name} is a stage of another schedule", hint="take both from one schedule")
    producer.must_have_loops(directive)
    for one in (stage, producer):
        if type(one.op) is not ComputeOp:
            raise stage.refuse(directive, f"{one.name} is not made by a formula of te.compute",
                               hint=_other_way(stage, producer))
        if one.env_threads:
            raise stage.refuse(directive, f"{one.name} is computed by threads that env_threads launched around its loops",
                               hint=f"bind loops of {producer.name} instead")
        if one.attach_type != AttachType.ROOT:
            raise stage.refuse(directive, f"{one.name} is not computed at the root",
                               hint=f"call reverse_compute_at before {one.written} is placed, or {one.written}.compute_root()")
    readers = real_consumers(stage.schedule)[producer]
    if stage not in readers:
        raise stage.refuse(directive, f"{stage.name} does not read {producer.name}",
                           hint=f"{producer.name} is read by {', '.join(r.name for r in readers) or 'nobody'}")
    return _axes_read(stage, producer, directive)


def _axes_read(stage: StageState, producer: StageState, directive: str) -> Axes:
    """The axis of the consumer that indexes each axis of the producer. Refuses a consumer that reads more elements of the
    producer, or others, than those at its own indices.
    """
    whole = normalized(stage.schedule)  # formulas that are computed inline are part of the consumer
    consumer, source = (whole.stages[stage.schedule.position(one)].op for one in (stage, producer))
    assert isinstance(consumer, ComputeOp) and isinstance(source, ComputeOp)
    own = {axis.var: axis for axis in consumer.axis}
    axes: Axes = {}
    roots: list[Node] = [*consumer.body, *consumer.reduce_axis]  # the range of a reduction may be read as well
    for load in dict.fromkeys(n for root in roots for n in post_order(root) if type(n) is ProducerLoad):
        if whole.stage_map[load.producer.op].op is not source:
            continue
        for axis, index in zip(source.axis, load.indices):
            mine = own.get(index) if isinstance(index, Var) else None
            if mine is None or axes.setdefault(axis, mine) is not mine:
                raise stage.refuse(directive, f"{stage.name} reads {shown(load)}: an element of it needs other elements of "
                                   f"{producer.name} than the one at its own indices",
                                   hint=_other_way(stage, producer) + ", which finds out what is needed")
            if not structural_equal(mine.dom, axis.dom):
                raise stage.refuse(directive, f"{mine.name} of {stage.name} ranges over {mine.dom!r}, {axis.name} of "
                                   f"{producer.name} over {axis.dom!r}", hint=_other_way(stage, producer))
    if len(set(axes.values())) < len(source.axis):
        raise stage.refuse(directive, f"{stage.name} reads a diagonal of {producer.name}: the other elements of a tile of "
                           f"{producer.name} would belong to no element of {stage.name}", hint=_other_way(stage, producer))
    return axes


def _check_fresh(stage: StageState, directive: str) -> None:
    untouched = all(a is b for a, b in zip(stage.leaf_iter_vars, root_axes(stage.op)))
    if stage.relations or stage.iter_var_attrs or not untouched or stage.init_at is not None:
        raise stage.refuse(directive, f"the loops of {stage.name} are scheduled already, and those of the producer would come",
                           hint=f"call reverse_compute_at first, then schedule the loops of {stage.name} that it returns")
    stage.must_have_no_guests(stage.leaf_iter_vars, directive)


def _check_loops(producer: StageState, place: int, directive: str) -> None:
    around = producer.leaf_iter_vars[:place + 1]
    for loop in around:
        attr = producer.attr_of(loop)
        if loop.is_reduction:
            raise producer.refuse(directive, f"{loop.name} is a reduction loop: inside of it no element is finished",
                                  hint=f"choose a loop outside of the reduction: "
                                       f"{', '.join(_before_reduction(producer)) or 'reorder brings one there'}")
        if attr.iter_type == IterType.VECTORIZED or attr.tensor_intrin is not None or attr.prefetched:
            said = producer.annotation_of(loop) or "tensorized or prefetching"
            raise producer.refuse(directive, f"{loop.name} is {said}", hint=f"choose a loop outside of {loop.name}")
    if producer.init_at is not None and find(around, producer.init_at) is not None:
        raise producer.refuse(directive, f"the start values of {producer.name} stand before {producer.init_at.name}, outside "
                              "of the place", hint="decompose_reduction at a loop inside of the place")
    for relation in producer.relations:
        if isinstance(relation, Split) and relation.tail in (SHIFT_INWARDS, ROUND_UP):
            raise producer.refuse(directive, f'{producer.name} is split with tail="{relation.tail}", which is about the memory '
                                  "of one stage", hint='use tail="guard", "mask" or "partition"')


def _before_reduction(producer: StageState) -> list[str]:
    names = []
    for loop in producer.leaf_iter_vars:
        if loop.is_reduction:
            break
        names.append(loop.name)
    return names


# --- the outer loops handed over -----------------------------------------------------------------------------------------

class Mirror:
    """Loops 0 .. place of `stage` as loops of another stage; `axes` maps the axes of `stage` to those of the other.

    Of the iteration variables of `stage`, some were split into outer loops only (fixed: constant during one iteration of the
    place), some into inner loops only, the others into both (mixed).
    """

    def __init__(self, stage: StageState, place: int, axes: dict[IterVar, IterVar]) -> None:
        self.stage, self.place = stage, place
        self.outer = stage.leaf_iter_vars[:place + 1]
        self.copies = dict(axes)
        inside = {one: [find(self.outer, leaf) is not None for leaf in leaves] for one, leaves in _ends(stage).items()}
        self.fixed = {one for one, those in inside.items() if all(those)}
        self.moved = {one for one, those in inside.items() if any(those)}

    def problem(self) -> str:
        """The reason why one iteration of loop number `place` does not compute a block of `stage`; "" if it does."""
        for relation in self.stage.relations:
            match relation:
                case Fuse(fused=f) if f in self.moved and f not in self.fixed:
                    return f"{f.name}, a fused loop, is cut by the place: what an iteration computes is not a block"
                case Split(parent=p, outer=o, inner=i) if i in self.moved and o not in self.fixed:
                    return f"{i.name} is outside of the place and {o.name}, the outer part of {p.name}, inside: what an " \
                           "iteration computes is not a block"
        return ""

    def apply(self, other: StageState) -> None:
        """Gives `other` the outer loops and computes `stage` inside the innermost of them."""
        self._give(other)
        attrs = self.stage.iter_var_attrs
        taken = {self.copies[loop]: attrs[loop] for loop in self.outer if loop in attrs}
        other.iter_var_attrs = {**other.iter_var_attrs, **taken}
        self.stage.iter_var_attrs = {loop: attr for loop, attr in attrs.items() if find(self.outer, loop) is None}
        for loop in self.outer:
            if loop not in root_axes(self.stage.op):
                self.stage.retire(loop, f"became the loop {self.copies[loop].name} of {other.name} by reverse_compute_at",
                                  f"write {other.written} and the loop that reverse_compute_at returned")
        for guest in self.stage.guests():
            if guest.attach_ivar is not None and find(self.outer, guest.attach_ivar) is not None:
                guest.attach_stage, guest.attach_ivar = other, self.copies[guest.attach_ivar]
        schedule = self.stage.schedule
        for group, loop in schedule.group_loops.items():
            if schedule.group_hosts[group] is self.stage and find(self.outer, loop) is not None:
                schedule.put_group(group, other, self.copies[loop])
        self._keep_inner()
        stage = self.stage
        stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.SCOPE, other, self.copies[self.outer[-1]]

    def _give(self, other: StageState) -> None:
        """Copies to `other` the relations that produce the outer loops, over its own axes; returns its loops."""
        leaves = list(other.leaf_iter_vars)
        for relation in self.stage.relations:
            if not any(child in self.moved for child in children_of(relation)):
                continue
            copied = self._copied(relation, other)
            other.relations += (copied,)
            other.all_iter_vars += tuple(children_of(copied))
            parents = parents_of(copied)
            at = find(leaves, parents[0]) if parents else 0
            assert at is not None, f"{parents[0].name} was a loop of {self.stage.name} when that was related too"
            leaves[at:at + len(parents[:1])] = children_of(copied)
            leaves = [loop for loop in leaves if find(parents[1:], loop) is None]
        first = [self.copies[loop] for loop in self.outer]
        other.leaf_iter_vars = (*first, *[loop for loop in leaves if find(first, loop) is None])

    def _copied(self, relation: Relation, other: StageState) -> Relation:
        """A copy of `relation` over the copied variables, each named after the axis of `other` that it is derived from."""
        match relation:
            case Split(parent=p, outer=o, inner=i):
                parent = self.copies[p]
                self.copies[o], self.copies[i] = (IterVar(None, Var(parent.name + suffix, one.dtype), parent.iter_type)
                                                  for suffix, one in ((".outer", o), (".inner", i)))
                return replace(relation, parent=parent, outer=self.copies[o], inner=self.copies[i])
            case Fuse(outer=o, inner=i, fused=f):
                outer, inner = self.copies[o], self.copies[i]
                self.copies[f] = IterVar(None, Var(f"{outer.name}.{inner.name}.fused", f.dtype), outer.iter_type)
                return Fuse(outer, inner, self.copies[f])
            case Rebase(parent=p, rebased=r):
                parent = self.copies[p]
                self.copies[r] = IterVar(None, Var(parent.name, r.dtype), parent.iter_type)
                return Rebase(parent, self.copies[r])
            case Singleton(iter=one):
                self.copies[one] = one.replace(var=Var(one.name, one.dtype))
                return Singleton(self.copies[one])

    def _keep_inner(self) -> None:
        """Leaves `stage` only the relations and loops inside the place; a fixed axis gets one iteration."""
        stage = self.stage
        extents = written_tiling(stage).extents
        kept: list[Relation] = []
        for relation in stage.relations:
            if all(child in self.fixed for child in children_of(relation)):
                continue
            if isinstance(relation, Split) and relation.outer in self.fixed:
                kept.append(Rebase(relation.parent, relation.inner))
            elif isinstance(relation, Split) and relation.outer in self.moved and relation.nparts is not None:
                size = build.ceil_div(extents[relation.parent], relation.nparts)  # of the whole: the place has fewer parts
                kept.append(replace(relation, factor=size, nparts=None))
            else:
                kept.append(relation)
        stage.relations = tuple(kept)
        stage.all_iter_vars = (*root_axes(stage.op), *[child for relation in kept for child in children_of(relation)])
        single = [axis for axis in root_axes(stage.op) if axis in self.fixed]
        stage.leaf_iter_vars = (*single, *stage.leaf_iter_vars[self.place + 1:])
        stage.iter_var_attrs = {loop: attr for loop, attr in stage.iter_var_attrs.items() if _is_used(attr)}


def _is_used(attr: IterVarAttr) -> bool:
    return attr != IterVarAttr()


def _ends(stage: StageState) -> dict[IterVar, list[IterVar]]:
    """The loops that each iteration variable was split into."""
    ends: dict[IterVar, list[IterVar]] = {loop: [loop] for loop in stage.leaf_iter_vars}
    for relation in reversed(stage.relations):
        loops = [leaf for child in children_of(relation) for leaf in ends[child]]
        for parent in parents_of(relation):
            ends[parent] = loops
    return ends
