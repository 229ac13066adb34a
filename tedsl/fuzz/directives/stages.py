"""Directives that create stages: cache_read, reindex_cache_read, cache_write, rfactor, pad_sum."""

from __future__ import annotations

from tedsl.fuzz.directives.sites import SCOPES, operation, replaceable
from tedsl.fuzz.scheduler import Scheduler
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import ComputeOp
from tedsl.lang.reads import is_ragged, loads_of
from tedsl.lang.tensor import Tensor
from tedsl.schedule.relations import touched_by
from tedsl.schedule.state import AttachType, StageState

# Dtypes that hold every value of others.
_WIDER = {"float16": "float32", "bfloat16": "float32", "float32": "float64", "int8": "int32", "uint8": "float32",
          "int32": "int64"}


def cache_read(s: Scheduler) -> str | None:
    """Create a copy of an input or a stage for some of its readers."""
    choices = []
    for name in [*s.inputs, *s.tensors]:
        stage = s.state(name)
        readers = [n for n in s.tensors if stage.op.output(s.number_of(name)) in s.state(n).op.input_tensors]
        if readers and stage.attach_type != AttachType.INLINE:
            choices.append((name, readers))
    if not choices:
        return None
    name, readers = s.draw.choice(choices)
    some = s.draw.sample(readers, s.draw.between(1, len(readers)))
    wide = _WIDER.get(s.state(name).op.output(s.number_of(name)).dtype) if s.draw.chance(25) else None
    dtype = "" if wide is None else f", {wide!r}"
    return f"{s.fresh('c')} = s.cache_read({name}, '{s.draw.choice(SCOPES)}', [{', '.join(some)}]{dtype})"


def reindex_cache_read(s: Scheduler) -> str | None:
    """Create a copy, by its own axes, of what a stage reads of an input or another stage."""
    choices = []
    for name in [*s.inputs, *s.tensors]:
        stage = s.state(name)
        tensor = stage.op.output(s.number_of(name))
        readers = [n for n in s.tensors if _reads_one_place(s.state(n), tensor)]
        if readers and stage.attach_type != AttachType.INLINE:
            choices.append((name, readers))
    if not choices:
        return None
    name, readers = s.draw.choice(choices)
    return f"{s.fresh('c')} = s.reindex_cache_read({name}, '{s.draw.choice(SCOPES)}', {s.draw.choice(readers)})"


def _reads_one_place(reader: StageState, tensor: Tensor) -> bool:
    if type(reader.op) is not ComputeOp or is_ragged(reader.op):
        return False
    loads = [load for load in loads_of(reader.op.body) if load.producer == tensor]
    return len({tuple(map(repr, load.indices)) for load in loads}) == 1


def cache_write(s: Scheduler) -> str | None:
    def fits(stage: StageState) -> bool:
        split = any(leaf.is_reduction and leaf not in operation(stage).reduce_axis for leaf in stage.leaf_iter_vars)
        return replaceable(stage) and not split

    name = s.pick_stage(fits)
    if name is None:
        return None
    cache, scope, group = s.fresh("c"), s.draw.choice(SCOPES), s.group_of(name)
    if len(group) > 1:
        return f"{cache}, {cache}_1 = s.cache_write([{', '.join(group)}], '{scope}')"
    return f"{cache} = s.cache_write({name}, '{scope}')"


def rfactor(s: Scheduler) -> str | None:
    """Reduce in two steps; now and then with one place for equal partial results, where windows overlap along an axis."""
    name = s.pick_stage(lambda stage: bool(_factorable(stage)))
    if name is None:
        return None
    stage, factored = s.state(name), s.fresh("f")
    at, place = s.draw.choice(_factorable(stage)), s.draw.between(0, len(operation(stage).axis))
    tail = f", {factored}_1" if len(s.group_of(name)) > 1 else ""
    windows = _windows(stage, at)
    where = f"along=s[{name}].op.axis[{windows[0]}]" if windows and place != len(operation(stage).axis) else str(place)
    return f"{factored}{tail} = s.rfactor({name}, loop({name}, {at}), {where})"


def pad_sum(s: Scheduler) -> str | None:
    """Sum over more terms; many sums are refused, for what they read is no whole dimension."""
    name = s.pick_stage(lambda stage: bool(_factorable(stage)) and len(operation(stage).input_tensors) > 0)
    if name is None or len(s.group_of(name)) > 1:
        return None
    at = s.draw.between(0, len(operation(s.state(name)).reduce_axis) - 1)
    return f"s.pad_sum({name}, s[{name}].op.reduce_axis[{at}], {s.draw.choice((2, 3, 4, 8))})"


def _windows(stage: StageState, at: int) -> list[int]:
    """The axes that stand beside the reduction of the loop number `at` in an index."""
    op, loop = operation(stage), stage.leaf_iter_vars[at]
    over = {axis.var for axis in op.reduce_axis if axis is loop or loop in touched_by([axis], stage.relations)}
    together = [set(variables(index)) for load in loads_of(op.body) for index in load.indices]
    return [number for number, axis in enumerate(op.axis) if any(axis.var in used and used & over for used in together)]


def _factorable(stage: StageState) -> list[int]:
    reduction = operation(stage).reduction if replaceable(stage) else None
    if reduction is None:
        return []
    return [at for at, leaf in enumerate(stage.leaf_iter_vars) if leaf.is_reduction]
