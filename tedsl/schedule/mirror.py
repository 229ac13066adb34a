"""The outer loops of a stage handed over to another one that is cut into the same tiles (for reverse_compute_at)."""

from __future__ import annotations

from dataclasses import replace

from tedsl.ir.expr import Var
from tedsl.ir.iters import IterVar
from tedsl.schedule.domains import ceil_div, extents_down, root_extents
from tedsl.schedule.relations import Fuse, Relation, Singleton, Split, children_of, parents_of
from tedsl.schedule.relations import Rebase as RebaseRelation
from tedsl.schedule.state import AttachType, IterVarAttr, StageState, find, root_axes


class Mirror:
    """Loops 0 .. place of `stage` as loops of another stage; `axes` maps the axes of `stage` to those of the other.

    Of the iteration variables of `stage`, some end in outer loops only (fixed: one iteration of the place sees one value),
    some in inner ones only, the others in both (mixed).
    """

    def __init__(self, stage: StageState, place: int, axes: dict[IterVar, IterVar]) -> None:
        self.stage, self.place = stage, place
        self.outer = stage.leaf_iter_vars[:place + 1]
        self.copies = dict(axes)
        inside = {one: [find(self.outer, leaf) is not None for leaf in leaves] for one, leaves in _ends(stage).items()}
        self.fixed = {one for one, those in inside.items() if all(those)}
        self.moved = {one for one, those in inside.items() if any(those)}

    def problem(self) -> str:
        """Why an iteration of the place does not see a block of `stage`; "" if it does."""
        for relation in self.stage.relations:
            match relation:
                case Fuse(fused=f) if f in self.moved and f not in self.fixed:
                    return f"{f.name}, a fused loop, is cut by the place: what an iteration computes is no block"
                case Split(parent=p, outer=o, inner=i) if i in self.moved and o not in self.fixed:
                    return f"{i.name} is outside of the place and {o.name}, the outer part of {p.name}, inside: what an " \
                           "iteration computes is no block"
        return ""

    def apply(self, other: StageState) -> None:
        """Make it so: `other` gets the outer loops, `stage` is computed inside the innermost of them."""
        self._give(other)
        attrs = self.stage.iter_var_attrs
        for loop in self.outer:
            if loop in attrs:
                other.iter_var_attrs[self.copies[loop]] = attrs.pop(loop)
            if loop not in root_axes(self.stage.op):
                self.stage.retired[loop] = f"{loop.name} became the loop {self.copies[loop].name} of {other.name} by " \
                                           "reverse_compute_at"
        for guest in self.stage.guests():
            if guest.attach_ivar is not None and find(self.outer, guest.attach_ivar) is not None:
                guest.attach_stage, guest.attach_ivar = other, self.copies[guest.attach_ivar]
        self._keep_inner()
        stage = self.stage
        stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.SCOPE, other, self.copies[self.outer[-1]]

    def _give(self, other: StageState) -> None:
        """The relations that end in outer loops, over the axes of `other`; its loops."""
        leaves = list(other.leaf_iter_vars)
        for relation in self.stage.relations:
            if not any(child in self.moved for child in children_of(relation)):
                continue
            made = self._copied(relation, other)
            other.relations.append(made)
            other.all_iter_vars += children_of(made)
            parents = parents_of(made)
            at = find(leaves, parents[0]) if parents else 0
            assert at is not None, f"{parents[0].name} was a loop of {self.stage.name} when that was related too"
            leaves[at:at + len(parents[:1])] = children_of(made)
            leaves = [loop for loop in leaves if find(parents[1:], loop) is None]
        first = [self.copies[loop] for loop in self.outer]
        other.leaf_iter_vars = first + [loop for loop in leaves if find(first, loop) is None]

    def _copied(self, relation: Relation, other: StageState) -> Relation:
        """`relation` between copies; each is named after the axis of `other` that it comes from."""
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
            case Singleton(iter=one):
                self.copies[one] = one.replace(var=Var(one.name, one.dtype))
                return Singleton(self.copies[one])
        raise AssertionError("only lowering makes other relations")

    def _keep_inner(self) -> None:
        """`stage` keeps what ends in inner loops; of an axis that is fixed there is one iteration."""
        stage = self.stage
        extents = extents_down(stage.relations, root_extents(stage))
        kept: list[Relation] = []
        for relation in stage.relations:
            if all(child in self.fixed for child in children_of(relation)):
                continue
            if isinstance(relation, Split) and relation.outer in self.fixed:
                kept.append(RebaseRelation(relation.parent, relation.inner))
            elif isinstance(relation, Split) and relation.outer in self.moved and relation.nparts is not None:
                size = ceil_div(extents[relation.parent], relation.nparts)  # of the whole: the place has fewer parts
                kept.append(replace(relation, factor=size, nparts=None))
            else:
                kept.append(relation)
        stage.relations = kept
        stage.all_iter_vars = [*root_axes(stage.op), *(child for relation in kept for child in children_of(relation))]
        single = [axis for axis in root_axes(stage.op) if axis in self.fixed]
        stage.leaf_iter_vars = single + stage.leaf_iter_vars[self.place + 1:]
        stage.iter_var_attrs = {loop: attr for loop, attr in stage.iter_var_attrs.items() if _is_used(attr)}


def _is_used(attr: IterVarAttr) -> bool:
    return attr != IterVarAttr()


def _ends(stage: StageState) -> dict[IterVar, list[IterVar]]:
    """The loops in which each iteration variable ends."""
    ends: dict[IterVar, list[IterVar]] = {loop: [loop] for loop in stage.leaf_iter_vars}
    for relation in reversed(stage.relations):
        found = [leaf for child in children_of(relation) for leaf in ends[child]]
        for parent in parents_of(relation):
            ends[parent] = found
    return ends
