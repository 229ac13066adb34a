"""The operators and methods of tensors: as numpy's, each an operation on formulas."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy

import topi
from tedsl.autograd import formulas, numpy_functions
from tedsl.autograd.operation import Operation, op
from tedsl.errors import ArgumentTypeError, ShapeError


def _ops(functions: Sequence[Callable[..., Any]]) -> list[Operation]:
    return [op(function) for function in functions]


ADD, SUBTRACT, MULTIPLY, DIVIDE = _ops((topi.add, topi.subtract, topi.multiply, topi.divide))
FLOOR_DIVIDE, MOD = op(topi.floor_divide), op(topi.floor_mod)
POWER, POWER_OF_CONSTANT = op(topi.power), op(formulas.power, "Pow")
MAXIMUM, MINIMUM = op(topi.maximum), op(topi.minimum)
NEGATIVE, ABS = op(topi.negative), op(topi.abs)
MATMUL, RESHAPE, TRANSPOSE, MEAN = _ops((formulas.matmul, formulas.reshape, formulas.transpose, formulas.mean))
PART, PLACED, VARIANCE = op(formulas.part, "Slice"), op(formulas.placed, "Placed"), op(formulas.variance)
TAKE, CLONE, CAST = op(topi.take), op(topi.identity, "Clone"), op(topi.cast)
SUM, MAX, MIN, PROD, ARGMAX, ARGMIN = _ops((topi.sum, topi.max, topi.min, topi.prod, topi.argmax, topi.argmin))
EXP, LOG, SQRT, TANH, SIGMOID, RELU = _ops((topi.exp, topi.log, topi.sqrt, topi.tanh, topi.sigmoid, topi.nn.relu))
SIN, COS, ERF, RSQRT, CLIP = _ops((topi.sin, topi.cos, topi.erf, topi.rsqrt, topi.clip))
SOFTMAX, LOG_SOFTMAX, SQUEEZE = op(topi.nn.softmax), op(topi.nn.log_softmax), op(topi.squeeze)
EXPAND_DIMS, BROADCAST_TO, CUMSUM = _ops((topi.expand_dims, topi.broadcast_to, topi.cumsum))
EQUAL, NOT_EQUAL, LESS, LESS_EQUAL = _ops((topi.equal, topi.not_equal, topi.less, topi.less_equal))
GREATER, GREATER_EQUAL = op(topi.greater), op(topi.greater_equal)


class Operators:
    """What tensors with values, and traced ones, compute. A number beside a tensor is of the tensor's dtype."""

    __slots__ = ()

    def _operand(self, other: Any) -> Any:
        """`other` as the second operand of an operator of this tensor. Raises ArgumentTypeError for what is no operand."""
        raise NotImplementedError

    def _extents(self) -> tuple[int, ...]:
        raise NotImplementedError

    def _rows(self, index: Any) -> Any:
        """A tensor of integers as places in the first dimension. Raises ShapeError where values are outside of it."""
        return index

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return numpy_functions.of_elements(ufunc, method, self, operands, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return numpy_functions.of_arrays(function, self, arguments, options)

    def __add__(self, other: Any) -> Any:
        return ADD(self, other if other.__class__ is self.__class__ else self._operand(other))

    def __sub__(self, other: Any) -> Any:
        return SUBTRACT(self, other if other.__class__ is self.__class__ else self._operand(other))

    def __rsub__(self, other: Any) -> Any:
        return SUBTRACT(self._operand(other), self)

    def __mul__(self, other: Any) -> Any:
        return MULTIPLY(self, other if other.__class__ is self.__class__ else self._operand(other))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Any:
        return divided(self, other if other.__class__ is self.__class__ else self._operand(other))

    def __rtruediv__(self, other: Any) -> Any:
        return divided(self._operand(other), self)

    def __floordiv__(self, other: Any) -> Any:
        return FLOOR_DIVIDE(self, self._operand(other))

    def __rfloordiv__(self, other: Any) -> Any:
        return FLOOR_DIVIDE(self._operand(other), self)

    def __mod__(self, other: Any) -> Any:
        return MOD(self, self._operand(other))

    def __rmod__(self, other: Any) -> Any:
        return MOD(self._operand(other), self)

    def __pow__(self, other: Any) -> Any:
        if other.__class__ is int or other.__class__ is float:
            return POWER_OF_CONSTANT(self, other)
        return POWER(self, self._operand(other))

    def __rpow__(self, other: Any) -> Any:
        return POWER(self._operand(other), self)

    def __matmul__(self, other: Any) -> Any:
        return MATMUL(self, self._operand(other))

    def __rmatmul__(self, other: Any) -> Any:
        return MATMUL(self._operand(other), self)

    def __neg__(self) -> Any:
        return NEGATIVE(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return ABS(self)

    def __lt__(self, other: Any) -> Any:
        return LESS(self, self._operand(other))

    def __le__(self, other: Any) -> Any:
        return LESS_EQUAL(self, self._operand(other))

    def __gt__(self, other: Any) -> Any:
        return GREATER(self, self._operand(other))

    def __ge__(self, other: Any) -> Any:
        return GREATER_EQUAL(self, self._operand(other))

    def __eq__(self, other: Any) -> Any:
        return NotImplemented if other is None else EQUAL(self, self._operand(other))

    def __ne__(self, other: Any) -> Any:
        return NotImplemented if other is None else NOT_EQUAL(self, self._operand(other))

    __hash__ = object.__hash__  # by identity, so that tensors can be keys

    def __getitem__(self, index: Any) -> Any:
        given = index if isinstance(index, tuple) else (index,)
        if len(given) == 1 and (hasattr(given[0], "_operand") or (isinstance(given[0], numpy.ndarray) and given[0].ndim)):
            return TAKE(self, self._rows(given[0]), axis=0, mode="wrap")
        return PART(self, whole_index(given, self._extents()))

    # --- methods -----------------------------------------------------------------------------------------------------

    def sum(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        """The sum along `axis`; of bool how many elements are true."""
        return SUM(_numbers(self), _axes(axis), keepdims)

    def mean(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        return MEAN(_numbers(self), _axes(axis), keepdims)

    def var(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        return VARIANCE(self, _axes(axis), keepdims)

    def max(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        return MAX(self, _axes(axis), keepdims)

    def min(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        return MIN(self, _axes(axis), keepdims)

    def prod(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        return PROD(self, _axes(axis), keepdims)

    def argmax(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        return ARGMAX(self, _axes(axis), keepdims)

    def argmin(self, axis: formulas.Axis = None, keepdims: bool = False) -> Any:
        return ARGMIN(self, _axes(axis), keepdims)

    def cumsum(self, axis: int) -> Any:
        return CUMSUM(self, axis)

    def reshape(self, *shape: Any) -> Any:
        return RESHAPE(self, _listed(shape))

    def transpose(self, *axes: Any) -> Any:
        return TRANSPOSE(self, _listed(axes) if axes else None)

    @property
    def T(self) -> Any:
        return TRANSPOSE(self)

    def squeeze(self, axis: formulas.Axis = None) -> Any:
        return SQUEEZE(self, _axes(axis))

    def expand_dims(self, axis: int) -> Any:
        return EXPAND_DIMS(self, axis)

    def broadcast_to(self, *shape: Any) -> Any:
        return BROADCAST_TO(self, _listed(shape))

    def flatten(self) -> Any:
        return RESHAPE(self, (-1,))

    def matmul(self, other: Any) -> Any:
        return MATMUL(self, self._operand(other))

    def maximum(self, other: Any) -> Any:
        return MAXIMUM(self, self._operand(other))

    def minimum(self, other: Any) -> Any:
        return MINIMUM(self, self._operand(other))

    def clip(self, low: float, high: float) -> Any:
        return CLIP(self, low, high)

    def astype(self, dtype: Any) -> Any:
        """The elements converted; gradients are converted back."""
        return CAST(self, str(dtype))

    def clone(self) -> Any:
        """A copy, through which gradients pass."""
        return CLONE(self)

    def abs(self) -> Any:
        return ABS(self)

    def exp(self) -> Any:
        return EXP(self)

    def log(self) -> Any:
        return LOG(self)

    def sqrt(self) -> Any:
        return SQRT(self)

    def rsqrt(self) -> Any:
        return RSQRT(self)

    def sin(self) -> Any:
        return SIN(self)

    def cos(self) -> Any:
        return COS(self)

    def tanh(self) -> Any:
        return TANH(self)

    def erf(self) -> Any:
        return ERF(self)

    def sigmoid(self) -> Any:
        return SIGMOID(self)

    def relu(self) -> Any:
        return RELU(self)

    def softmax(self, axis: int = -1) -> Any:
        return SOFTMAX(self, axis)

    def log_softmax(self, axis: int = -1) -> Any:
        return LOG_SOFTMAX(self, axis)


def divided(a: Any, b: Any) -> Any:
    """a / b; the quotient of integers is a float32."""
    tensors: list[Any] = [one for one in (a, b) if isinstance(one, Operators)]  # a function that is traced may hold numbers
    if any(tensor.dtype.is_float for tensor in tensors):
        return DIVIDE(a, b)
    return DIVIDE(CAST(a, "float32"), b) if a is tensors[0] else DIVIDE(a, CAST(b, "float32"))


def _numbers(x: Any) -> Any:
    return CAST(x, "int64") if x.dtype == "bool" else x


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _listed(given: Sequence[Any]) -> tuple[int, ...]:
    """The numbers given one by one, or as one tuple or list."""
    inner = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    return tuple(operator.index(one) for one in inner)


def whole_index(given: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index as integers from 0, (start, count, step) for slices, and None; without an ellipsis."""
    count = sum(one is not None and one is not Ellipsis for one in given)
    dots = [at for at, one in enumerate(given) if one is Ellipsis]
    if count > len(shape) or len(dots) > 1:
        raise ShapeError(f"{count} indices for a tensor with {len(shape)} dimension{'s' * (len(shape) != 1)}")
    at = dots[0] if dots else len(given)
    listed = [*given[:at], *[slice(None)] * (len(shape) - count), *given[at + 1:]]
    extents = iter(shape)
    return tuple(None if one is None else _place(one, next(extents)) for one in listed)


def _range_of(one: slice, extent: int) -> tuple[int, int, int]:
    """The first element of a slice, the end, and the step."""
    try:
        return one.indices(extent)
    except ValueError:
        raise ShapeError("the step of a slice is 0", hint="x[::-1] goes backwards by one") from None
    except TypeError:
        raise ArgumentTypeError(f"{one!r} is no slice of a tensor", hint="its parts are integers or None") from None


def _place(one: Any, extent: int) -> Any:
    if isinstance(one, slice):
        start, stop, step = _range_of(one, extent)
        count = len(range(start, stop, step))
        return (start, count, step) if count else (0, 0, 1)
    if not hasattr(one, "__index__"):
        raise ArgumentTypeError(f"{one!r} is no index of a tensor",
                                hint="integers, slices, ... and None are, and one tensor of integers alone: x[rows]")
    at = operator.index(one)
    if not -extent <= at < extent:
        raise ShapeError(f"the index {at} is outside of a dimension of {extent}")
    return at % extent
