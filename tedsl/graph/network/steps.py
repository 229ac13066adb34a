"""Steps: the function of a kernel, and what it is called with. What it prepares of its constants is computed here, once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tedsl.graph.network.kernels import ExternalSource, KernelSource, KernelUse
from tedsl.graph.value import Value
from tedsl.record import record
from tedsl.runtime.array import aligned, numpy_dtype
from tedsl.runtime.module import Module
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.runtime.signature import TensorParam

Prepared = dict[tuple[KernelSource, int, tuple[Value, ...]], Any]  # arrays by kernel, number and constants


@record(eq=False)
class Step:
    """A call: the kernel, its function, and for each argument a value or an array that was prepared."""

    use: KernelUse
    function: Callable[..., Any]
    operands: tuple[Any, ...]

    def writes(self, operand: Any) -> bool:
        """Whether an operand is a result."""
        return any(operand is value for value in self.use.writes)


def step_of(use: KernelUse, source: KernelSource, module: RuntimeModule, prepared: Prepared) -> Step:
    """The step of a kernel with the arrays that it prepares, of which `prepared` keeps one for equal constants.

    source: that of `module`, which may be one for any extents.
    """
    if isinstance(source, ExternalSource) or not isinstance(module, Module):
        return Step(use, module.get_function(source.name), (*use.reads, *use.writes))
    entry, *before = module.function_names
    if not before:
        return Step(use, module.entry_func, (*use.reads, *use.writes))
    params = module.signature(entry).params
    kept = params[:len(params) - len(before) - len(use.writes)]
    arrays = [_prepared(use, source, module, at, prepared) for at in range(len(before))]
    return Step(use, module.entry_func, (*_operands(use, kept), *use.writes, *arrays))


def _prepared(use: KernelUse, source: KernelSource, module: Module, number: int, prepared: Prepared) -> Any:
    function = module.function_names[1 + number]
    *reads, _ = module.signature(function).params
    constants = _operands(use, reads)
    key = source, number, constants
    if key not in prepared:
        prepared[key] = aligned(*prepared_form(module, number))
        module[function](*[value.data for value in constants], prepared[key])
    return prepared[key]


def prepared_form(module: RuntimeModule, number: int) -> tuple[tuple[int, ...], Any]:
    """The shape and the dtype of what function `number` of those that prepare constants writes."""
    assert isinstance(module, Module)
    target = module.signature(module.function_names[1 + number]).params[-1]
    assert isinstance(target, TensorParam)
    return tuple(map(int, target.shape)), numpy_dtype(target.dtype)


def _operands(use: KernelUse, params: Any) -> tuple[Value, ...]:
    """The values for parameters that are called p0, p1, ... as the inputs of the kernel."""
    return tuple([use.reads[int(param.name.removeprefix("p"))] for param in params])


def prepared_bytes(prepared: Prepared) -> int:
    """The size of all prepared arrays."""
    return sum(math.prod(array.shape) * array.itemsize for array in prepared.values())
