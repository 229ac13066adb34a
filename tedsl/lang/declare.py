"""Declaring a program: variables, placeholders, reduce axes and formulas.

Promotion of dtypes in formulas is that of TVM v0.8, written down and implemented in `ir/build.py`:

- an integer with a float takes the float's dtype (int64 with float16 is float16);
- otherwise the wider dtype; at equal width, unsigned (int32 with uint32 is uint32);
- bool in arithmetic counts as int32; in comparisons with bool and in logic it stays bool;
- float16 with bfloat16 is an error that says to cast;
- a Python int takes the dtype of the other operand if it fits, else an error names the cast; a Python float takes a float
  operand's dtype, and beside an integer it is float32, so that the integer is cast.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any, overload

from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ExpressionError, ShapeError, TedslError, entry
from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.dtype import FLOAT32, INT32
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import Expr, SizeVar, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.operators import LazyEqual
from tedsl.ir.script import shown
from tedsl.ir.source_line import user_line
from tedsl.ir.types import PointerType, PrimType
from tedsl.ir.wellformed import check_name
from tedsl.lang.formula import check_formula
from tedsl.lang.graph import producers_first
from tedsl.lang.intrinsics.tensor_compute import intrinsic_op
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrinCall
from tedsl.lang.operation import ComputeOp, PlaceholderOp, as_attrs, note_axis, note_reduction, note_thread_axis, reducers_over
from tedsl.lang.scope import current_tag
from tedsl.lang.tensor import Tensor, TensorSlice
from tedsl.lang.value import as_value, is_array, refuse_array

Value = Expr | TensorSlice | LazyEqual | IterVar | TensorIntrinCall | float  # what a formula may return, for type checkers
Values = tuple[Value, ...] | list[Value]


@entry
def var(name: str = "tindex", dtype: object = INT32) -> Var:
    """A scalar variable: the caller passes its value, or the shapes of the arrays in the call determine it.

    dtype: a dtype, or a type of `tedsl.ir`: `te.var("p", ir.PointerType(ir.PrimType("float32")))`.
    """
    return Var(name, _of_type(dtype))


@entry
def size_var(name: str = "size", dtype: object = INT32) -> SizeVar:
    """A `var` that is known to be at least 0."""
    return SizeVar(name, _of_type(dtype))


def _of_type(given: object) -> Any:
    return given if isinstance(given, (PrimType, PointerType)) else as_dtype(given)


@entry
def placeholder(shape: Any, dtype: object = None, name: str = "placeholder") -> Tensor[PlaceholderOp]:
    """A tensor that the caller passes. shape: a sequence of ints and integer expressions, or one of them; () is a scalar.

    dtype None is float32.

    Raises ShapeError for a dimension that is not an integer from 0 on, DTypeError for an unknown dtype.
    """
    where = opening("placeholder", name)
    of = FLOAT32 if dtype is None else as_dtype(dtype)
    if of.is_handle:
        raise DTypeError(f"{where}: a tensor holds numbers or bool, not {of}")
    return Tensor(PlaceholderOp(name, check_shape(shape, where), of))


@entry
def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "") -> IterVar:
    """An axis to reduce over, for `axis=` of te.sum and its kin. dom: (begin, end), or a Range.

    Raises ArgumentTypeError for a domain that is not a pair, DTypeError for bounds that are not integers, ShapeError for an end
    before the begin.
    """
    where = opening("reduce_axis", name)
    if isinstance(dom, Range):
        domain = dom
    elif isinstance(dom, (tuple, list)) and len(dom) == 2:
        begin, end = (as_value(build.whole_number(bound), where) for bound in dom)
        for bound in (begin, end):
            if not bound.dtype.is_integer:
                raise DTypeError(f"{where}: the bound {shown(bound)} is of dtype {bound.dtype}, not an integer",
                                 hint="use // for bounds that are computed")
        domain = Range(*build.match_operands(begin, end))  # of one dtype, so that min and extent have it too
    else:
        raise ArgumentTypeError(f"{where}: the domain is {shown(dom)}, not a pair (begin, end)",
                                hint="write te.reduce_axis((0, n))")
    extent = build.as_int(domain.extent)
    if extent is not None and extent < 0:
        raise ShapeError(f"{where}: from {shown(domain.min)} there are {extent} steps to the end",
                         hint="write (begin, end) with begin <= end")
    assert domain.extent is not None
    return note_axis(IterVar(domain, Var(name, domain.extent.dtype), IterType.COMM_REDUCE, thread_tag))


@entry
def thread_axis(dom: Any = None, tag: Any = "", name: str = "") -> IterVar:
    """An axis of threads, to bind loops to: te.thread_axis("threadIdx.x"), or with its range first. A str first is the tag.

    Raises ArgumentError without a tag, ArgumentTypeError for a domain that is not a pair.
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if not isinstance(tag, str) or not isinstance(name, str):
        raise ArgumentTypeError(f"thread_axis: tag and name are strings, got {tag!r} and {name!r}",
                                hint='write te.thread_axis("threadIdx.x")')
    if not tag:
        raise ArgumentError("thread_axis: the tag is missing", hint='write te.thread_axis("threadIdx.x")')
    if isinstance(dom, (tuple, list)) and len(dom) == 2:
        dom = Range(*dom)
    if dom is not None and not isinstance(dom, Range):
        raise ArgumentTypeError(f"thread_axis {tag}: the domain is {shown(dom)}, not a pair (begin, end)",
                                hint="leave it out, or write (0, n)")
    return note_thread_axis(IterVar(dom, Var(name or tag), IterType.THREAD_INDEX, tag))


@overload
def compute(shape: Any, fcompute: Callable[..., Value], name: str = "compute", tag: str = "",
            attrs: Mapping[str, Any] | None = None, *, info: Any = None, axes: str | Sequence[str] = "") \
        -> Tensor[ComputeOp]: ...
@overload
def compute(shape: Any, fcompute: Callable[..., Values], name: str = "compute", tag: str = "",
            attrs: Mapping[str, Any] | None = None, *, info: Any = None, axes: str | Sequence[str] = "") \
        -> tuple[Tensor[ComputeOp], ...]: ...
@entry
def compute(shape: Any, fcompute: Callable[..., Any], name: str = "compute", tag: str = "",
            attrs: Mapping[str, Any] | None = None, *, info: Any = None, axes: str | Sequence[str] = "") -> Any:
    """A new tensor defined by a formula: its element [i, j] is `fcompute(i, j)`.

    shape: as of te.placeholder. fcompute: takes one index per dimension (or *indices) and returns the value; a tuple of values
    makes several tensors, which are returned as a tuple. A reduction (te.sum, te.max, ...) must be the whole value.
    tag, attrs: for schedules to find the operation by. info (ours): a typed record of the operator family, `op.info`.
    axes (ours): names of the axes, with their numbers: "ax" makes ax0, ax1, ...; or a name for each; the default is the
    parameters of fcompute.
    The dtype is that of the value: an integer with a float takes the float's dtype, otherwise the wider, at equal width
    unsigned; a Python number takes the other operand's dtype if it fits. All rules: the head of `lang/declare.py`.
    """
    where = opening("compute", name)
    tag = current_tag(tag, where)
    dims = check_shape(_whole_numbers(shape), where)
    names = _names(axes, len(dims), where) if axes else axis_names(fcompute, len(dims), where, fewer=True)
    op = define(dims, fcompute, names, name, tag=tag, attrs=attrs, info=info)
    outputs = tuple([Tensor(op, i) for i in range(op.num_outputs)])
    return outputs[0] if len(outputs) == 1 else outputs


def _names(axes: str | Sequence[str], rank: int, where: str) -> Sequence[str]:
    if isinstance(axes, str):
        return [f"{axes}{d}" for d in range(rank)]
    if len(axes) != rank:
        raise ShapeError(f"{where}: {len(axes)} names of axes for {rank} dimensions")
    return axes


def define(shape: tuple[Expr, ...], fcompute: Callable[..., Any], names: Sequence[str], name: str, *, tag: str = "",
           attrs: Mapping[str, Any] | None = None, info: Any = None) -> ComputeOp:
    """The operation of `compute`, with the names of its axes given: the formula is evaluated and checked."""
    where = opening("compute", name)
    axis = Array([_axis(extent, axis_name) for extent, axis_name in zip(shape, names)])
    value = _call(fcompute, axis, name, where) if len(axis) == len(shape) else _intrinsic_call(fcompute, axis, name, shape)
    if isinstance(value, TensorIntrinCall):
        op: ComputeOp = intrinsic_op(value, shape, axis, name, where, tag=tag, attrs=attrs, source=user_line())
    else:
        body = _values(value, where)
        op = ComputeOp(name, tag, as_attrs(attrs), axis, check_formula(body, axis, where), body, info, user_line())
    check_axes_are_free(op, where)
    return op


def _intrinsic_call(fcompute: Callable[..., Any], axis: tuple[IterVar, ...], name: str, shape: tuple[Expr, ...]) -> Any:
    """The intrinsic call returned by a function that takes fewer indices than there are dimensions; refuses any other value."""
    where = opening("compute", name)
    wrong = _wrong_rank([a.name for a in axis], str(len(axis)), len(shape), where)
    try:
        value = _call(fcompute, axis, name, where)
    except TedslError as error:
        raise error if "intrinsic" in error.problem else wrong from error
    if not isinstance(value, TensorIntrinCall):
        raise wrong
    return value


def check_axes_are_free(op: ComputeOp, where: str) -> None:
    """Refuses a reduce axis over which a compute read by `op` already reduces; registers those of `op`."""
    if not op.reduce_axis:
        return
    for axis in op.reduce_axis:
        others = reducers_over(axis)
        if others:
            read = set(producers_first([op]))
            for other in others:
                if other in read:
                    raise ExpressionError(f"{where}: the reduce axis {axis.name} is already used by the compute {other.name}, "
                                          f"which {op.name} reads", hint="declare another te.reduce_axis for this one")
    note_reduction(op)


def check_shape(shape: Any, where: str) -> tuple[Expr, ...]:
    """`shape` as integer expressions of int32 or int64; ShapeError where it is not a sequence of integers."""
    if isinstance(shape, (str, bytes, Tensor)):
        raise ShapeError(f"{where}: the shape is {shown(shape)}", hint="write a tuple of ints and te.var, for example (n, 4)")
    if shape is None:
        raise ShapeError(f"{where}: the shape is None", hint="a scalar has the shape ()")
    dims = (shape,) if isinstance(shape, Expr) else build.as_dims(shape)
    for position, dim in enumerate(dims):
        if isinstance(dim, (float, str)) or dim is None or isinstance(dim, (Tensor, list, tuple)):
            raise ShapeError(f"{where}: dimension {position} of the shape is {shown(dim)} ({type(dim).__name__}), not "
                             "an integer",
                             hint="write // instead of / for dimensions that are computed" if isinstance(dim, float)
                             else "write ints, te.var or integer expressions of them")
    extents = build.as_shape(dims, where)
    for position, expr in enumerate(extents):
        if not expr.dtype.is_int or expr.dtype.bits < 32:
            raise ShapeError(f"{where}: dimension {position} of the shape is {shown(expr)} of dtype {expr.dtype}",
                             hint="dimensions are int32 or int64: declare te.var('n', 'int32'), or cast with .astype")
    return extents


def _whole_numbers(shape: Any) -> Any:
    """`shape` with integral floats as ints: te.compute((n / 4, 4), ...) with a Python n is common in TVM programs."""
    if not isinstance(shape, (tuple, list)):
        return shape
    return tuple(map(build.whole_number, shape))


def opening(what: str, name: object) -> str:
    """The beginning of an error message: the kind of declaration, and its name if the user gave one."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"{what}: the name is a str, not {name!r}", hint="write name='B' after the other arguments")
    check_name(name, f"a {what}")
    return what if name == what else f"{what} {name}"


def _axis(extent: Expr, name: str) -> IterVar:
    return note_axis(IterVar(Range.from_min_extent(build.const(0, extent.dtype), extent), Var(name, extent.dtype)))


def axis_names(fcompute: Callable[..., Any], rank: int, where: str, fewer: bool = False) -> list[str]:
    """The names of the axes: those of the function's parameters; i0, i1, ... for what *indices takes.

    fewer: the function may take fewer indices than there are dimensions; it then returns the call of an intrinsic.
    """
    if not callable(fcompute):
        if is_array(fcompute):
            refuse_array(fcompute, where)
        raise ArgumentTypeError(f"{where}: the formula is {shown(fcompute)}, not a function",
                                hint="write lambda i: ... with one index per dimension")
    names, variadic = _parameters(fcompute)
    if by_name := _required_by_name(fcompute):
        raise ArgumentTypeError(f"{where}: the function takes {', '.join(by_name)} by name, and indices are given by position",
                                hint=f"leave out the star: lambda {', '.join([*names, *by_name])}: ...")
    if variadic and len(names) <= rank:
        return names + [f"i{position}" for position in range(rank - len(names))]
    if len(names) > rank or (len(names) < rank and not fewer):
        raise _wrong_rank(names, f"at least {len(names)}" if variadic else str(len(names)), rank, where)
    return names


def _wrong_rank(names: Sequence[str], takes: str, rank: int, where: str) -> ShapeError:
    return ShapeError(f"{where}: the shape has {rank} dimension{'s' * (rank != 1)} and the function takes {takes} "
                      f"ind{'ex' if takes == '1' else 'ices'} ({', '.join(names) or 'none'})",
                      hint=f"write a function of {rank}: lambda {', '.join('ijklmnopqr'[:rank])}: ..." if 0 < rank <= 10
                      else "write lambda *i: ..." if rank else "write lambda: ...")


def _parameters(fcompute: Callable[..., Any]) -> tuple[list[str], bool]:
    """The positional parameters without a default, and whether there is a *parameter."""
    if type(fcompute) is FunctionType and not hasattr(fcompute, "__wrapped__"):
        code = fcompute.__code__
        return list(code.co_varnames[:code.co_argcount - len(fcompute.__defaults__ or ())]), bool(code.co_flags & CO_VARARGS)
    try:
        given = inspect.signature(fcompute).parameters.values()
    except ValueError:  # some of Python's own
        raise ArgumentTypeError(f"{fcompute!r} does not tell its parameters", hint="write a function: lambda i: ...") from None
    names = [p.name for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return names, any(p.kind is p.VAR_POSITIONAL for p in given)


def _required_by_name(fcompute: Callable[..., Any]) -> list[str]:
    """The parameters without a default that are given by name alone."""
    if type(fcompute) is FunctionType and not fcompute.__code__.co_kwonlyargcount and not hasattr(fcompute, "__wrapped__"):
        return []
    given = inspect.signature(fcompute).parameters.values()
    return [p.name for p in given if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


_INDEXING_DATA = re.compile(r"only integers, slices|indices must be integers or slices, not|only integer scalar arrays")

_COUNTING = re.compile(r"'(Var|IterVar|\w+)' object cannot be interpreted as an integer")


def _call(fcompute: Callable[..., Any], axis: tuple[IterVar, ...], name: str, where: str) -> Any:
    """The result of `fcompute` for the variables of the axes; Python's errors at frequent mistakes become errors with a
    hint.
    """
    try:
        return fcompute(*[a.var for a in axis])
    except NameError as error:
        quoted = re.search(r"'(\w+)'", str(error))
        missing = quoted[1] if quoted else ""
        if missing == name:
            raise ExpressionError(f"{where}: the formula reads {name}, the tensor that it defines: a cyclic definition",
                                  hint="a tensor is a function of other tensors; a recurrence is written with te.scan, "
                                       "a sum with te.sum over a te.reduce_axis") from error
        raise ExpressionError(f"{where}: the formula uses the name {missing!r}, which is not defined",
                              hint="check the spelling; if it is the tensor that this compute defines, the definition is "
                                   "cyclic: a tensor is a function of other tensors; recurrences have te.scan") from error
    except (IndexError, TypeError) as error:
        if not isinstance(error, TedslError) and _COUNTING.search(str(error)):
            raise ArgumentTypeError(f"{where}: the formula counts with Python up to an expression, which has no value yet",
                                    hint="sum over an axis: k = te.reduce_axis((0, n), 'k'), te.sum(A[k], axis=k), with "
                                         "te.if_then_else(k < i, A[k], 0.0) for a part of it; range takes numbers") from error
        if isinstance(error, DTypeError) or not _INDEXING_DATA.search(str(error)):
            raise
        raise ArgumentTypeError(f"{where}: the formula indexes a numpy array or a list with an axis",
                                hint="declare te.placeholder(shape, dtype) instead, and pass the array when the built "
                                     "function is called") from error


def _values(value: Any, where: str) -> tuple[Expr, ...]:
    """The value, or tuple of values, that the function returned, as expressions."""
    if value is None:
        raise ExpressionError(f"{where}: the function returned None", hint="does it end with `return`?")
    items = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not items:
        raise ExpressionError(f"{where}: the function returned an empty tuple", hint="return one value for each output")
    values = []
    for item in items:
        if isinstance(item, (str, bytes, dict, set)) or (callable(item) and not isinstance(item, (Expr, Tensor))):
            raise ExpressionError(f"{where}: the function returned {shown(item)} ({type(item).__name__}), not a value",
                                  hint="return a number or an expression of elements such as A[i] + 1")
        expr = as_value(item, where)
        if expr.dtype.is_handle:
            raise DTypeError(f"{where}: the value {shown(item)} is of dtype {expr.dtype}: a tensor holds numbers or bool")
        values.append(expr)
    return tuple(values)
