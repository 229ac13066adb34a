"""Tensor: values, and the graph of what they were computed from."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy

from tedsl.autograd import differentiate
from tedsl.autograd.formula import numpy_dtype
from tedsl.autograd.kinds import Array, Kind, kind_of
from tedsl.autograd.modes import MODE
from tedsl.autograd.node import Handle
from tedsl.autograd.operators import ADD, MULTIPLY, PLACED, POWER, POWER_OF_CONSTANT, SUBTRACT, Operators, divided, whole_index
from tedsl.autograd.recording import OperationNode
from tedsl.autograd.value import Value, result
from tedsl.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    TedslError,
    missing_attribute,
    type_in_words,
)
from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as dtype_of
from tedsl.runtime.devices.device import Device, cpu

_NUMBERS: dict[Any, Tensor] = {}  # operands that programs write again and again
_INSTEAD = {"view": "reshape(...)", "unsqueeze": "expand_dims(axis)", "permute": "transpose(...)", "cpu": "detach()",
            "to": 'astype("float64")', "type": 'astype("float64")', "float": 'astype("float32")', "double": 'astype("float64")',
            "half": 'astype("float16")', "long": 'astype("int64")', "dim": "ndim", "numel": "size", "mm": "matmul(...)",
            "clamp": "clip(low, high)", "pow": "x ** y", "add_": "x += y", "sub_": "x -= y", "mul_": "x *= y"}
_HINT_LEAF = "change it inside of `with no_grad():`, or compute a new tensor from it"


class Tensor(Operators, Value):
    """Values in an array, with operators as numpy's. What is computed from a tensor with `requires_grad` is recorded; then
    `backward()` of a result adds its gradient to `grad`.

    grad_fn: the node of the graph that made it, None for a leaf. output_nr: which of the results of that node it is. grad: the
    gradient so far, a tensor, or None; it is never cleared by itself.
    """

    __slots__ = ()

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        array = data._array if isinstance(data, Value) else data
        wanted = None if dtype is None else _numpy_dtype(dtype)
        if wanted is None and not isinstance(array, (numpy.ndarray, numpy.generic)):
            array = _from_python(array)
            wanted = numpy.dtype("float32") if array.dtype == "float64" else array.dtype
        self._fill(numpy.array(array, wanted), requires_grad)

    def _fill(self, array: Array, requires_grad: bool) -> None:
        kind = kind_of(array)
        self._array, self._kind = array, kind
        self._changes = self._accumulator = self._held = self.grad = self.grad_fn = None
        self.output_nr = 0
        self._requires_grad = False
        if requires_grad:
            self.requires_grad = True

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def data(self) -> Tensor:
        """The same memory outside of the graph; changes in it are not counted."""
        made: Tensor = result(Tensor, self._array, self._kind, None, 0)
        return made

    @data.setter
    def data(self, values: Any) -> None:
        array = values._array if isinstance(values, Value) else numpy.asarray(values)
        if kind_of(array) is not self._kind:
            raise ShapeError(f"data: {kind_of(array)} cannot be the data of a tensor {self._kind}")
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._kind.shape

    @property
    def dtype(self) -> DType:
        return self._kind.dtype

    @property
    def ndim(self) -> int:
        return len(self._kind.shape)

    @property
    def size(self) -> int:
        return int(self._array.size)

    @property
    def device(self) -> Device:
        return cpu()

    @property
    def requires_grad(self) -> bool:
        """Whether what is computed from it is recorded. It can be set for leaves of floats."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not self._kind.is_float:
            raise DTypeError(f"requires_grad: a tensor of dtype {self.dtype} has no gradient; only floats have",
                             hint='convert it: x.astype("float32")')
        if self.grad_fn is not None and not value:
            raise TedslError(f"requires_grad: the result of {self.grad_fn.name()} cannot be taken out of the graph",
                             hint="x.detach() is the same values outside of it")
        self._requires_grad = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Sets requires_grad; returns the tensor."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no node made it. Only leaves keep their gradient, and others that `retain_grad`."""
        return self.grad_fn is None

    @property
    def version(self) -> int:
        """How often its elements were changed in place, by it or by a tensor that shares its memory."""
        return 0 if self._changes is None else self._changes.count

    _version = version

    # --- values -------------------------------------------------------------------------------------------------------

    def numpy(self) -> Array:
        """The array itself, not a copy. For a tensor in the graph: of `x.detach()`."""
        if self._requires_grad:
            raise TedslError("numpy: what is done to the array of a tensor that requires a gradient is not recorded",
                             hint="x.detach().numpy()")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array.copy() if copy else array if dtype is None else array.astype(dtype)

    def item(self) -> Any:
        """The only element, as a number of Python."""
        if self._array.size != 1:
            raise ShapeError(f"item: the tensor has shape {self.shape}, not one element", hint="x.numpy() is the array")
        return self._array.item()

    def tolist(self) -> Any:
        return self._array.tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.is_float:
            raise ArgumentTypeError(f"a tensor of {self.dtype} is no index", hint="int(x) cuts its value off")
        return int(self.item())

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form else repr(self)

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a tensor", name, self, _INSTEAD)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ShapeError(f"a tensor of shape {self.shape} is neither true nor false",
                             hint="ask its array: x.detach().numpy().any(), or .all()")
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("a tensor of no dimensions has no len()")
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter([self[at] for at in range(len(self))])

    def __repr__(self) -> str:
        values = numpy.array2string(self._array, separator=", ", prefix="tensor(")
        graph = f", grad_fn={self.grad_fn!r}" if self.grad_fn is not None else ", requires_grad=True" * self._requires_grad
        dtype = "" if self.dtype == "float32" else f', dtype="{self.dtype}"'
        return f"tensor({values}{dtype}{graph})"

    def _extents(self) -> tuple[int, ...]:
        return self._kind.shape

    def _rows(self, index: Any) -> Any:
        places = self._operand(index)
        if not self.shape:
            raise ShapeError("a tensor without dimensions has no rows", hint="x.item() is its value")
        check_places(places, -self.shape[0], self.shape[0], "the index")
        return places

    def _operand(self, other: Any) -> Any:
        if isinstance(other, Value):
            return other
        if isinstance(other, (bool, int, float)):
            known = _NUMBERS.get((other.__class__, other, self._kind))
            return _number(other, self._kind) if known is None else known
        if isinstance(other, (numpy.ndarray, numpy.generic)):
            return from_numpy(numpy.asarray(other))
        return _refused(other)

    # --- the graph ----------------------------------------------------------------------------------------------------

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
        """Adds the gradient of this tensor to `grad` of all leaves; see `autograd.backward`."""
        differentiate.backward(self, gradient if gradient is None else [gradient], retain_graph, create_graph)

    def detach(self) -> Tensor:
        """The same memory outside of the graph. Changes in place count for both."""
        made = self.data
        made._changes = self.changes()
        return made

    def register_hook(self, hook: Callable[[Tensor], Any]) -> Handle:
        """`hook(gradient)` is called when the gradient by this tensor is complete; a tensor that it returns replaces it."""
        if not self._requires_grad:
            raise TedslError("register_hook: the tensor requires no gradient", hint="set requires_grad first")
        node, number = self.edge()
        if self.grad_fn is None:
            self._held = node  # an accumulator with hooks lives as long as the leaf
        return Handle.into(node.hooked().of_outputs.setdefault(number, {}), hook)

    def retain_grad(self) -> None:
        """Keeps the gradient in `grad` of a tensor that is no leaf."""
        if self.grad_fn is not None:
            self.grad_fn.hooked().retained[self.output_nr] = weakref.ref(self)

    # --- changes in place ---------------------------------------------------------------------------------------------

    def _become(self, made: Any, what: str) -> Tensor:
        """Takes the elements of `made`, which was computed from it, and its place in the graph."""
        if made._kind is not self._kind:
            raise ShapeError(f"{what}: the result {made._kind} does not fit into the tensor {self._kind}",
                             hint="compute a new tensor: x = x + y for x += y")
        self._refuse_fixed(what)
        numpy.copyto(self._array, made._array)
        self.count_change()
        if made.grad_fn is not None:
            _moved(made, self)
        return self

    def _refuse_fixed(self, what: str) -> None:
        if not self._array.flags.writeable:
            raise ArgumentError(f"{what}: the array of the tensor, {self._kind}, is read-only",
                                hint="change a copy: x.clone(), or autograd.tensor(array), which copies")

    def _in_place(self, operation: Any, what: str, *others: Any) -> Tensor:
        _refuse_leaf(self, what)
        if MODE.recording and (self._requires_grad or any(isinstance(one, Value) and one._requires_grad for one in others)):
            before: Any = result(Tensor, self._array.copy(), self._kind, self.grad_fn, self.output_nr)
            return self._become(operation(before, *[before if one is self else one for one in others]), what)
        return self._become(operation(self, *others), what)

    def __iadd__(self, other: Any) -> Tensor:
        return self._in_place(ADD, "x += y", self._operand(other))

    def __isub__(self, other: Any) -> Tensor:
        return self._in_place(SUBTRACT, "x -= y", self._operand(other))

    def __imul__(self, other: Any) -> Tensor:
        return self._in_place(MULTIPLY, "x *= y", self._operand(other))

    def __itruediv__(self, other: Any) -> Tensor:
        return self._in_place(divided, "x /= y", self._operand(other))

    def __ipow__(self, other: Any) -> Tensor:
        if other.__class__ is int or other.__class__ is float:
            return self._in_place(POWER_OF_CONSTANT, "x **= y", other)
        return self._in_place(POWER, "x **= y", self._operand(other))

    def __setitem__(self, index: Any, value: Any) -> None:
        _refuse_leaf(self, "x[i] = y")
        given = index if isinstance(index, tuple) else (index,)
        value = self._operand(value)
        if MODE.recording and (self._requires_grad or value._requires_grad):
            self._in_place(PLACED, "x[i] = y", value, whole_index(given, self.shape))
            return
        at = tuple(one._array if isinstance(one, Value) else one for one in given)
        self._refuse_fixed("x[i] = y")
        try:
            self._array[at] = value._array
        except (ValueError, IndexError) as cause:
            raise ShapeError(f"x[i] = y: {cause}") from None
        self.count_change()

    def copy_(self, values: Any) -> Tensor:
        """Takes the elements of `values`, converted to its dtype and broadcast."""
        self[...] = values
        return self

    def zero_(self) -> Tensor:
        """Sets all elements to 0."""
        self[...] = 0
        return self


Value.plain = Tensor


def _moved(made: Any, target: Tensor) -> None:
    """The graph that leads to `made` leads to `target`."""
    target.grad_fn, target.output_nr, target._requires_grad = made.grad_fn, made.output_nr, True
    target._accumulator = None
    node = made.grad_fn
    if isinstance(node, OperationNode) and node.saved:  # its result is kept: in the memory that is now the target's
        changes = target.changes()
        for at, array in enumerate(node.saved):
            if array is made._array:
                node.saved = (*node.saved[:at], target._array, *node.saved[at + 1:])
                node.versions = (*node.versions[:2 * at], changes, changes.count, *node.versions[2 * at + 2:])


def _refuse_leaf(tensor: Tensor, what: str) -> None:
    if tensor._requires_grad and tensor.grad_fn is None and MODE.recording:
        raise TedslError(f"{what}: the tensor is a leaf that requires a gradient, and cannot be changed in place",
                         hint=_HINT_LEAF)


def _number(number: Any, kind: Kind) -> Tensor:
    """A number as an operand beside a tensor: of its dtype; of float32 for a float beside integers."""
    made = from_numpy(numpy.array(number, "float32" if isinstance(number, float) and not kind.is_float else kind.numpy_dtype))
    if number and number == number:  # 0.0 is the same key as -0.0, and NaN is none
        if len(_NUMBERS) > 1000:
            _NUMBERS.clear()
        _NUMBERS[number.__class__, number, kind] = made
    return made


def check_places(places: Any, first: int, end: int, what: str) -> None:
    """Raises DTypeError where a tensor with values does not hold integers, ShapeError where one of them is not from `first`
    up to `end`.
    """
    if not isinstance(places, Value):
        return  # while a function is traced there are no values
    array = places._array
    if array.dtype.kind == "b":
        raise DTypeError(f"{what} is a mask of bool, and how many elements it chooses is known by its values alone",
                         hint="x[numpy.flatnonzero(mask)] are the rows where it is true; x * mask is 0 where it is false")
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{what} holds {places._kind.dtype}, not integers", hint="convert it: index.astype('int32')")
    if array.size and (array.min() < first or array.max() >= end):
        wrong = array[(array < first) | (array >= end)].flat[0]
        raise ShapeError(f"{what} holds {wrong}; places are from {first} to {end - 1}")


def _from_python(values: Any) -> Array:
    """Numbers and nested lists as an array."""
    try:
        return numpy.asarray(values)
    except ValueError as cause:
        raise ShapeError(f"tensor: the lists are not of one length at each depth: {cause}",
                         hint="rows of a tensor are equally long; fill shorter ones up") from None


def _refused(other: Any) -> Any:
    raise ArgumentTypeError(f"{type_in_words(other)} is no operand of a tensor",
                            hint="numbers, arrays of numpy and tensors are: autograd.tensor(values)")


def _numpy_dtype(dtype: Any) -> Any:
    return numpy_dtype(dtype_of(dtype))


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested lists, arrays. Numbers of Python become float32 or int64."""
    return Tensor(data, dtype, requires_grad)


def from_numpy(array: Array) -> Tensor:
    """A tensor of the memory of an array."""
    if not isinstance(array, numpy.ndarray):
        raise ArgumentTypeError(f"from_numpy takes an array of numpy, not {type_in_words(array)}", hint="tensor(values) copies")
    made: Tensor = result(Tensor, array, kind_of(array), None, 0)
    return made


def zeros(*shape: int, dtype: Any = "float32", requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    return _filled(0, shape, dtype, requires_grad)


def ones(*shape: int, dtype: Any = "float32", requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return _filled(1, shape, dtype, requires_grad)


def _filled(value: int, shape: tuple[Any, ...], dtype: Any, requires_grad: bool) -> Tensor:
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if not all(hasattr(extent, "__index__") for extent in extents):
        raise ArgumentTypeError(f"a tensor cannot have the shape {tuple(extents)}", hint="extents are integers")
    sizes = tuple(operator.index(extent) for extent in extents)
    if any(extent < 0 for extent in sizes):
        raise ArgumentError(f"a tensor cannot have the shape {sizes}")
    made = from_numpy(numpy.full(sizes, value, _numpy_dtype(dtype)))
    made.requires_grad = requires_grad
    return made
