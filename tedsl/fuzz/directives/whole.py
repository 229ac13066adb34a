"""Directives on several stages, and on the schedule as a whole."""

from __future__ import annotations

from tedsl.fuzz.directives.places import compute_at, places_of
from tedsl.fuzz.directives.sites import Found
from tedsl.fuzz.scheduler import Scheduler
from tedsl.schedule.group import followers
from tedsl.schedule.state import StageState


def create_group(s: Scheduler) -> str | None:
    """Create a group of the stages from one tensor to another that uses it; most groups have one or two stages."""
    ways = [(a, b) for a in [*s.inputs, *s.tensors] for b in s.tensors if a != b and _reads(s, b, a)]
    if not ways:
        return None
    first, last = s.draw.choice(ways)
    more = ", include_inputs=True" if s.draw.chance(40) and first in s.tensors else ""
    return f"s.create_group([{last}], [{first}]{more})"


def _reads(s: Scheduler, reader: str, read: str) -> bool:
    source = s.state(read)
    return any(s.s.state.stage_map.get(tensor.op) is source for tensor in s.state(reader).op.input_tensors)


def group_compute_at(s: Scheduler) -> Found:
    """Move a group to a loop where each of its stages could be computed; create a group of one stage first if there is none."""
    names = {s.state(name): name for name in s.tensors}
    choices = []
    for number, group in enumerate(s.s.state.groups):
        moved = followers(s.s.state, group)
        common = [places_of(stage, names) for stage in moved if not stage.is_output]
        if common and len(common) == len(moved):
            choices += [(number, host, loop) for host, loop in common[0] if host not in moved
                        and all((host, loop) in other for other in common[1:])]
    if not choices:
        return _group_first(s)
    number, host, loop = s.draw.choice(choices)
    return f"s.groups[{number}].compute_at(s[{names[host]}], loop({names[host]}, {host.leaf_iter_vars.index(loop)}))"


def _group_first(s: Scheduler) -> Found:
    text = compute_at(s)
    if text is None:
        return None
    name = text[2:text.index("]")]
    reads = [tensor for tensor in [*s.inputs, *s.tensors] if _reads(s, name, tensor)]
    if not reads or s.state(name).group is not None:
        return None
    line = f"s.create_group([{name}], [{', '.join(reads)}])"
    return [("create_group", line), ("group_compute_at", "s.groups[-1]" + text[text.index("]") + 1:])]


def auto_inline(s: Scheduler) -> str | None:
    if not any(not stage.is_output and not stage.is_placeholder for stage in _stages(s)):
        return None
    return f"te.schedule.{s.draw.choice(['AutoInlineElemWise', 'AutoInlineBroadcast', 'AutoInlineInjective'])}(s)"


def _stages(s: Scheduler) -> list[StageState]:
    found: list[StageState] = s.s.state.stages
    return found


def undo(s: Scheduler) -> str | None:
    done = len(s.s.journal)
    return f"s.undo({s.draw.between(1, min(done, 3))})" if done > 1 else None


def copy(s: Scheduler) -> str | None:
    return "s = s.copy()"


def replay(s: Scheduler) -> str | None:
    """Replay the journal on a fresh schedule, where tensors created by directives are new objects without a name here."""
    return "s = replayed(s)" if len(s.s.journal) > 1 else None
