"""env_threads: threads that are launched around all loops of a stage."""

from __future__ import annotations

from typing import Any

from tedsl.schedule.primitives.bind import check_thread
from tedsl.schedule.script_loops import check_new_loop
from tedsl.schedule.state import StageState, find, show
from tedsl.schedule.tails import must_have_one_version


def env_threads(stage: StageState, threads: Any) -> None:
    """Launch the axes `threads` around all loops of `stage`, so that the stages computed inside run on them.

        for t in 0..T: step(t)   →   launch threadIdx.x: for t in 0..T: step(t)

    Each axis has a range, te.thread_axis((0, 64), "threadIdx.x"); stages inside bind their loops to it.
    """
    given = list(threads) if isinstance(threads, (list, tuple)) else [threads]
    directive = f"env_threads({show(given)})"
    stage.must_have_loops(directive)
    must_have_one_version(stage, directive)
    check_new_loop(stage, "threads around them", directive)
    if stage.env_threads:
        raise stage.refuse(directive, f"{stage.name} has the threads {show(list(stage.env_threads))} around it already",
                           hint="name all axes in one call")
    if not given:
        raise stage.refuse(directive, "no thread axis is given",
                           hint='write env_threads([te.thread_axis((0, 64), "threadIdx.x")])')
    tags = {bound.thread_tag: loop.name for loop in stage.leaf_iter_vars
            if (bound := stage.attr_of(loop).bind_thread) is not None}
    for thread in given:
        check_thread(stage, thread, directive, "threads are thread axes")
        if thread.dom is None:
            raise stage.refuse(directive, f"{thread.name} has no range: outside of all loops, none of them gives it one",
                               hint=f'write te.thread_axis((0, 64), "{thread.thread_tag}")')
        if thread.thread_tag in tags:
            raise stage.refuse(directive, f"{tags[thread.thread_tag]} is {thread.thread_tag} already",
                               hint="each thread axis is launched once")
        tags[thread.thread_tag] = thread.name
    new = tuple([thread for thread in given if find(stage.leaf_iter_vars, thread) is None])
    stage.leaf_iter_vars = (*new, *stage.leaf_iter_vars)
    stage.all_iter_vars += new
    stage.env_threads = new
    for thread in new:
        stage.set_attr(thread, bind_thread=thread)
