"""Directives that bind loops to threads."""

from __future__ import annotations

from tedsl.fuzz.directives.sites import Found, constant_extents, free_loops, tags_around, tags_of
from tedsl.fuzz.scheduler import Scheduler
from tedsl.schedule.state import StageState

TAGS = ("threadIdx.x", "blockIdx.x", "threadIdx.y", "blockIdx.y")
VIRTUAL = ("vthread", "vthread", "cthread")


def bind(s: Scheduler) -> str | None:
    """Bind a data-parallel loop to a thread axis, mostly one unused around the stage, or a reduction loop to threadIdx."""
    elements = s.draw.chance(80)
    place = s.pick(lambda stage: free_loops(stage, elements=elements), first=50)
    if place is None:
        return None
    name, at = place
    stage = s.state(name)
    used = tags_of(stage) if s.draw.chance(25) else tags_around(stage)  # again, as loads into shared memory do
    threads = [tag for tag in TAGS if tag not in used
               and (tag.startswith("threadIdx") or not stage.leaf_iter_vars[at].is_reduction)]
    return f"s[{name}].bind(loop({name}, {at}), te.thread_axis('{s.draw.choice(threads)}'))" if threads else None


def bind_vthread(s: Scheduler) -> str | None:
    def short(stage: StageState) -> list[int]:
        sizes = constant_extents(stage)
        return [at for at in free_loops(stage, elements=True) if sizes.get(stage.leaf_iter_vars[at], 99) <= 4]

    place, tag = s.pick(short, first=50), s.draw.choice(VIRTUAL)
    return None if place is None else f"s[{place[0]}].bind(loop({place[0]}, {place[1]}), te.thread_axis('{tag}'))"


def env_threads(s: Scheduler) -> str | None:
    """Launch threads, mostly one, around a stage, all of which compute the same."""
    name = s.pick_stage(lambda stage: not stage.env_threads and "threadIdx.x" not in tags_around(stage))
    if name is None:
        return None
    tag = s.draw.choice(("threadIdx.x", "threadIdx.x", "threadIdx.x", "vthread", "cthread"))
    return f"s[{name}].env_threads([te.thread_axis((0, {s.draw.choice([1, 4, 3])}), '{tag}')])"


def set_store_predicate(s: Scheduler) -> Found:
    """Set a predicate on a stage bound to a thread axis (one is bound first if needed) that holds for every thread or for the
    first only. That is legal if all threads have the same sum, and must be refused if each has elements of its own.
    """
    def bound(stage: StageState) -> list[int]:
        return [at for at, leaf in enumerate(stage.leaf_iter_vars) if (axis := stage.attr_of(leaf).bind_thread) is not None
                and axis not in stage.env_threads]

    place, first = s.pick(bound), None
    if place is None:
        place = s.pick(lambda stage: free_loops(stage) if not tags_around(stage) else [], last=60)
        if place is None:
            return None
        first = f"s[{place[0]}].bind(loop({place[0]}, {place[1]}), te.thread_axis('threadIdx.x'))"
    name, at = place
    first_only = s.state(name).leaf_iter_vars[at].is_reduction or s.draw.chance(10)
    condition = ".equal(0)" if first_only else " >= 0"
    text = f"s[{name}].set_store_predicate(s[{name}].iter_var_attrs[loop({name}, {at})].bind_thread.var{condition})"
    return text if first is None else [("bind", first), ("set_store_predicate", text)]
