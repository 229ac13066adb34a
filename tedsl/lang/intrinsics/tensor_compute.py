"""te.compute whose body is a call of an intrinsic: each iteration of its loops computes a region by one call.

    C = te.compute((n, 16), lambda i: vadd(A[i, 0:16], B[i, 0:16]))     i is a loop; the 16 elements of C[i] are one call

The operation has a formula like any other, that of the intrinsic over the regions, but the dimensions inside a call, and the
reduction inside it, get no loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import DTypeError, ShapeError
from tedsl.ir import build
from tedsl.ir.expr import Expr, ProducerLoad, Reduce, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import shown
from tedsl.lang.formula import check_formula
from tedsl.lang.intrinsics.shape_match import ShapeMatch
from tedsl.lang.intrinsics.tensor_intrin import Region, TensorIntrin, TensorIntrinCall, formula_over
from tedsl.lang.operation import ComputeOp, as_attrs, extent_of, note_axis
from tedsl.lang.redirect import redirected
from tedsl.lang.tensor import Tensor
from tedsl.record import record

if TYPE_CHECKING:
    from typing_extensions import Self


@record(eq=False, repr=False)
class TensorComputeOp(ComputeOp):
    """A formula that is computed by calls of `intrin`.

    schedulable_ndim: the number of axes that have loops; inner_reduce: the reduction axes inside a call. regions: the region
    for each input of the intrinsic; output_dims: for each dimension of the intrinsic's output the dimension of this operation's
    output. symbols: the values of the variables in the intrinsic's shapes, and of its scalar parameters.
    """

    intrin: TensorIntrin | None = None
    schedulable_ndim: int = 0
    inner_reduce: tuple[IterVar, ...] = ()
    regions: tuple[Region, ...] = ()
    output_dims: tuple[int, ...] = ()
    symbols: Mapping[Var, Expr] = FrozenDict()

    @property
    def without_loops(self) -> tuple[IterVar, ...]:
        return (*self.axis[self.schedulable_ndim:], *self.inner_reduce)

    def reading(self, mapping: Mapping[Tensor, Tensor]) -> Self:
        regions = tuple(Region(mapping.get(r.tensor, r.tensor), r.mins, r.dims) for r in self.regions)
        return self.replace(body=redirected(self.body, mapping), regions=regions)


def intrinsic_op(call: TensorIntrinCall, shape: Sequence[Expr], axis: Sequence[IterVar], name: str, where: str, *, tag: str,
                 attrs: Mapping[str, Any] | None, source: Any) -> TensorComputeOp:
    """The operation of `te.compute(shape, lambda *axis: call)`."""
    intrin, match = call.intrin, ShapeMatch(Analyzer(), _scalars(call, where))
    regions = tuple(_region(k, call, match, where) for k in range(len(intrin.inputs)))
    inner = [_inner_axis(k, extent) for k, extent in enumerate(shape[len(axis):])]
    output_dims = _output_dims(intrin, shape, len(axis), match, where)
    values: dict[Var, Expr] = dict(match.symbols)
    for own, dim in zip(intrin.op.axis, output_dims):
        values[own.var] = _variable(inner, dim - len(axis), own)
    reduced = tuple(_reduce_axis(own, match) for own in intrin.op.reduce_axis)
    values |= {own.var: build.cast(own.dtype, axis_copy.var) for own, axis_copy in zip(intrin.op.reduce_axis, reduced)}
    if call.reduce_axis and not isinstance(intrin.op.body[0], Reduce):
        raise ShapeError(f"{where}: reduce_axis is given, and the formula of the intrinsic {intrin.name} is not a reduction",
                         hint="a reduction over calls needs an intrinsic whose formula is a reduction: te.sum(...)")
    body = formula_over(intrin, dict(zip(intrin.inputs, regions)), values, (*call.reduce_axis, *reduced))
    axes = (*axis, *inner)
    op = TensorComputeOp(name, tag, as_attrs(attrs), axes, check_formula(body, axes, where), body, None, source=source,
                         intrin=intrin, schedulable_ndim=len(axis), inner_reduce=reduced, regions=regions,
                         output_dims=output_dims, symbols=FrozenDict(match.symbols))
    return op


def _scalars(call: TensorIntrinCall, where: str) -> dict[Var, Expr]:
    scalars = {}
    for var, value in zip(call.intrin.scalar_params, call.scalar_inputs):
        if value.dtype.is_float != var.dtype.is_float:
            raise DTypeError(f"{where}: the scalar parameter {var.name} of {call.intrin.name} is {var.dtype}, the value "
                             f"{shown(value)} is {value.dtype}", hint=f"cast it: .astype({str(var.dtype)!r})")
        scalars[var] = build.cast(var.dtype, value)
    return scalars


def _region(number: int, call: TensorIntrinCall, match: ShapeMatch, where: str) -> Region:
    """The region passed for input number `number`; raises ShapeError or DTypeError if it does not fit the input."""
    given, declared = call.tensors[number], call.intrin.inputs[number]
    tensor, indices = _parts(given)
    what = f"{where}: input {number} of the intrinsic {call.intrin.name} ({declared.name})"
    if tensor.dtype is not declared.dtype:
        raise DTypeError(f"{what} is {declared.dtype}, {tensor.name} is {tensor.dtype}")
    if len(indices) != len(tensor.shape):
        raise ShapeError(f"{what}: {tensor.name} has {len(tensor.shape)} dimensions, {len(indices)} are indexed",
                         hint=f"index each one, by a number or by a slice: {tensor.name}[i, 0:16]")
    ranges = [_range(index, dim, what) for index, dim in zip(indices, tensor.shape)]
    extents = [match.analyzer.simplify(extent) for _, extent in ranges]
    dims = match.dims(declared.shape, extents)
    if dims is None:
        raise ShapeError(f"{what} has the shape {shown(tuple(declared.shape))}, the region {shown(given)} the shape "
                         f"{shown(tuple(extents))}",
                         hint="slices take begin:end; dimensions of one element may stand before or between")
    return Region(tensor, tuple(low for low, _ in ranges), dims)


def _parts(given: Any) -> tuple[Tensor, tuple[Any, ...]]:
    if isinstance(given, Tensor):
        return given, (slice(None),) * given.ndim
    if isinstance(given, ProducerLoad):
        return given.producer, given.indices
    indices: tuple[Any, ...] = given.indices
    if Ellipsis in indices:
        at, missing = indices.index(Ellipsis), given.tensor.ndim - len(indices) + 1
        indices = (*indices[:at], *(slice(None),) * missing, *indices[at + 1:])
    return given.tensor, indices


def _range(index: Any, dim: Expr, what: str) -> tuple[Expr, Expr]:
    """The first element and the extent of one index, which is a number or a slice."""
    if not isinstance(index, slice):
        first = build.as_expr(index)
        return first, build.const(1, first.dtype)
    if index.step is not None:
        raise ShapeError(f"{what}: a slice has a step", hint="regions are contiguous in each dimension: begin:end")
    first = build.const(0, dim.dtype) if index.start is None else build.as_expr(index.start)
    return first, build.sub(dim if index.stop is None else build.as_expr(index.stop), first)


def _output_dims(intrin: TensorIntrin, shape: Sequence[Expr], loops: int, match: ShapeMatch, where: str) -> tuple[int, ...]:
    """For each dimension of the intrinsic's output the dimension of this output. A dimension with a loop has extent 1 in a
    call.
    """
    extents = [*(build.const(1, dim.dtype) for dim in shape[:loops]), *shape[loops:]]
    dims = match.dims(intrin.op.output(0).shape, extents)
    if dims is None:
        raise ShapeError(f"{where}: the output of the intrinsic {intrin.name} has the shape "
                         f"{shown(tuple(intrin.op.output(0).shape))}; beside the {loops} dimensions with an index there are "
                         f"{shown(tuple(shape[loops:]))}",
                         hint="the function takes an index for each dimension with a loop; the intrinsic has the others")
    return dims


def _inner_axis(number: int, extent: Expr) -> IterVar:
    dom = Range.from_min_extent(build.const(0, extent.dtype), extent)
    return note_axis(IterVar(dom, Var(f"ax{number}", extent.dtype), IterType.DIM_INFO))


def _reduce_axis(own: IterVar, match: ShapeMatch) -> IterVar:
    """A copy of a reduce axis of the intrinsic, since formulas must not share axes."""
    extent = match.value(extent_of(own))
    assert own.dom is not None
    dom = Range.from_min_extent(build.cast(extent.dtype, own.dom.min), extent)
    return note_axis(IterVar(dom, Var(own.name, extent.dtype), IterType.COMM_REDUCE))


def _variable(inner: Sequence[IterVar], at: int, own: IterVar) -> Expr:
    """The expression for the axis `own` of the intrinsic: an axis inside the call (`at` >= 0), or 0 for a dimension with a
    loop.
    """
    return build.cast(own.dtype, inner[at].var) if at >= 0 else build.const(0, own.dtype)
