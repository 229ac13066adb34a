"""Tensor intrinsics: the formula that an instruction or library function computes, and the statements that call it.

    x, y = te.placeholder((16,)), te.placeholder((16,));  z = te.compute((16,), lambda i: x[i] + y[i])
    vadd = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern("int32", "vadd", ins[0].access_ptr("r"), ...))

The formula determines what `s[C].tensorize(loop, vadd)` may replace, and what the interpreter runs; the function returns the
statements that replace the loops. `te.compute(..., lambda i: vadd(A[i, 0:16], B[i, 0:16]))` calls it directly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, entry, type_in_words
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.expr import Expr, ProducerLoad, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.stmt import Evaluate, Stmt
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor, TensorSlice
from tedsl.lang.value import as_value
from tedsl.record import record

HOW = "write te.decl_tensor_intrin(z.op, lambda ins, outs: ...), where z = te.compute(...) of placeholders"


@record(eq=False, repr=False)
class TensorIntrin:
    """An intrinsic: the formula `op` of the placeholders `inputs`, and its statements over `buffers` (inputs, then outputs).

    body computes the whole formula; reduce_init writes the start values of its reduction; reduce_update adds to the present
    values. A part that the intrinsic does not have is None. scalar_params: variables that get values at each call.
    """

    name: str
    op: ComputeOp
    inputs: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    scalar_params: tuple[Var, ...]
    body: Stmt | None
    reduce_init: Stmt | None
    reduce_update: Stmt | None

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers of the outputs."""
        return self.buffers[len(self.inputs):]

    def __call__(self, *args: Any, reduce_axis: Any = None, scalar_inputs: Any = None) -> TensorIntrinCall:
        """A call of the intrinsic on regions such as A[i, 0:16], in the order of its inputs; scalars may stand among them.

        reduce_axis: the axis (or list of axes) over which the results of such calls are summed.
        """
        regions = [a for a in args if isinstance(a, (TensorSlice, Tensor))]
        scalars = [a for a in args if not isinstance(a, (TensorSlice, Tensor))]
        scalars += _listed(scalar_inputs)
        axes = _listed(reduce_axis)
        where = f"the call of the intrinsic {self.name}"
        _check_counts(self, where, len(regions), len(scalars))
        for axis in axes:
            if not isinstance(axis, IterVar) or not axis.is_reduction:
                raise ArgumentTypeError(f"{where}: reduce_axis is {shown(axis)}",
                                        hint="give te.reduce_axis(...), or a list of them")
        return TensorIntrinCall(self, tuple(regions), tuple(axes), tuple(as_value(s, where) for s in scalars))

    def __repr__(self) -> str:
        return f"TensorIntrin(name={self.name}, {self.op!r})"


@record(eq=False)
class TensorIntrinCall:
    """A call of an intrinsic, valid only as the body of a te.compute."""

    intrin: TensorIntrin
    tensors: tuple[Any, ...]
    reduce_axis: tuple[IterVar, ...]
    scalar_inputs: tuple[Expr, ...]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def _check_counts(intrin: TensorIntrin, where: str, regions: int, scalars: int) -> None:
    if regions != len(intrin.inputs):
        names = ", ".join(t.name for t in intrin.inputs)
        raise ArgumentError(f"{where}: it has {len(intrin.inputs)} inputs ({names}), and {regions} regions are given",
                            hint="give a region such as A[i, 0:16] for each input, in their order")
    if scalars != len(intrin.scalar_params):
        names = ", ".join(v.name for v in intrin.scalar_params) or "none"
        raise ArgumentError(f"{where}: it has {len(intrin.scalar_params)} scalar parameters ({names}), and {scalars} are given",
                            hint="scalar_params=[...] of decl_tensor_intrin declares them")


@entry
def decl_tensor_intrin(op: Any, fcompute: Callable[..., Any], name: str = "tensor_intrin",
                       binds: Mapping[Tensor, Buffer] | None = None, scalar_params: Sequence[Var] | None = None,
                       default_buffer_params: Mapping[str, Any] | None = None) -> TensorIntrin:
    """Declares an intrinsic that computes the formula `op` (of te.compute over placeholders) by the result of `fcompute(ins,
    outs)`.

    fcompute takes buffers and returns a statement or a call, or three of them: (body, reduce_init, reduce_update), None for a
    part that does not exist. binds: buffers that the caller declared for some tensors, to use their strides and offsets;
    default_buffer_params: arguments of tir.decl_buffer for the others. scalar_params: `fcompute(ins, outs, scalars)`.

    Raises ArgumentTypeError for an fcompute that is not a function.
    """
    where = f"decl_tensor_intrin {name}"
    if not isinstance(name, str):
        raise ArgumentTypeError(f"{where}: the name is a str")
    if not isinstance(binds or {}, Mapping):
        raise ArgumentTypeError(f"{where}: binds is a dict of tensors and their buffers, not {shown(binds)}", hint=HOW)
    if not isinstance(scalar_params or (), (list, tuple)):
        raise ArgumentTypeError(f"{where}: scalar_params is a list of variables, not {shown(scalar_params)}",
                                hint="declare them with te.var")
    formula = _check_op(op, where)
    tensors = [*formula.input_tensors, *(formula.output(k) for k in range(formula.num_outputs))]
    given = dict(binds or {})
    buffers = tuple(_buffer_of(tensor, given, default_buffer_params or {}, where) for tensor in tensors)
    unknown = [t for t in given if t not in tensors]
    if unknown:
        raise ArgumentError(f"{where}: binds names {getattr(unknown[0], 'name', unknown[0])}, which is neither an input nor an "
                            "output of the formula", hint=f"its tensors: {', '.join(t.name for t in tensors)}")
    scalars = tuple(scalar_params or ())
    wrong = [s for s in scalars if not isinstance(s, Var)]
    if wrong:
        raise ArgumentTypeError(f"{where}: the scalar parameter {shown(wrong[0])} is not a variable",
                                hint="declare them with te.var")
    if not callable(fcompute):
        raise ArgumentTypeError(f"{where}: {shown(fcompute)} is not a function", hint=HOW)
    count = len(formula.input_tensors)
    given_to = [list(buffers[:count]), list(buffers[count:]), *([list(scalars)] if scalars else [])]
    try:
        inspect.signature(fcompute).bind(*given_to)
    except TypeError as error:
        raise ArgumentTypeError(f"{where}: the function is called with {len(given_to)} arguments, and it does not take them: "
                                f"{error}", hint="it gets ins, outs" + (", scalars" if scalars else "")) from error
    except ValueError:
        pass  # a function of C has no signature to ask for
    parts = fcompute(*given_to)
    body, reset, update = _parts(parts, where)
    return TensorIntrin(name, formula, tuple(tensors[:count]), buffers, scalars, body, reset, update)


def _check_op(op: Any, where: str) -> ComputeOp:
    if isinstance(op, Tensor):
        raise ArgumentTypeError(f"{where}: {op.name} is a tensor, not an operation", hint=f"write {op.name}.op")
    if not isinstance(op, Operation):
        raise ArgumentTypeError(f"{where}: {shown(op)} is not an operation", hint=HOW)
    if not isinstance(op, ComputeOp):
        raise ArgumentError(f"{where}: {op.name} is {type_in_words(op)}; the formula of an intrinsic is a te.compute",
                            hint=HOW)
    for tensor in op.input_tensors:
        if not isinstance(tensor.op, PlaceholderOp):
            raise ArgumentError(f"{where}: the formula reads {tensor.name}, which is computed itself",
                                hint="write one te.compute that reads placeholders alone")
    return op


def _buffer_of(tensor: Tensor, binds: Mapping[Tensor, Buffer], options: Mapping[str, Any], where: str) -> Buffer:
    buffer = binds.get(tensor)
    if buffer is None:
        own = [option for option in ("shape", "dtype", "name") if option in options]
        if own:
            raise ArgumentTypeError(f"{where}: default_buffer_params has a {own[0]}, which is that of each tensor",
                                    hint="binds={a: tir.decl_buffer(a.shape, a.dtype, ...)} gives a tensor its own buffer")
        try:
            return decl_buffer(tensor.shape, tensor.dtype, tensor.name, **options)
        except TypeError as error:
            raise ArgumentTypeError(f"{where}: default_buffer_params: {error}",
                                    hint="it takes what tir.decl_buffer takes: {'offset_factor': 1}") from error
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"{where}: binds gives {tensor.name} {shown(buffer)}, which is not a buffer",
                                hint=f"make one: tir.decl_buffer({tensor.name}.shape, {tensor.name}.dtype)")
    if buffer.dtype is not tensor.dtype:
        raise DTypeError(f"{where}: binds gives {tensor.name} of {tensor.dtype} the buffer {buffer.name} of {buffer.dtype}",
                         hint=f"give it the dtype of the tensor: tir.decl_buffer({tensor.name}.shape, {tensor.name}.dtype)")
    if len(buffer.shape) != len(tensor.shape):
        raise ShapeError(f"{where}: binds gives {tensor.name} of {len(tensor.shape)} dimensions the buffer {buffer.name} of "
                         f"{len(buffer.shape)}", hint=f"make it of the same shape: tir.decl_buffer({tensor.name}.shape, ...)")
    for at, (mine, theirs) in enumerate(zip(buffer.shape, tensor.shape)):
        if build.as_int(mine) is not None and build.as_int(theirs) not in (None, build.as_int(mine)):
            raise ShapeError(f"{where}: binds gives {tensor.name} the buffer {buffer.name}, whose dimension {at} is {mine}, "
                             f"not {theirs}", hint=f"make it of the same shape: tir.decl_buffer({tensor.name}.shape, ...)")
    return buffer


def _parts(made: Any, where: str) -> tuple[Stmt | None, Stmt | None, Stmt | None]:
    """The statements body, reduce_init and reduce_update of `made`, the result of fcompute."""
    parts = list(made) if isinstance(made, (tuple, list)) else [made]
    if not 1 <= len(parts) <= 3 or all(part is None for part in parts):
        raise ArgumentError(f"{where}: the function returned {'nothing' if made is None else f'{len(parts)} values'}",
                            hint="return a statement or a call, or (body, reduce_init, reduce_update)")
    for part in parts:
        if part is not None and not isinstance(part, (Expr, Stmt)):
            raise ArgumentTypeError(f"{where}: the function returned {shown(part)}, which is neither a statement nor a call",
                                    hint="return tir.call_extern(...), outs[0].vstore(...), or the get() of an ir_builder")
    made_parts = [Evaluate(part) if isinstance(part, Expr) else part for part in parts]
    body, reset, update = [*made_parts, None, None][:3]
    return body, reset, update


# --- the formula over other tensors ---------------------------------------------------------------------------------

@record(eq=False)
class Region:
    """The part of `tensor` that an intrinsic gets for one of its tensors.

    mins: the first element; dims: the dimension of `tensor` for each dimension of the intrinsic's tensor. In the other
    dimensions the region has extent 1.
    """

    tensor: Tensor
    mins: tuple[Expr, ...]
    dims: tuple[int, ...]

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices in `tensor` that correspond to `indices` of the intrinsic's tensor."""
        indices_in_tensor = list(self.mins)
        for dim, index in zip(self.dims, indices):
            indices_in_tensor[dim] = build.add(self.mins[dim], index)
        return tuple(indices_in_tensor)


def formula_over(intrin: TensorIntrin, regions: Mapping[Tensor, Region], values: Mapping[Var, Expr],
                 axes: Sequence[IterVar]) -> tuple[Expr, ...]:
    """The formula of `intrin` with its inputs read from `regions`, its variables replaced by `values`, and its reduction, if
    it is one, over `axes`."""
    write = _Reader(regions, values)
    first = intrin.op.body[0]
    if not isinstance(first, Reduce):
        return tuple(write(expr) for expr in intrin.op.body)
    source = tuple(write(s) for s in first.source)
    condition, init = write(first.condition), tuple(write(i) for i in first.init)
    return tuple(Reduce(first.combiner, source, tuple(axes), condition, at, init) for at in range(len(intrin.op.body)))


class _Reader(Rewriter):
    def __init__(self, regions: Mapping[Tensor, Region], values: Mapping[Var, Expr]) -> None:
        super().__init__()
        self.regions, self.values = regions, values

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, Var):
            return self.values.get(node, node)
        if type(node) is ProducerLoad and node.producer in self.regions:
            region = self.regions[node.producer]
            return ProducerLoad(region.tensor, region.at(node.indices))
        return node
