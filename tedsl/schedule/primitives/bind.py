"""bind: the iterations of a loop become threads of a device."""

from __future__ import annotations

from typing import Any

from tedsl.ir.iters import IterType, IterVar
from tedsl.schedule.primitives.unroll import check_annotation
from tedsl.schedule.state import StageState, describe, show

VIRTUAL = ("vthread", "cthread")  # any number of loops may be virtual threads


def bind(stage: StageState, loop: Any, thread: Any) -> None:
    """Record that `loop` is run by the thread axis `thread`; which targets accept it is decided by lowering."""
    directive = f"bind({show(loop)}, {show(thread)})"
    check_annotation(stage, loop, directive)
    if not isinstance(thread, IterVar) or thread.iter_type != IterType.THREAD_INDEX:
        what = f"the axis {thread.name}" if isinstance(thread, IterVar) else describe(thread)
        raise stage.refuse(directive, f"the second argument is a thread axis, got {what}",
                           hint='make one with te.thread_axis("threadIdx.x")')
    bound = {one: stage.attr_of(one).bind_thread for one in stage.leaf_iter_vars}
    taken = [one.name for one, b in bound.items() if b is not None and b.thread_tag == thread.thread_tag
             and not thread.thread_tag.startswith(VIRTUAL)]
    if taken:
        raise stage.refuse(directive, f"{taken[0]} is already bound to {thread.thread_tag}", hint="bind each thread axis once")
    stage.set_attr(loop, bind_thread=thread)
