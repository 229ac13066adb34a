"""The table of helper functions: their names, texts, and which others they call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tedsl.codegen.c.prelude import conversions, floats, halves, integers
from tedsl.codegen.c.text.types import suffix
from tedsl.errors import InternalError
from tedsl.ir.dtype import KNOWN, DType, dtype

PREFIX = "tedsl_"
_BY_SUFFIX = {suffix(dtype(name)): dtype(name) for name in KNOWN}
# Of one dtype, which ends the name: tedsl_add_i32.
_OF_ONE: dict[str, Callable[[DType], str]] = {**integers.TEXTS, **floats.TEXTS}
_ALONE: dict[str, str] = {**halves.TEXTS, **conversions.ALONE, **integers.ALONE}


def helper_name(operation: str, *dtypes: DType) -> str:
    """Returns the name of the helper function for an operation on values of those dtypes."""
    return PREFIX + "_".join([operation, *(suffix(d) for d in dtypes)])


@cache
def helper_text(name: str) -> str:
    """Returns the definition of the helper function `name`, without what stands before it; InternalError for other names."""
    bare = name.removeprefix(PREFIX)
    if bare in _ALONE:
        return _ALONE[bare].strip() + "\n"
    operation, _, of = bare.rpartition("_")
    if operation in _OF_ONE:
        return _OF_ONE[operation](_BY_SUFFIX[of]).strip() + "\n"
    middle, _, source = bare.partition("_of_")
    if middle in _BY_SUFFIX and source in _BY_SUFFIX:
        return conversions.float_to_integer(_BY_SUFFIX[middle], _BY_SUFFIX[source])
    target, _, source = bare.removeprefix("bits_").partition("_from_")
    if bare.startswith("bits_") and target in _BY_SUFFIX:
        return conversions.same_bits(_BY_SUFFIX[target], _BY_SUFFIX[source])
    raise InternalError(f"there is no helper function {name!r} in C")
