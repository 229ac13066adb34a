"""Plans that would stall: found by a run without work, and told with the register that has too few."""

from __future__ import annotations

import math
from dataclasses import replace

from tedsl.actors.machine.clock import simulate
from tedsl.actors.plan.check import check_parts, rates
from tedsl.actors.plan.description import Plan
from tedsl.errors import PlanError


def check_plan(plan: Plan) -> Plan:
    """The plan. Raises PlanError if its parts do not fit each other, or if a run of it would stall."""
    check_parts(plan)
    check_runs(plan)
    return plan


def check_runs(plan: Plan) -> None:
    """Raises PlanError if a run of the plan stalls, with the counts of registers that let it go on.

    Actors are deterministic: whether they stall depends on the counts alone, not on who is faster. A run that has come back to
    its first state twice, every register used, goes on for ever.
    """
    stalled = _stalled(plan)
    if not stalled:
        return
    found = _enough(plan)
    change = ", ".join(f"{name} from {plan.registers[name].count} to {count}" for name, count in found.items())
    raise PlanError(f"plan {plan.name} stalls: {', '.join(stalled)} wait for each other",
                    hint=f"raise the count of {change}" if found else "")


def _batches(plan: Plan) -> int:
    """Batches after which every register was used, and every group of steps was whole, at least twice."""
    groups = math.lcm(*[rate.denominator for rate in rates(plan).values()])
    most = max((register.count for register in plan.registers.values()), default=1)
    return 2 * groups * (1 + most + len(plan.tasks))


def _stalled(plan: Plan) -> tuple[str, ...]:
    return simulate(plan, {}, _batches(plan)).stalled


def _enough(plan: Plan) -> dict[str, int]:
    """New counts of few registers with which the plan runs: those of one register if one suffices."""
    for name, register in plan.registers.items():
        for more in (1, 2, 4, 8, 16):
            if not _stalled(with_counts(plan, {name: register.count + more})):
                least = next(count for count in range(register.count + 1, register.count + more + 1)
                             if not _stalled(with_counts(plan, {name: count})))
                return {name: least}
    for more in (1, 2, 4, 8, 16, 64):
        counts = {name: register.count + more for name, register in plan.registers.items()}
        if not _stalled(with_counts(plan, counts)):
            return _fewer(plan, counts)
    return {}


def _fewer(plan: Plan, counts: dict[str, int]) -> dict[str, int]:
    """Counts of which none can stay as it was."""
    for name in list(counts):
        fewer = {other: count for other, count in counts.items() if other != name}
        if not _stalled(with_counts(plan, fewer)):
            counts = fewer
    return counts


def with_counts(plan: Plan, counts: dict[str, int]) -> Plan:
    """The plan with other counts of some registers, which is not looked at for stalls."""
    registers = [replace(one, count=counts.get(one.name, one.count)) for one in plan.registers.values()]
    return Plan(list(plan.tasks.values()), registers, plan.functions, plan.name)


