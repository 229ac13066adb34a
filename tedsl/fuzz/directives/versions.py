"""Directives that move consumers to loops of their producers, and that specialize loops."""

from __future__ import annotations

import re

from tedsl.fuzz.directives.sites import Found, free_loops, operation, plain_loops
from tedsl.fuzz.scheduler import Scheduler
from tedsl.schedule.attach import real_consumers
from tedsl.schedule.primitives.reductions.decompose_reduction import first_reduction
from tedsl.schedule.state import AttachType, StageState


def reverse_compute_at(s: Scheduler) -> Found:
    """Move a stage whose loops are unchanged to a loop of a stage that only it reads."""
    names = {s.state(name): name for name in s.tensors}
    readers = real_consumers(s.s.state)
    pairs = [(producer, readers[producer][0]) for producer in names
             if producer.attach_type == AttachType.ROOT and not producer.is_output and len(readers[producer]) == 1
             and readers[producer][0] in names and producer.leaf_iter_vars and first_reduction(producer.leaf_iter_vars) != 0]
    pairs = [(p, c) for p, c in pairs if not c.relations and not c.iter_var_attrs and c.attach_type == AttachType.ROOT]
    for _ in range(3 if pairs else 0):
        producer, consumer = s.draw.choice(pairs)
        end = first_reduction(producer.leaf_iter_vars)
        at = s.draw.choice(list(range(len(producer.leaf_iter_vars)))[:end])
        text = f"s[{names[consumer]}].reverse_compute_at(s[{names[producer]}], loop({names[producer]}, {at}))"
        if s.accepts(text):
            return text
    return None


def specialize(s: Scheduler) -> Found:
    """Specialize for sizes divisible by a factor, equal to a value, or large enough; rarely with a constant condition."""
    name = s.pick_stage(lambda stage: stage.attach_type != AttachType.INLINE and len(stage.versions) < 2)
    return None if name is None else _specialized(s, name)


def _specialized(s: Scheduler, name: str) -> str | None:
    shapes = " ".join(line for line in s.case.lines if " = te.placeholder(" in line and line.split(" = ")[0] in s.inputs)
    sizes = [size for size in s.case.sizes if re.search(rf"\b{size}\b", shapes)]  # those that a call knows
    size = s.draw.choice(sizes) if sizes else "True"
    form = s.draw.choice(["{} % {} == 0", "{} == {}", "{} >= {}", "{} < {}"]) if sizes else "{}"
    text = f"s[{name}].specialize({form.format(size, s.draw.choice([2, 3, 4, 8]))})"
    return text if s.accepts(text) else None


def on_version(s: Scheduler) -> Found:
    """Apply a directive to the loops of a version."""
    name = s.pick_stage(lambda stage: bool(stage.versions))
    if name is None:
        return _new_version(s)
    number = s.draw.between(0, len(s.state(name).versions) - 1)
    version: StageState = s.state(name).versions[number]
    this = f"s[{name}].versions[{number}]"
    kind = s.draw.choice(["split", "split", "vectorize", "unroll", "parallel", "reorder", "fuse", "decompose_reduction"])
    loops = plain_loops(version) if kind in ("split", "fuse") else \
        free_loops(version, elements=kind == "parallel")
    if not loops:
        return None
    loop = f"{this}.leaf_iter_vars[{s.draw.choice(loops)}]"
    more = f"{this}.leaf_iter_vars[{s.draw.which(len(version.leaf_iter_vars))}]"
    if kind == "split":
        tails = ["guard", "guard", "mask", "partition", *(["shift_inwards"] if operation(version).reduction is None else [])]
        text = f"{this}.split({loop}, {s.draw.choice([2, 3, 4, 8])}, tail='{s.draw.choice(tails)}')"
    else:
        text = f"{this}.{kind}({loop}{f', {more}' if kind in ('reorder', 'fuse') else ''})"
    return text if s.accepts(text) else None


def _new_version(s: Scheduler) -> Found:
    """Create a version of a stage that has none, and apply a directive to its loops, which are those of the stage now."""
    name = s.pick_stage(lambda stage: stage.attach_type != AttachType.INLINE and bool(plain_loops(stage)))
    first = None if name is None else _specialized(s, name)
    if name is None or first is None:
        return None
    loop = f"s[{name}].versions[0].leaf_iter_vars[{s.draw.choice(plain_loops(s.state(name)))}]"
    return [("specialize", first), ("on_version", f"s[{name}].versions[0].split({loop}, {s.draw.choice([2, 3, 4, 8])})")]
