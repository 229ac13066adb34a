"""nontemporal: the stores of an output bypass the cache."""

from __future__ import annotations

from tedsl.schedule.state import StageState


def nontemporal(stage: StageState) -> None:
    """Write an output stage with non-temporal stores, past the cache: for large results that are not read soon."""
    directive = "nontemporal()"
    stage.must_have_loops(directive)
    if not stage.is_output:
        outputs = ", ".join(op.name for op in stage.schedule.outputs)
        raise stage.refuse(directive, f"{stage.name} is not an output: its readers want its values in the cache",
                           hint=f"use it on a stage given to create_schedule: {outputs}")
    stage.nontemporal = True
