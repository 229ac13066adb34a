"""Loops for operators that are written as statements (te.extern), since no formula expresses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tedsl import tir
from topi.extents import as_int, product

TRUST = ("tir.data_index", "trust")  # attribute of memory all data-dependent indices of which are in range
SMALL = 1 << 14  # elements that one thread moves faster than several can be woken


@contextmanager
def loops(ib: Any, shape: Sequence[Any], kind: str = "serial", name: str = "i") -> Iterator[tuple[tir.Var, ...]]:
    """Nest loops over `shape` and pass their indices to the body. kind: the kind of the outermost loop."""
    with ExitStack() as nest:
        yield tuple([nest.enter_context(ib.for_range(0, extent, name=f"{name}{d}", kind=kind if d == 0 else "serial"))
                     for d, extent in enumerate(shape)])


def rows_kind(shape: Sequence[Any]) -> str:
    """The kind for loops whose iterations are independent: parallel, unless there is too little work."""
    elements = as_int(product(shape))
    return "parallel" if elements is None or elements > SMALL else "serial"


def copy(ib: Any, source: Any, target: Any, shape: Sequence[Any]) -> None:
    """Copies a tensor of `shape`."""
    with loops(ib, shape, rows_kind(shape), "c") as i:
        target[i] = source[i]


def places(first: Any, lanes: int, step: int = 1) -> Any:
    """The indices of `lanes` elements, `step` apart: a vector, or a scalar for one."""
    return tir.Ramp(first, tir.const(step, "int32"), lanes) if lanes > 1 else first


def first_of(at: Any) -> Any:
    """The first of the indices that `places` gives."""
    return at.base if isinstance(at, tir.Ramp) else at


def store(memory: Any, at: Any, value: Any) -> None:
    """Stores `value` at the indices `at`, as a call."""
    memory[at] = value


def prefetch(ib: Any, element: Any, writes: bool = False) -> None:
    """Asks for the line of memory of `element`, an access to a pointer; writes: in order to write it."""
    address = tir.call_intrin("handle", "tir.address_of", element)
    ib.emit(tir.Evaluate(tir.call_intrin("int32", "tir.prefetch", address, int(writes), 3, 1)))


def fill(ib: Any, target: Any, shape: Sequence[Any], value: Any) -> None:
    """Stores `value` in all elements."""
    with loops(ib, shape, rows_kind(shape), "c") as i:
        target[i] = value
