"""The bounds of a buffer, and the shadow buffers in which checked mode records the accesses to each of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.expr import BufferLoad, Expr, Var
from tedsl.ir.iters import Range
from tedsl.ir.stmt import BufferRealize, BufferStore, For, ForKind, Stmt, seq

Key = Buffer | Var  # of a memory: its buffer, or the data pointer of flat loops
Indices = tuple[Expr, ...]  # the indices of one element


@dataclass(eq=False)
class CheckedMemory:
    """A buffer in checked mode: dimension k has the indices mins[k] .. mins[k] + extents[k] - 1.

    written: a buffer with a bool per element that tells whether it was stored to; None where all elements are known to be
    defined, or where code that cannot be checked gets the buffer. stage: the name of the stage that stores to it, for errors.
    scope: the memory scope, which the shadow buffers share: memory of one thread has one shadow buffer per thread.
    """

    name: str
    mins: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    scope: str = ""
    written: Buffer | None = None
    stage: str = ""
    shadows: int = field(default=0)

    def shadow(self, what: str, dtype: str) -> Buffer:
        """Returns a new buffer with one element of `dtype` for each element of this one."""
        self.shadows += 1
        return decl_buffer(self.extents, dtype, f"{self.name}.{what}", scope=self.scope)

    def at(self, shadow: Buffer, place: Sequence[Expr]) -> BufferLoad:
        """Returns the element of `shadow` that belongs to `place`."""
        return BufferLoad(shadow, self.offsets(place))

    def set(self, shadow: Buffer, place: Sequence[Expr], value: Expr) -> Stmt:
        return BufferStore(shadow, value, self.offsets(place))

    def offsets(self, place: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(index if build.as_int(low) == 0 else build.sub(index, low) for index, low in zip(place, self.mins))


    def unravelled(self, flat: Expr) -> tuple[Expr, ...]:
        """Returns the indices of element number `flat` of compact memory. If `flat` is out of range, so is the first index."""
        place: list[Expr] = []
        for low, extent in zip(reversed(self.mins[1:]), reversed(self.extents[1:])):
            place.append(build.add(build.floormod(flat, extent), low))
            flat = build.floordiv(flat, extent)
        return (build.add(flat, self.mins[0]), *reversed(place)) if self.mins else ()


def with_shadow(shadow: Buffer, value: Expr, body: Stmt) -> Stmt:
    """Allocates `shadow` around `body`, initialised to `value`."""
    bounds = tuple(Range.from_min_extent(build.const(0, dim.dtype), dim) for dim in shadow.shape)
    fill = over(shadow.shape, lambda place: BufferStore(shadow, value, place))
    return BufferRealize(shadow, bounds, build.true(), seq(fill, body))


def over(shape: Sequence[Expr], body: object) -> Stmt:
    """Returns loops over all elements of `shape` that run `body(indices)`."""
    loops = [Var(f"e{dim}", extent.dtype) for dim, extent in enumerate(shape)]
    stmt: Stmt = body(tuple(loops))  # type: ignore[operator]
    for loop, extent in zip(reversed(loops), reversed(shape)):
        stmt = For(loop, build.const(0, loop.dtype), extent, ForKind.SERIAL, stmt)
    return stmt
