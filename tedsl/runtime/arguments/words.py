"""The texts of errors about an argument of a call.

Every value is passed as text: the check in Python formats the numbers, an emitted check names the places from which it prints
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.ir.dtype import DType
from tedsl.ir.expr import Var
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import uses
from tedsl.runtime.signature import Binding, Signature, TensorParam


def argument(sig: Signature, k: int) -> str:
    """Returns the beginning of a message about argument `k`: the name of the function, and the argument's position and name."""
    return f"{sig.name}: argument {k + 1} ({sig.params[k].name})"


def wrong_count(sig: Signature, given: str, more: Sequence[str] = ()) -> str:
    """more: the names of arguments that callers of this kind give after those of the signature."""
    names = [*(param.name for param in sig.params), *more]
    return f"{sig.name} takes {len(names)} {'argument' if len(names) == 1 else 'arguments'} ({', '.join(names)}), {given} given"


def wrong_dtype(sig: Signature, k: int, given: str) -> str:
    return f"{argument(sig, k)} has dtype {given}, it needs {sig.params[k].dtype}"


def wrong_rank(sig: Signature, k: int, param: TensorParam, rank: str, shape: str) -> str:
    return f"{argument(sig, k)} has {rank} dimensions, shape {shape}; it needs {len(param.shape)}, shape {param.shape_text}"


def misaligned(sig: Signature, k: int, alignment: int) -> str:
    """Returns the text for misaligned elements. alignment: of an element, in bytes."""
    return f"{argument(sig, k)} is misaligned: its elements do not start at multiples of {alignment} bytes"


def negative_size(sig: Signature, k: int, given: str) -> str:
    return f"{argument(sig, k)} is {given}, and a size is at least 0"


def too_large(sig: Signature, k: int, of: DType, given: str) -> str:
    """Returns the text for `given`, a number that the dtype `of` of a scalar parameter cannot represent."""
    return f"{argument(sig, k)} is {given}, which does not fit {of}" + \
        (f" ({of.min_value} to {of.max_value})" if of.min_value is not None else "")


def _dimension(sig: Signature, binding: Binding) -> str:
    part = "dimension" if binding.kind == "shape" else "the stride of dimension"
    return f"{argument(sig, binding.param)}: {part} {binding.dim}"


def insoluble(sig: Signature, binding: Binding, given: str) -> str:
    """Returns the text for `given`, a dimension or stride that no value of the variable can produce."""
    return f"{_dimension(sig, binding)} is {given}, which no {binding.var.name} makes equal to {shown(binding.expr)}"


def below_zero(sig: Signature, binding: Binding, given: str, value: str) -> str:
    return f"{_dimension(sig, binding)} is {given}, so {binding.var.name} would be {value}, below 0"


def wide(sig: Signature, binding: Binding, given: str, value: str) -> str:
    """Returns the text for a variable with a `value` that its dtype cannot represent."""
    return f"{_dimension(sig, binding)} is {given}, so {binding.var.name} is {value}, which does not fit {binding.var.dtype}"


def wrong_shape(sig: Signature, k: int, param: TensorParam, given: str, wanted: str, value: Callable[[Var], object]) -> str:
    """Returns the text for a wrong dimension or rank. value: returns the value of a variable of the shape, which another
    argument gave.
    """
    bound = ", ".join(f"{b.var.name} = {value(b.var)} from {_origin(sig, b)}" for b in sig.bindings
                      if b.kind in ("shape", "scalar") and any(uses(e, b.var) for e in param.shape))
    symbolic = f" {param.shape_text} with {bound}, that is" if bound else ""
    return f"{argument(sig, k)} has shape {given}, it needs{symbolic} {wanted}"


def _origin(sig: Signature, binding: Binding) -> str:
    name = sig.params[binding.param].name
    return f"argument {binding.param + 1}" if binding.kind == "scalar" else f"dimension {binding.dim} of {name}"


def not_contiguous(sig: Signature, k: int, strides: str, shape: str) -> str:
    """Returns the text for an array that is not contiguous. strides: with their unit."""
    return f"{argument(sig, k)} is not contiguous in row-major order: strides {strides} for shape {shape}"


def wrong_strides(sig: Signature, k: int, given: str, wanted: str) -> str:
    return f"{argument(sig, k)} has strides {given} in elements, it needs {wanted}"


def shared_elements(sig: Signature, k: int, strides: str, shape: str, *, surely: bool) -> str:
    share = "share" if surely else "may share"
    return f"{argument(sig, k)} is an output whose elements {share} memory: strides {strides} for shape {shape}"


def overlap(sig: Signature, k: int, other: str) -> str:
    """other: the `position` of another argument."""
    return f"{argument(sig, k)} is an output and overlaps {other}"


def possible_overlap(sig: Signature, k: int, other: str, why: str) -> str:
    """other: the `position` of another argument."""
    return f"{argument(sig, k)} is an output and may overlap {other}: {why}"


def position(sig: Signature, k: int) -> str:
    """Returns the position and name of argument `k`."""
    return f"argument {k + 1} ({sig.params[k].name})"


def no_memory(sig: Signature) -> str:
    return f"{sig.name}: a temporary buffer could not be allocated"


def tuple_text(values: Sequence[object]) -> str:
    """Returns the text of a tuple of `values`, as Python writes it."""
    return "(" + ", ".join(map(str, values)) + ("," if len(values) == 1 else "") + ")"
