"""The buffers of a tensor intrinsic, each of which stands for a region of another buffer (`buffer_bind_scope`).

    attr [b, B] "buffer_bind_scope" = tuple(io*4, 4, ...) { b[i + 1] = ... }     stores B[io*4 + i + 1], if i + 1 < 4
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.expr import Add, BufferLoad, Call, Expr, Load
from tedsl.ir.stmt import BIND_SCOPE, AttrStmt, BufferStore, Stmt, Store, Tensorized
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.checked.shadows import CheckedMemory, Indices
from tedsl.record import record


@record(eq=False)
class Window:
    """The buffer `buffer` of `intrinsic`, which stands for a region of `memory`: index k of the buffer, plus mins[dims[k]], is
    index dims[k] of `memory`.

    seen: whether the element of every access is known: false if other code gets the buffer; for accesses by position, a
    condition on its strides. stored: for a buffer that the intrinsic must write, one bool per element that tells whether it
    did.
    """

    buffer: Buffer
    memory: CheckedMemory
    mins: Indices
    dims: tuple[int, ...]
    intrinsic: str
    seen: Expr = field(default_factory=build.true)
    stored: Buffer | None = None

    def place(self, indices: Sequence[Expr]) -> Indices:
        """Returns the indices in `memory` of the element at `indices` of the window."""
        place = list(self.mins)
        for dim, index in zip(self.dims, indices):
            place[dim] = build.add(self.mins[dim], index)
        return tuple(place)

    def indices(self, given: Indices, by_position: bool) -> tuple[Indices, Expr]:
        """Returns the window's indices of the element at `given`, valid where `seen` holds, and the remaining distance to it in
        elements (not 0 where elements are not contiguous).

        by_position: `given` is a position in flat memory instead of indices.
        """
        if not by_position:
            return given, build.const(0)
        rest = _without(given[0], self.buffer.elem_offset)
        inner: list[Expr] = [build.const(0, rest.dtype)] * len(self.buffer.shape)
        for dim, step in self.steps():
            inner[dim], rest = build.floordiv(rest, step), build.floormod(rest, step)
        return tuple(inner), rest

    def position(self, given: Indices) -> Indices:
        """Returns the position in memory of the element at the indices `given`."""
        flat = self.buffer.elem_offset
        strides = self.buffer.strides
        step: Expr = build.const(1, "int32")
        for dim in reversed(range(len(given))):
            flat = build.add(build.mul(given[dim], strides[dim] if strides else step), flat)
            step = build.product_of_extents(step, self.buffer.shape[dim])
        return (flat,)

    def is_regular(self) -> Expr:
        """Returns the condition that the strides decrease so that each position belongs to one element."""
        regular: Expr = build.true()
        steps = self.steps() if self.buffer.strides else []
        for at, (_, step) in enumerate(steps):
            least = build.const(1, step.dtype)
            if at + 1 < len(steps):
                dim, inner = steps[at + 1]
                least = build.mul(inner, self.buffer.shape[dim])
            regular = build.logical_and(regular, build.greater_equal(step, least))
        return regular

    def steps(self) -> list[tuple[int, Expr]]:
        """Returns the dimensions that have more than one element (at least the last), with their strides in elements."""
        shape, steps = self.buffer.shape, list[tuple[int, Expr]]()
        step: Expr = build.const(1, "int32")
        for dim in reversed(range(len(shape))):
            if build.as_int(shape[dim]) != 1:
                steps.append((dim, self.buffer.strides[dim] if self.buffer.strides else step))
            step = build.product_of_extents(step, shape[dim])
        if not steps and shape:
            steps.append((len(shape) - 1, build.const(1, "int32")))
        return steps[::-1]


def _without(flat: Expr, offset: Expr) -> Expr:
    """Returns flat - offset."""
    if isinstance(flat, Add) and flat.b is offset:
        return flat.a
    return flat if build.as_int(offset) == 0 else build.sub(flat, build.cast(flat.dtype, offset))


def binds_of(body: Stmt) -> Iterator[tuple[Buffer, Buffer]]:
    """Yields the buffers of intrinsics in `body`, each with the buffer whose region it stands for."""
    for node in post_order(body):
        if isinstance(node, AttrStmt) and node.attr_key == BIND_SCOPE:
            yield node.node


def unbound(stmt: Tensorized) -> tuple[list[AttrStmt], Stmt]:
    """Returns the statements that bind the buffers of an intrinsic, outermost first, and the body that the user wrote."""
    binds, body = list[AttrStmt](), stmt.body
    while isinstance(body, AttrStmt) and body.attr_key == BIND_SCOPE:
        binds.append(body)
        body = body.body
    return binds, body


def window_of(bind: AttrStmt, memory: CheckedMemory, stmt: Tensorized, hidden: bool) -> Window:
    """Returns the window that `bind` creates. hidden: code that cannot be checked gets the buffer."""
    window, _ = bind.node
    assert isinstance(bind.value, Call)
    args, count = bind.value.args, len(memory.extents)
    dims = tuple(int(dim) for dim in map(build.as_int, args[2 * count:]) if dim is not None)
    region = Window(window, memory, tuple(args[:2 * count:2]), dims, stmt.name)
    if hidden:
        return replace(region, seen=build.const(False, "bool"))
    by_position = any(_is_by_position(node, window) for node in post_order(bind.body))
    region = replace(region, seen=region.is_regular() if by_position else build.true())
    binds, _ = unbound(stmt)
    if bind not in binds[len(binds) - stmt.fills:]:
        return region
    return replace(region, stored=decl_buffer(window.shape, "bool", f"{memory.name}.stored", scope="local"))


def _is_by_position(node: object, window: Buffer) -> bool:
    if isinstance(node, (BufferLoad, BufferStore)):
        return node.buffer is window and goes_on(node.indices)
    return isinstance(node, (Load, Store)) and node.buffer_var is window.data


def goes_on(indices: Sequence[Expr]) -> bool:
    """Tells whether an access takes contiguous elements, which may continue in the next row."""
    return len(indices) > 1 and indices[-1].dtype.lanes > 1
