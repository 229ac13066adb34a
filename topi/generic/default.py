"""The default schedule, for operators without a specific one."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.schedule import as_target, schedule_with
from topi.schedules.table import rules_for


def default_schedule(outs: Any, auto_inline: bool = False) -> te.Schedule:
    """Plain loops; auto_inline: every formula that is not a reduction is inlined first, as TVM does."""
    if not auto_inline:
        return schedule_extern(outs)
    s = te.create_schedule([out.op for out in (outs if isinstance(outs, (list, tuple)) else [outs])])
    te.schedule.AutoInlineInjective(s)
    return s


def schedule_extern(outs: Any) -> te.Schedule:
    """Plain loops for `outs`, whatever made them; inside of `with` a device its threads, by the table of schedules."""
    target = as_target(None)
    return schedule_with(outs, rules_for(target) if target.is_device else {}, target)
