"""The order of memory: what follows what, and what is too large for the caches."""

from __future__ import annotations

from typing import Any

import tedsl
from topi.schedules.formulas import Formula, constant, extent_of, product, variables_in
from topi.schedules.kernel import Kernel


def in_order_of(load: Any, groups: list[list[Any]]) -> list[list[Any]]:
    """The groups of axes in the order in which `load` uses them, each in one index; those that it does not use come first."""
    used = [variables_in(index) for index in load.indices]
    places = {next(iter(variables)): at for at, variables in enumerate(used) if len(variables) == 1}
    return sorted(groups, key=lambda group: places.get(group[-1].var, -1))


def largest_load(formula: Formula) -> Any:
    """The load of the tensor with most elements; None if that is not known."""
    sizes = [(load, product(map(constant, load.producer.shape))) for load in formula.loads]
    known = [(load, size) for load, size in sizes if size is not None]
    return max(known, key=lambda pair: pair[1])[0] if known and len(known) == len(sizes) else None


def goes_past_caches(kernel: Kernel, op: Any) -> bool:
    """Whether the result, which is as large as the input, is stored past the caches, if its loops write whole lines."""
    whole = product([extent_of(axis) for axis in op.axis])
    size: int = op.output(0).dtype.bytes
    return kernel.target.architecture == "x86-64" and whole is not None and 2 * whole * size >= kernel.target.machine.large


def turns_past_caches(kernel: Kernel, op: Any) -> bool:
    """Whether the result of a transpose is stored past the caches, if its loops write whole lines: where the last cache is as
    far as memory, it is from where both arrays fill the second cache twice. Scattered stores wait for lines of the last cache,
    and readers get the result as fast from memory.
    """
    return goes_past_caches(kernel, op) or _is_sooner_past(kernel, op)


def store_past_caches(kernel: Kernel, op: Any) -> None:
    """Has the result of a transpose stored past the caches that is not yet so large that all such results are."""
    if not goes_past_caches(kernel, op) and _is_sooner_past(kernel, op):
        kernel.schedule[op.output(0)].nontemporal()


def _is_sooner_past(kernel: Kernel, op: Any) -> bool:
    machine, whole = kernel.target.machine, product([extent_of(axis) for axis in op.axis])
    is_result = kernel.target.architecture == "x86-64" and op.num_outputs == 1 and op in kernel.schedule.outputs
    return is_result and machine.has_far_l3 and whole is not None and whole * op.output(0).dtype.bytes > machine.l2.size


def may_compute_twice() -> bool:
    """Whether tiles may share elements (`split(..., tail="shift_inwards")`): not where arrays of a call may overlap, as if a
    graph writes a result over what it is computed from.
    """
    return bool(tedsl.PassContext.current().config.get("tir.noalias", True))
