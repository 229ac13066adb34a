"""bind: the iterations of a loop become threads of a device."""

from __future__ import annotations

from typing import Any

from tedsl.ir.iters import IterType, IterVar
from tedsl.schedule.primitives.marks import mark_bound, must_be_markable
from tedsl.schedule.scan.checks import must_not_be_steps
from tedsl.schedule.script_loops import check_independent
from tedsl.schedule.state import StageState, describe, show
from tedsl.schedule.tails import must_have_one_version, must_not_recompute
from tedsl.schedule.thread_ranks import LAUNCHED, is_thread_tag, is_virtual
from tedsl.schedule.vector_guests import must_not_share_lanes


def bind(stage: StageState, loop: Any, thread: Any) -> None:
    """Run the iterations of `loop` as threads of the axis `thread`. A CPU runs them as loops.

        for i in 0..n: body(i)   →   launch n threads of threadIdx.x: body(threadIdx.x)

    A reduction loop may be bound to threadIdx: the partial results are then combined across the threads.
    Bound to blockIdx it can be shown by `lower`; `build` refuses it (`tedsl/lower/threads/launches.py`).
    """
    directive = f"bind({show(loop)}, {show(thread)})"
    must_be_markable(stage, loop, directive, bound=False)
    check_thread(stage, thread, directive, "the second argument is a thread axis")
    tag = thread.thread_tag
    if loop.is_reduction and is_virtual(tag):
        raise stage.refuse(directive, f"{loop.name} is a reduction loop: all its iterations write one element, and {tag} "
                           "would race", hint=f"bind a loop over elements, or bind {loop.name} to threadIdx.x: threads of "
                           f"one block can combine their results; s.rfactor({stage.tensor_written}, ...) makes it a loop over "
                           "elements")
    taken = [one.name for one in stage.leaf_iter_vars if (bound := stage.attr_of(one).bind_thread) is not None
             and bound.thread_tag == tag and not is_virtual(tag)]
    if taken:
        raise stage.refuse(directive, f"{taken[0]} is already bound to {tag}",
                           hint=f"bind each thread axis once: fuse {taken[0]} and {loop.name} first, or take another axis")
    must_not_be_steps(stage, loop, directive)
    check_independent(stage, [loop], directive)
    must_have_one_version(stage, directive)
    must_not_recompute(stage, loop, directive)
    must_not_share_lanes(stage, loop, directive, "bound to threads")
    mark_bound(stage, loop, thread, directive)


def check_thread(stage: StageState, thread: Any, directive: str, wanted: str) -> None:
    """Refuses a value that is not a thread axis with a known tag."""
    if not isinstance(thread, IterVar) or thread.iter_type != IterType.THREAD_INDEX:
        what = f"the axis {thread.name}" if isinstance(thread, IterVar) else describe(thread)
        raise stage.refuse(directive, f"{wanted}, got {what}", hint='make one with te.thread_axis("threadIdx.x")')
    if not is_thread_tag(thread.thread_tag):
        raise stage.refuse(directive, f"there are no threads {thread.thread_tag!r}",
                           hint=f"the tag is one of {', '.join(LAUNCHED)}, vthread, cthread")
