"""double_buffer: a stage has two copies; one is filled for the next iteration while the other is read."""

from __future__ import annotations

from dataclasses import replace

from tedsl.schedule.primitives.storage.owned import must_own_memory
from tedsl.schedule.state import StageState
from tedsl.schedule.tails import must_have_one_version


def double_buffer(stage: StageState) -> None:
    """Keep two copies of `stage`, which is computed at a loop: one is filled for the next iteration, the other is read.

        for i: P = f(i); use(P)   →   P[0] = f(0);  for i: P[(i + 1) % 2] = f(i + 1) if i + 1 < n; use(P[i % 2])
    """
    directive = "double_buffer()"
    must_own_memory(stage, directive, "double-buffered")
    must_have_one_version(stage, directive)
    if stage.storage.rolling:
        raise stage.refuse(directive, f"{stage.name} is in a rolling buffer, which keeps what the next iteration needs already",
                           hint="use one of the two")
    stage.storage = replace(stage.storage, double_buffer=True)
