"""set_scope: the memory in which a stage is kept."""

from __future__ import annotations

from typing import Any

from tedsl.ir.types import MEMORY_SCOPES, is_scope
from tedsl.schedule.primitives.storage.owned import copied_from
from tedsl.schedule.state import StageState, describe, show


def set_scope(stage: StageState, scope: Any) -> None:
    """Keep the values of `stage` in memory of `scope`: "global", "shared", "local", ..., also with a suffix ("local.L1")."""
    directive = f"set_scope({show(scope)})"
    stage.must_have_loops(directive)
    check_scope(stage, directive, scope)
    if stage.is_output and scope not in ("", "global"):
        raise stage.refuse(directive, f"{stage.name} is an output: the caller's memory is global",
                           hint=f"{copied_from(stage, scope, f'in {scope} memory')}, and a copy is the output")
    stage.scope = scope


def check_scope(stage: StageState, directive: str, scope: Any) -> None:
    """Refuses a value that is not the name of a memory scope."""
    if not isinstance(scope, str):
        raise stage.refuse(directive, f"the scope is a string, got {describe(scope)}", hint='for example "local"')
    if not is_scope(scope):
        raise stage.refuse(directive, f"there is no memory scope {scope!r}", hint=f"choose one of {', '.join(MEMORY_SCOPES)}")
