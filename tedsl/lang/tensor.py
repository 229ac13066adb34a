"""Tensors: the outputs of operations, and the results of indexing them.

`A[i, j]` and `A(i, j)` with an index for every dimension are an element: a `ProducerLoad`, an expression like any other.
`A[i]` with fewer indices is a `TensorSlice`, which can be indexed further: `A[i][j]` is `A[i, j]`.
Operators on whole tensors broadcast like numpy; they are in `lang/elementwise.py`, which is imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar, cast

from tedsl.display.facts import facts_page
from tedsl.errors import (
    ArgumentTypeError,
    DTypeError,
    ExpressionError,
    OptionError,
    ShapeError,
    missing_attribute,
    type_in_words,
)
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, ProducerLoad
from tedsl.ir.operators import ExprOperators, from_numpy, refuse_beside
from tedsl.ir.script import shown

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from tedsl.lang.operation import Operation

    Op = TypeVarWithDefault("Op", bound=Operation, covariant=True, default=Any)  # a bare Tensor may be of any kind
else:
    Op = TypeVar("Op")


def _whole(name: str, reflected: bool = False) -> Callable[[Any, Any], Tensor]:
    """The operator on whole tensors that `lang/elementwise.py` calls `name`."""
    def operator(self: Tensor, other: Any) -> Any:  # a Tensor, or NotImplemented
        from tedsl.lang import elementwise

        result = elementwise.binary(name, other, self) if reflected else elementwise.binary(name, self, other)
        if result is NotImplemented:
            refuse_beside(self.name, other)
        return result

    operator.__name__ = name
    return operator


# What arrays of numpy have and tensors do not: the operator instead, of the tensor {0}.
_OF_ARRAYS = {
    "T": "topi.transpose({0})", "transpose": "topi.transpose({0})", "reshape": "topi.reshape({0}, shape)",
    "flatten": "topi.reshape({0}, (n,))", "ravel": "topi.reshape({0}, (n,))", "squeeze": "topi.squeeze({0})",
    "mean": "topi.sum({0}, axis) / n", "argsort": "topi.argsort({0})", "take": "topi.take({0}, indices)",
    "repeat": "topi.repeat({0}, repeats, axis)", "clip": "topi.clip({0}, low, high)", "round": "topi.round({0})",
    "size": "topi.ndarray_size({0})",
    **{name: f"topi.{name}({{0}}, axis)" for name in ("sum", "max", "min", "prod", "argmax", "argmin", "all", "any", "cumsum")},
    "numpy": "the array that the built function wrote", "asnumpy": "the array that the built function wrote",
}


class Tensor(Generic[Op]):
    """Output number `value_index` of the operation `op`. Two handles of one output are equal and have the same hash.

    shape: integer expressions; dtype: of one element; ndim: the rank, 0 for a scalar. For type checkers `Tensor[ComputeOp]` is
    an output of a formula, whose `op` has axes.
    """

    __slots__ = ("__weakref__", "dtype", "op", "shape", "value_index")
    identity_fields: ClassVar[tuple[str, ...]] = ("op", "value_index")  # the rest follows from these
    identity_by_value: ClassVar[bool] = True  # as `==` is

    op: Op
    value_index: int
    shape: tuple[Expr, ...]
    dtype: DType

    def __init__(self, op: Op, value_index: int = 0) -> None:
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "value_index", value_index)
        object.__setattr__(self, "shape", op.shape_of(value_index))
        object.__setattr__(self, "dtype", op.dtype_of(value_index))

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name in Tensor.__slots__:
                raise AttributeError(name)
            instead = {one: by.format(self.name) for one, by in _OF_ARRAYS.items()}
            raise missing_attribute(f"the tensor {self.name}", name, Tensor, instead)

        def __setattr__(self, name: str, value: object) -> None:
            raise OptionError(f"{name} of the tensor {self.name} cannot be set: a tensor is what its operation says",
                              hint="declare another one by te.placeholder or te.compute; for loops and memory see "
                                   "te.create_schedule")

        def __delattr__(self, name: str) -> None:
            self.__setattr__(name, None)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def name(self) -> str:
        """The name of the operation; with `.v0`, `.v1`, ... where it has several outputs."""
        return self.op.name if self.op.num_outputs == 1 else f"{self.op.name}.v{self.value_index}"

    def __call__(self, *indices: Any) -> ProducerLoad:
        """The element at `indices`, one for each dimension."""
        return load(self, indices)

    def __getitem__(self, key: Any) -> TensorSlice:
        indices = key if isinstance(key, tuple) else (key,)
        return _index(self, indices)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise ExpressionError(f"an element of the tensor {self.name} cannot be assigned: a tensor is defined once, "
                              "by a formula",
                              hint="write the value as a formula of the index: te.compute(A.shape, "
                                   "lambda i: te.if_then_else(i == 0, x, A[i]))")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self.op is other.op and self.value_index == other.value_index

    def __hash__(self) -> int:
        return hash((id(self.op), self.value_index))

    def same_as(self, other: object) -> bool:
        """Whether both are the same output of the same operation."""
        return self == other

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self.op, self.value_index)

    def __parts__(self) -> tuple[Any, ...]:
        """What `save_json` writes of it."""
        return "Tensor", self.op, self.value_index

    def __repr__(self) -> str:
        return f"Tensor(shape=[{', '.join(map(repr, self.shape))}], op.name={self.op.name})"

    def _repr_html_(self) -> str:
        return facts_page(f"Tensor {self.name}", {"shape": f"({', '.join(map(repr, self.shape))})", "dtype": self.dtype,
                                                  "of": f"output {self.value_index}" if self.op.num_outputs > 1 else "",
                                                  **self.op.facts()})

    def __iter__(self) -> Iterator[Any]:  # not NoReturn: pyright takes what it cannot tell for one tensor
        raise ArgumentTypeError(f"the tensor {self.name} cannot be iterated: its elements do not exist "
                                "while the program is written",
                                hint="index it in te.compute, or unpack the shape: n, m = A.shape")

    def __len__(self) -> int:
        raise ArgumentTypeError(f"the tensor {self.name} has no len()", hint=f"write {self.name}.shape[0] or {self.name}.ndim")

    def __bool__(self) -> bool:
        from tedsl.lang.elementwise import is_comparison

        if is_comparison(self):
            raise ExpressionError(
                f"the comparison {self.name} of whole tensors has no truth value while the program is being written",
                hint="choose by element: te.compute(shape, lambda *i: te.if_then_else(a[i] > b[i], ...)); "
                     "`a is b` asks for identity")
        return True  # so that `if bias:` asks whether there is one

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """`np.float32(2) * A` and `np.add(A, B)` are operators of tensors; numpy's other functions are refused."""
        return from_numpy(f"{self.name} is a tensor of a program", "topi", ufunc, method, inputs, options)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise self._without_values("numpy makes no array of it")

    def __float__(self) -> float:
        raise self._without_values("float() works on numbers")

    def __int__(self) -> int:
        raise self._without_values("int() works on numbers")

    def __complex__(self) -> complex:
        raise self._without_values("complex() works on numbers")

    def __contains__(self, item: object) -> bool:
        raise self._without_values("`in` searches through values")

    def __round__(self, digits: object = None) -> Any:
        raise ArgumentTypeError(f"Python's round works on numbers, and {self.name} is a tensor", hint="write topi.round(A)")

    def __matmul__(self, other: object) -> Any:
        raise ArgumentTypeError(f"@ is not an operator of tensors; {self.name} is one", hint="write topi.matmul(A, B)")

    __rmatmul__ = __matmul__

    def _without_values(self, problem: str) -> ArgumentTypeError:
        return ArgumentTypeError(f"the tensor {self.name} has no values while the program is being written: {problem}",
                                 hint="an element is A[i] inside te.compute; values are in the arrays that a built function is "
                                      "called with")

    __add__, __radd__ = _whole("add"), _whole("add", reflected=True)
    __sub__, __rsub__ = _whole("subtract"), _whole("subtract", reflected=True)
    __mul__, __rmul__ = _whole("multiply"), _whole("multiply", reflected=True)
    __truediv__, __rtruediv__ = _whole("divide"), _whole("divide", reflected=True)
    __floordiv__, __rfloordiv__ = _whole("floor_divide"), _whole("floor_divide", reflected=True)
    __mod__, __rmod__ = _whole("floor_mod"), _whole("floor_mod", reflected=True)
    __pow__, __rpow__ = _whole("power"), _whole("power", reflected=True)
    __lshift__, __rlshift__ = _whole("left_shift"), _whole("left_shift", reflected=True)
    __rshift__, __rrshift__ = _whole("right_shift"), _whole("right_shift", reflected=True)
    __and__, __rand__ = _whole("bitwise_and"), _whole("bitwise_and", reflected=True)
    __or__, __ror__ = _whole("bitwise_or"), _whole("bitwise_or", reflected=True)
    __xor__, __rxor__ = _whole("bitwise_xor"), _whole("bitwise_xor", reflected=True)
    __lt__, __le__, __gt__, __ge__ = _whole("less"), _whole("less_equal"), _whole("greater"), _whole("greater_equal")

    def __neg__(self) -> Tensor:
        from tedsl.lang import elementwise

        return elementwise.unary("negative", self)

    def __invert__(self) -> Tensor:
        from tedsl.lang import elementwise

        return elementwise.unary("bitwise_not", self)

    def __abs__(self) -> Tensor:
        from tedsl.lang import elementwise

        return elementwise.unary("abs", self)

    def astype(self, dtype: object) -> Tensor:
        """A tensor of the elements converted to `dtype`."""
        from tedsl.lang import elementwise

        return elementwise.cast(self, dtype)


class _SliceType(type):
    """Makes `isinstance(A[i, j], TensorSlice)` true although an element is a ProducerLoad."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is cls or isinstance(instance, ProducerLoad)


class TensorSlice(ExprOperators, metaclass=_SliceType):
    """A tensor indexed with fewer indices than dimensions, or with slices: not a value yet. `A[i][j]` is `A[i, j]`."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]) -> None:
        self.tensor, self.indices = tensor, indices

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    def __getitem__(self, key: Any) -> TensorSlice:
        return _index(self.tensor, self.indices + (key if isinstance(key, tuple) else (key,)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tensor)

    def __len__(self) -> int:
        return len(self.tensor)

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.tensor.__array__()

    def as_expr(self) -> Expr:
        """Raise the error that says which indices are missing."""
        if any(map(_is_region, self.indices)):
            raise ExpressionError(f"{self!r} is a region of the tensor {self.tensor.name}, not an element",
                                  hint="index every dimension with an integer expression inside te.compute")
        refuse_rank(self.tensor, self.indices)

    def asobject(self) -> Expr:
        return self.as_expr()

    def __repr__(self) -> str:
        return _written(self.tensor, self.indices)


def load(tensor: Tensor, indices: tuple[Any, ...]) -> ProducerLoad:
    """The element of `tensor` at `indices`; errors where their number or their dtypes do not fit."""
    if len(indices) != len(tensor.shape):
        refuse_rank(tensor, indices)
    return ProducerLoad(tensor, tuple([_integer(tensor, indices, position) for position in range(len(indices))]))


def refuse_rank(tensor: Tensor, indices: tuple[Any, ...]) -> NoReturn:
    """Raise the error of a wrong number of indices."""
    rank, given = len(tensor.shape), len(indices)
    dims = ", ".join(map(shown, tensor.shape))
    example = ", ".join("ijklmnopqr"[:rank]) if 0 < rank <= 10 else "..."
    raise ShapeError(
        f"{_written(tensor, indices)}: the tensor {tensor.name} has {rank} dimension{'s' * (rank != 1)}, shape ({dims}), "
        f"and is read with {given} ind{'ex' if given == 1 else 'ices'}",
        hint=f"give one index per dimension: {tensor.name}[{example}]" if rank
        else f"a scalar tensor is read with {tensor.name}()")


def _index(tensor: Tensor, indices: tuple[Any, ...]) -> TensorSlice:
    """The element at `indices`, or a TensorSlice where some are missing; for type checkers a TensorSlice is both."""
    if len(indices) > len(tensor.shape) and Ellipsis not in indices:
        refuse_rank(tensor, indices)
    if any(map(_is_region, indices)):
        return TensorSlice(tensor, indices)
    if len(indices) == len(tensor.shape):
        return cast(TensorSlice, load(tensor, indices))  # type checkers cannot tell how many indices there are
    return TensorSlice(tensor, tuple([_integer(tensor, indices, position) for position in range(len(indices))]))


def _is_region(index: object) -> bool:
    return isinstance(index, slice) or index is Ellipsis


def _integer(tensor: Tensor, indices: tuple[Any, ...], position: int) -> Expr:
    """Index number `position` as an integer expression."""
    index = indices[position]
    if isinstance(index, Tensor):
        raise DTypeError(f"{_written(tensor, indices)}: index {position} is the whole tensor {index.name}",
                         hint=f"index with an element, {tensor.name}[{index.name}[i], ...], or use topi.take")
    if isinstance(index, (list, tuple)):
        raise DTypeError(f"{_written(tensor, indices)}: index {position} is {type_in_words(index)}",
                         hint=f"one index per dimension: {tensor.name}(*indices) or {tensor.name}[tuple(indices)]")
    expr = build.as_expr(index)
    if not expr.dtype.is_integer or expr.dtype.lanes != 1:
        raise DTypeError(f"{_written(tensor, indices)}: index {position} of the tensor {tensor.name} is {shown(index)} of "
                         f"dtype {expr.dtype}, not an integer",
                         hint="compute indices with //, not /, or cast: x.astype('int32')")
    return expr


def _written(tensor: Tensor, indices: tuple[Any, ...]) -> str:
    return f"{tensor.name}[{', '.join('...' if i is Ellipsis else _plain(i) for i in indices)}]"


def _plain(index: object) -> str:
    if isinstance(index, slice):
        return ":".join("" if part is None else shown(part) for part in (index.start, index.stop))
    return index.name if isinstance(index, Tensor) else shown(index)
