"""What a network is made of: values, and the nodes that compute them.

    x ──► nn.conv2d ──► t0 ──► nn.relu ──► t1        a value is an input, a constant, or a result of one node;
    w ──►                                            a node calls an operator of topi on values and attributes

Both are immutable and compared by identity. A `Graph` is what its outputs reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.dimensions import Dimension, as_dimension, dimension_text
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Expr

if TYPE_CHECKING:
    from tedsl.graph.graph import Graph

Attribute: TypeAlias = "bool | int | float | str | Expr | tuple[Any, ...] | None"
Argument: TypeAlias = "Value | tuple[Value, ...] | Attribute"
CALL = "call"  # the operator of nodes that call a graph


class Spec:
    """The shape and the dtype of a value. An extent is an int, or an expression over variables, such as the size of a batch."""

    __slots__ = ("dtype", "shape")
    shape: tuple[Dimension, ...]
    dtype: DType

    def __init__(self, shape: Any, dtype_: Any = "float32") -> None:
        if isinstance(shape, (int, Expr)):
            shape = (shape,)
        self.shape = tuple([as_dimension(extent) for extent in shape])
        self.dtype = dtype(dtype_)

    @property
    def is_static(self) -> bool:
        """Whether every extent is a number."""
        return all(isinstance(extent, int) for extent in self.shape)

    @property
    def size(self) -> int:
        """The number of elements. Raises ArgumentError if an extent is not a number."""
        count = 1
        for extent in self.shape:
            if not isinstance(extent, int):
                raise ArgumentError(f"a value of {self} has no fixed number of elements",
                                    hint="give its extents first: graph.with_inputs(g, [Spec(...), ...])")
            count *= extent
        return count

    @property
    def bytes(self) -> int:
        """Size in bytes. Raises ArgumentError if an extent is not a number."""
        return self.size * self.dtype.bytes

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(dimension_text, self.shape)) or '()'}]"

    def __repr__(self) -> str:
        return f"Spec({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Operators:
    """The operators of Python on values; comparisons are functions: ops.less(a, b)."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        """Functions of numpy on values, np.exp(x) and array + x: the operator of that name. Arrays become constants."""
        name = {"absolute": "abs", "true_divide": "divide", "fabs": "abs"}.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or options:
            how = f"by {method}" if method != "__call__" else f"with {', '.join(options)}"
            raise ArgumentTypeError(f"numpy.{ufunc.__name__} does not take values of a graph {how}",
                                    hint="the operators are functions of graph.ops: ops.exp(x)")
        return _apply(name, *operands)

    def _compared(self, name: str, other: Any) -> Any:
        raise ArgumentTypeError("values of a graph are compared by functions, as they have no elements yet",
                                hint=f"ops.{name}(a, b) compares element by element")

    def __lt__(self, other: Any) -> Any:
        return self._compared("less", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("less_equal", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("greater", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("greater_equal", other)

    def __pow__(self, other: Any) -> Any:
        return _apply("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _apply("power", other, self)

    def __getitem__(self, places: Any) -> Any:
        raise ArgumentTypeError("a value of a graph has no elements yet",
                                hint="ops.strided_slice(x, begin, end) takes a part of it, "
                                "ops.take(x, indices, axis) elements")

    def __iter__(self) -> Any:
        raise ArgumentTypeError("a value of a graph has no elements yet to go through",
                                hint="ops.split(x, parts, axis) gives parts")

    def __add__(self, other: Any) -> Any:
        return _apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _apply("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply("divide", other, self)

    def __neg__(self) -> Any:
        return _apply("negative", self)

    def __matmul__(self, other: Any) -> Any:
        return _apply("matmul", self, other)


def _apply(operator: str, *operands: Any) -> Any:
    from tedsl.graph.apply import apply  # a node is made of values

    return apply(operator, *operands)


class Value(Operators):
    """An input of a graph, a constant, or result number `index` of `node`. name: a hint for texts.

    data: the array of a constant, read-only; None for the others.
    """

    __slots__ = ("data", "index", "name", "node", "spec")
    name: str
    spec: Spec
    node: Node | None
    index: int
    data: Any

    def __init__(self, name: str, spec: Spec, node: Node | None = None, index: int = 0, data: Any = None) -> None:
        _fill(self, name=name, spec=spec, node=node, index=index, data=data)

    @property
    def shape(self) -> tuple[Dimension, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def is_input(self) -> bool:
        """Whether the value is given when the graph is called."""
        return self.node is None and self.data is None

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    def __setattr__(self, name: str, value: Any) -> None:
        raise ArgumentTypeError(f"a value of a graph cannot be changed ({name} = ...)",
                                hint="graph.rewrite(g, fn) makes another graph")

    def __repr__(self) -> str:
        what = "constant" if self.is_constant else "input" if self.node is None else f"of {self.node.operator}"
        return f"<Value {self.name}: {self.spec}, {what}>"

    def __len__(self) -> int:
        raise ArgumentTypeError(f"{self.name} is a value of a graph: its elements are not known yet",
                                hint=f"its extents: {self.name}.shape")

    def __bool__(self) -> bool:
        raise ArgumentTypeError(f"{self.name} is a value of a graph: it is neither true nor false yet",
                                hint="ops.where(condition, a, b) chooses by element")


def constant(data: Any, dtype: Any = None, name: str = "c") -> Value:
    """A constant of the elements of `data`, an array or numbers; the array is not copied where it need not be."""
    array = numpy.asarray(data, dtype=None if dtype is None else str(dtype))
    if dtype is None and array.dtype == numpy.float64 and not isinstance(data, (numpy.ndarray, numpy.generic)):
        array = array.astype("float32")  # numbers of Python, as in all of tedsl
    view = numpy.ascontiguousarray(array).reshape(array.shape).view()
    view.flags.writeable = False
    return Value(name, Spec(array.shape, array.dtype), data=view)


class Node:
    """A call of an operator: `arguments` by the names of its parameters, in their order, without those equal to the default.

    An argument is a value, a tuple of values, or an attribute. outputs: the results. function: the graph that a node calls
    whose operator is "call", with the argument `operands`. name: a hint, as that of a node of a file.
    """

    __slots__ = ("arguments", "function", "name", "operator", "outputs")
    operator: str
    arguments: Mapping[str, Any]
    outputs: tuple[Value, ...]
    name: str
    function: Graph | None

    def __init__(self, operator: str, arguments: Mapping[str, Any], specs: tuple[Spec, ...], name: str = "",
                 function: Graph | None = None) -> None:
        label = name or operator.rpartition(".")[2]
        outputs = tuple([Value(label, spec, self, index) for index, spec in enumerate(specs)])
        _fill(self, operator=operator, arguments=MappingProxyType(dict(arguments)), outputs=outputs, name=name,
              function=function)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values among the arguments, in order; one that is given twice stands twice."""
        return tuple([value for argument in self.arguments.values() for value in values_of(argument)])

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The arguments that are not values."""
        return {name: argument for name, argument in self.arguments.items() if not holds_values(argument)}

    def __setattr__(self, name: str, value: Any) -> None:
        raise ArgumentTypeError(f"a node of a graph cannot be changed ({name} = ...)",
                                hint="graph.rewrite(g, fn) makes another graph")

    def __repr__(self) -> str:
        called = f"{self.operator} {self.function.name}" if self.function is not None else self.operator
        given, gives = ", ".join(value.name for value in self.inputs), ", ".join(str(out.spec) for out in self.outputs)
        return f"<Node {called}({given}) -> {gives}>"


def _fill(holder: Any, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(holder, name, value)


def holds_values(argument: Argument) -> bool:
    """Whether an argument is a value or a tuple of values."""
    return isinstance(argument, Value) or (isinstance(argument, tuple) and bool(argument) and isinstance(argument[0], Value))


def values_of(argument: Argument) -> tuple[Value, ...]:
    """The values that an argument holds."""
    if isinstance(argument, Value):
        return (argument,)
    return tuple([part for part in argument if isinstance(part, Value)]) if isinstance(argument, tuple) else ()


def with_values(argument: Argument, replaced: Mapping[Value, Value]) -> Argument:
    """The argument with other values; the same object if it holds none of `replaced`."""
    if isinstance(argument, Value):
        return replaced.get(argument, argument)
    if holds_values(argument) and any(value in replaced for value in values_of(argument)):
        return tuple([replaced.get(value, value) for value in values_of(argument)])
    return argument


def as_attribute(operator: str, name: str, given: Any) -> Attribute:
    """What is stored of an argument that holds no value. Raises ArgumentTypeError for what cannot be written as text."""
    if given is None or isinstance(given, (bool, int, float, str, Expr)):
        return given
    if isinstance(given, numpy.generic):
        number: bool | int | float | str = given.item()
        return number
    if isinstance(given, (numpy.dtype, type)):
        return str(dtype(given))
    if isinstance(given, (list, tuple)):
        return tuple([as_attribute(operator, name, part) for part in given])
    hint = "arrays become values: graph.constant(array)" if isinstance(given, numpy.ndarray) else ""
    raise ArgumentTypeError(f"{operator}: {name} is {type_in_words(given)}; an attribute is a number, a str, None or a tuple "
                            "of such", hint=hint)
