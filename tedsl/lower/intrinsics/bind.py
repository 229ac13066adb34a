"""The statements of an intrinsic over the memory of the tensors, and the equivalent generated loops.

    attr [W, A] "buffer_bind_scope" = tuple(yo*16, 16, 0, 64, ...) { gemv(W.access_ptr("r"), ...) }

W stands for that region of A inside; `flatten_storage`, which knows where the elements of A are, gives values to the pointer,
the offset and the strides of W.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Broadcast, BufferLoad, Expr, Load, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import BIND_SCOPE, AttrStmt, BufferStore, For, ForKind, Stmt, Store, Tensorized, seq
from tedsl.ir.walk.substitute import Substitution, copy_var, fresh_copy, substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.intrinsics.tensor_intrin import Region, formula_over
from tedsl.lang.operation import extent_of
from tedsl.lower.compute import BufferOf, Translator, store_init, store_update
from tedsl.lower.intrinsics.match import Use
from tedsl.lower.plan import StagePlan

BODY, RESET, UPDATE = "body", "reduce_init", "reduce_update"


def instance(part: str, use: Use, plan: StagePlan, buffer_of: BufferOf) -> Stmt:
    """The statements of one part of an intrinsic (BODY, RESET or UPDATE) over the regions of `use`."""
    stmt = getattr(use.intrin, part)
    fills = 0 if part == UPDATE else len(use.outputs)
    return Tensorized(use.intrin.name, _bound(stmt, part, use, buffer_of), _formula(part, use, plan, buffer_of), fills)


# --- what the user wrote ---------------------------------------------------------------------------------------------

def _bound(stmt: Stmt, part: str, use: Use, buffer_of: BufferOf) -> Stmt:
    intrin = use.intrin
    regions = list(zip(intrin.buffers, (*(use.inputs[t] for t in intrin.inputs), *use.outputs)))
    place = _RegionBuffers(use, [buffer for buffer, _ in regions])
    body: Stmt = place(fresh_copy(stmt))
    used = {*variables(body), *_buffers_in(body)}
    inputs = len(intrin.inputs)
    for position, (buffer, region) in reversed(list(enumerate(regions))):
        window = place.buffer(buffer)
        if part == RESET and position < inputs:
            if window.data in used:
                raise LoweringError(f"the reduce_init of the intrinsic {intrin.name} reads its input {buffer.name}; it gets "
                                    "the outputs alone", hint="write start values only; reduce_update reads the inputs",
                                    about=buffer.name)
            continue
        body = AttrStmt((window, buffer_of(region.tensor)), BIND_SCOPE, _extents(region, window), body)
    return body


def _buffers_in(body: Stmt) -> set[Var]:
    return {node.buffer.data for node in post_order(body) if isinstance(node, (BufferLoad, BufferStore))}


def _extents(region: Region, window: Buffer) -> Expr:
    """A tuple expression: minimum and extent of `region` in each dimension of the tensor, then, for each dimension of the
    window, the number of the tensor's dimension.
    """
    sizes: dict[int, Expr] = dict(zip(region.dims, window.shape))
    parts: list[Expr] = []
    for dim, low in enumerate(region.mins):
        parts += [low, sizes.get(dim, build.const(1, "int32"))]
    return build.call("tir.tvm_tuple", *parts, *region.dims, dtype_="handle")


class _RegionBuffers(Substitution):
    """Copies the intrinsic's buffers for one use: with fresh variables for pointers, offsets and strides, and with the shape of
    the region. The index of a flat access counts from the first element of the buffer.
    """

    def __init__(self, use: Use, buffers: Sequence[Buffer]) -> None:
        values: dict[Var, Expr] = {v: build.cast(v.dtype, value) for v, value in use.values.items()}
        for buffer in buffers:
            for part in (buffer.data, buffer.elem_offset, *buffer.strides):
                for var in variables(part):
                    if var not in values:
                        values[var] = copy_var(var)
        super().__init__(values)
        self.offsets: dict[Any, Expr] = {values[b.data]: self(b.elem_offset) for b in buffers}

    def rewrite(self, node: Any) -> Any:
        node = super().rewrite(node)
        if isinstance(node, (Load, Store)) and build.as_int(self.offsets.get(node.buffer_var)) != 0 \
                and node.buffer_var in self.offsets:
            offset = self.offsets[node.buffer_var]
            index = node.index
            if index.dtype.lanes > 1:
                offset = Broadcast(build.cast(index.dtype.element, offset), index.dtype.lanes)
            return node.replace(index=build.add(index, offset))
        return node


# --- what it computes -------------------------------------------------------------------------------------------------

def _formula(part: str, use: Use, plan: StagePlan, buffer_of: BufferOf) -> Stmt:
    op = use.intrin.op
    data = [_loop_var(axis) for axis in op.axis]
    reduced = [_loop_var(axis) for axis in op.reduce_axis]
    values: dict[Var, Expr] = {v: build.cast(v.dtype, value) for v, value in use.values.items()}
    sizes = {axis: build.cast(axis.dtype, substitute(extent_of(axis), values)) for axis in (*op.axis, *op.reduce_axis)}
    for axis, var in zip((*op.axis, *op.reduce_axis), (*data, *reduced)):
        assert axis.dom is not None
        values[axis.var] = build.add(axis.dom.min, var)
    bodies = formula_over(use.intrin, use.inputs, values, op.reduce_axis)
    buffers = [buffer_of(region.tensor) for region in use.outputs]
    place = use.outputs[0].at(data)
    translate = Translator({}, buffer_of)
    first = bodies[0]
    if not isinstance(first, Reduce):
        stmt = seq(*[BufferStore(buffer, translate(body), place) for buffer, body in zip(buffers, bodies)])
    else:
        init = store_init(first, buffers, place, translate)
        update = store_update(plan, first, buffers, place, translate)
        update = _loops(op.reduce_axis, reduced, sizes, update)
        stmt = init if part == RESET else update if part == UPDATE else seq(init, update)
    return _loops(op.axis, data, sizes, stmt)


def _loop_var(axis: IterVar) -> Var:
    return Var(axis.name, axis.dtype)


def _loops(axes: Sequence[IterVar], names: Sequence[Var], sizes: dict[IterVar, Expr], body: Stmt) -> Stmt:
    for axis, var in zip(reversed(axes), reversed(names)):
        body = For(var, build.const(0, var.dtype), sizes[axis], ForKind.SERIAL, body)
    return body
