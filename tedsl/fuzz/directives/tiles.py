"""Several directives at once, as people write them together: chance alone seldom does."""

from __future__ import annotations

from tedsl.fuzz.directives.sites import Found, operation, replaceable
from tedsl.fuzz.scheduler import Scheduler
from tedsl.schedule.state import AttachType, StageState

LANES = (4, 8, 16, 32)


def register_tile(s: Scheduler) -> Found:
    """Reduce into local memory, a tile of rows and vectors at a time, and store the tile: a matrix product in registers."""
    name = s.pick_stage(_has_its_first_loops)
    if name is None:
        return None
    op, sums, group = operation(s.state(name)), s.fresh("c"), s.group_of(name)
    axes, terms, last = len(op.axis), len(op.reduce_axis), len(op.axis) - 1
    several = len(group) > 1
    lines = [("register_tile", f"{sums}, {sums}_1 = s.cache_write([{', '.join(group)}], 'local')" if several
              else f"{sums} = s.cache_write({name}, 'local')"),
             ("split_factor", f"s[{name}].split(loop({name}, {last}), factor={s.draw.choice(LANES)})")]
    if axes > 1:  # ..., rows, columns, rows of the tile, lanes
        lines += [("split_factor", f"s[{name}].split(loop({name}, {last - 1}), factor={s.draw.between(2, 6)})"),
                  ("reorder", f"s[{name}].reorder(loop({name}, {last + 1}), loop({name}, {last}))"),
                  ("unroll", f"s[{name}].unroll(loop({name}, {last + 1}))")]
    order = [*range(axes, axes + terms), *range(axes)]
    lines += [("vectorize", f"s[{name}].vectorize(loop({name}, {last + (2 if axes > 1 else 1)}))"),
              ("compute_at", f"s[{sums}].compute_at(s[{name}], loop({name}, {last}))"),
              ("reorder", f"s[{sums}].reorder({', '.join(f'loop({sums}, {at})' for at in order)})"),
              ("vectorize", f"s[{sums}].vectorize(loop({sums}, {terms + last}))")]
    if axes > 1:
        lines.append(("unroll", f"s[{sums}].unroll(loop({sums}, {terms + last - 1}))"))
    return lines


def _has_its_first_loops(stage: StageState) -> bool:
    """Whether the loops of a reduction of a tensor with elements are still its axes."""
    op = operation(stage)
    return op.reduction is not None and bool(op.axis) and replaceable(stage) and not stage.relations \
        and stage.attach_type == AttachType.ROOT and list(stage.leaf_iter_vars) == [*op.axis, *op.reduce_axis]
