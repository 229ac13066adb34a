"""Uneven splits with another tail than a guard (`schedule/tails.py` defines the tails)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import BufferLoad, Expr, ProducerLoad, Var
from tedsl.ir.func import RECOMPUTED
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.tensor import Tensor
from tedsl.lower.compute import BufferOf, Translator
from tedsl.lower.plan import Guard, Placement, StagePlan
from tedsl.schedule.causes import Cause, related
from tedsl.schedule.domains import Tiling
from tedsl.schedule.relations import MASK, PARTITION, ROUND_UP, SHIFT_INWARDS, Fuse, Rebase, Relation, Split, touched_by
from tedsl.schedule.state import AttachType, StageState
from tedsl.schedule.tails import below

if TYPE_CHECKING:
    from tedsl.lower.arguments import Arguments



def padded_extents(plan: Placement, tiling: Tiling) -> dict[IterVar, Expr]:
    """The axes that splits with round_up extend to full tiles, each with its extent then."""
    padded: dict[IterVar, Expr] = {}
    extents = tiling.extents
    for relation in reversed(plan.stage.relations):
        match relation:
            case Split(parent=p, outer=o, inner=i, tail=tail):
                _refuse_padding(plan, tiling, padded, i)
                count = padded.pop(o, None)
                if tail == ROUND_UP and p not in tiling.even:
                    padded[p] = build.product_of_extents(extents[o] if count is None else count, extents[i])
                elif count is not None and p in tiling.even:
                    padded[p] = build.product_of_extents(count, extents[i])
            case Fuse(fused=f):
                _refuse_padding(plan, tiling, padded, f)
            case Rebase(parent=p, rebased=r) if r in padded:
                padded[p] = padded.pop(r)
    for loop in set(padded) - set(plan.data_axes):
        _refuse_padding(plan, tiling, padded, loop)
    return padded


def _refuse_padding(plan: Placement, tiling: Tiling, padded: Mapping[IterVar, Expr], loop: IterVar) -> None:
    if loop in padded:
        raise LoweringError(f'{plan.name} is split with tail="round_up" at {loop.name}, which has '
                            f"{shown(tiling.extents[loop])} iterations here: the factor does not divide that, and the memory "
                            "beyond holds other elements",
                            hint='use tail="guard", or split the axis itself', about=_split_with(plan, ROUND_UP))


def _split_with(plan: Placement, tail: str) -> Cause | None:
    """The directive of the first split of `plan` with this `tail`, to be named in an error; None if there is none."""
    splits = [relation for relation in plan.stage.relations if isinstance(relation, Split) and relation.tail == tail]
    return related(plan.stage, splits[0]) if splits else None


def check_tails(plans: Iterable[StagePlan], arguments: Arguments) -> dict[str, Any]:
    """Refuses arguments that full tiles would overrun, or that are read after they were recomputed, and threads that would
    recompute what others write; returns attributes of the function.
    """
    noted: dict[str, Any] = {}
    for plan in plans:
        for split in shifted_splits(plan):
            _check_threads(plan.stage, split)
        outputs = [arguments.tensors[plan.op, i] for i in range(plan.op.num_outputs) if (plan.op, i) in arguments.tensors]
        if outputs and plan.padded:
            axis = next(iter(plan.padded))
            raise LoweringError(f'{plan.name} is an argument, and its axis {axis.name} is split with tail="round_up": memory '
                                "of the caller cannot be enlarged",
                                hint=f'use tail="guard", or drop {plan.name} from the arguments',
                                about=_split_with(plan, ROUND_UP))
        if not outputs or not shifted_splits(plan):
            continue
        stages = plan.stage.schedule.stage_map
        read = {arguments.tensors[key].data for r in plan.reads
                if (key := (stages[r.tensor.op].op, r.tensor.value_index)) in arguments.tensors}
        if any(buffer.data in read for buffer in outputs):
            raise LoweringError(f'{plan.name} is computed in place, and split with tail="shift_inwards": elements that are '
                                "computed twice would read results instead of inputs", hint='use tail="guard"',
                                about=_split_with(plan, SHIFT_INWARDS))
        noted[RECOMPUTED] = plan.name
    return noted


def _check_threads(stage: StageState, split: Split) -> None:
    """Refuses a parallel loop over the elements of tiles that has the loop over tiles inside: two threads write what tiles
    share.
    """
    tiles, elements = below(split.outer, stage.relations), below(split.inner, stage.relations)
    loops = list(stage.leaf_iter_vars)
    for at, loop in enumerate(loops):
        inside = [one for one in loops[at + 1:] if one in tiles]
        if inside and loop in elements and stage.attr_of(loop).iter_type == IterType.PARALLELIZED:
            raise LoweringError(
                f"the threads of {loop.name} share out the elements of tiles, and each goes through all tiles of "
                f"{split.parent.name} ({inside[0].name}), the last of which is moved inwards "
                f'(tail="{SHIFT_INWARDS}"): two threads would write the same elements of {stage.name}',
                hint=f'split {split.parent.name} with tail="guard", or reorder {inside[0].name} outside of {loop.name}',
                about=related(stage, split))


def tail_of(relations: Sequence[Relation], tiling: Tiling, leaf: IterVar) -> str:
    """What the passes are told about the end of a loop: "mask" or "partition" if it iterates over the tiles of a split with
    that tail, else "".
    """
    for relation in relations:
        if isinstance(relation, Split) and relation.tail in (MASK, PARTITION) and relation.parent not in tiling.even \
                and leaf in below(relation.outer, relations):
            return relation.tail
    return ""


def is_masked(plan: StagePlan, guarded: IterVar) -> bool:
    """Whether the guard that compares `guarded` is to become a mask."""
    splits = [r for r in plan.stage.relations if isinstance(r, Split) and r.tail == MASK and r.parent not in plan.tiling.even]
    return bool(splits) and any(r.parent in touched_by([guarded], plan.stage.relations) for r in splits)


def shifted_splits(plan: StagePlan) -> list[Split]:
    """The splits of `plan` whose last tile is moved inwards."""
    return [relation for relation in plan.stage.relations if isinstance(relation, Split) and plan.tiling.shifts(relation)]


def short_tiles(plan: StagePlan, offsets: Mapping[IterVar, Expr], analyzer: Analyzer) -> dict[Split, Expr]:
    """For each split whose last tile is moved inwards, the condition that keeps the tile inside an extent that may be smaller
    than one tile.
    """
    return {split: build.less(offsets[split.inner], plan.extents[split.parent]) for split in shifted_splits(plan)
            if split.inner in offsets
            and not analyzer.can_prove(build.less_equal(plan.extents[split.inner], plan.extents[split.parent]))}


class PaddedTranslator(Translator):
    """Translates formulas in padded loops: iterations beyond the end of an axis read 0 where they would leave a tensor."""

    def __init__(self, plan: StagePlan, values: Mapping[Var, Expr], buffer_of: BufferOf, offsets: Mapping[IterVar, Expr],
                 inside_tensor: Callable[[IterVar, Expr], list[Expr]], analyzer: Analyzer,
                 note: Callable[[Guard], None]) -> None:
        super().__init__(values, buffer_of)
        self.plan, self.offsets, self.inside_tensor, self.analyzer, self.note = plan, offsets, inside_tensor, analyzer, note
        self.conditions: dict[IterVar, list[Expr]] = {}

    def rewrite(self, node: Any) -> Any:
        load = super().rewrite(node)
        if type(node) is not ProducerLoad:
            return load
        needed = [condition for axis in self.plan.padded if axis in self.offsets and self.leaves(node.producer, load, axis)
                  for condition in self.exists(axis)]
        return build.if_then_else(reduce(build.logical_and, needed), load, build.const(0, load.dtype)) if needed else load

    def leaves(self, tensor: Tensor, load: BufferLoad, axis: IterVar) -> bool:
        """Whether `load` depends on `axis` and is not proved to stay inside of `tensor` when the axis runs too far."""
        moving = set(variables(self.offsets[axis]))
        moved = [at for at, index in enumerate(load.indices) if moving & set(variables(index))]
        if not moved:
            return False
        if self.plan.stage.schedule.stage_map[tensor.op].attach_type == AttachType.SCOPE:
            return True
        return not all(self.is_inside(load.indices[at], tensor.shape[at]) for at in moved)

    def is_inside(self, index: Expr, extent: Expr) -> bool:
        if any(isinstance(node, BufferLoad) for node in post_order(index)):
            return False
        return self.analyzer.can_prove(build.greater_equal(index, build.const(0, index.dtype))) \
            and self.analyzer.can_prove(build.less(index, extent))

    def exists(self, axis: IterVar) -> list[Expr]:
        """The conditions under which the iteration of `axis` exists."""
        if axis not in self.conditions:
            extent = self.plan.extents[axis]
            self.conditions[axis] = [build.less(self.offsets[axis], extent), *self.inside_tensor(axis, self.values[axis.var])]
            if self.offsets is self.plan.offsets:  # the statements themselves: for explanations
                for condition in self.conditions[axis]:
                    self.note(Guard(condition, "read", axis))
        return self.conditions[axis]
