"""The Python operators of expressions and iteration variables, and operands that are given as Python values.

They delegate to `ir/build.py`, which itself imports the expressions and so is imported late, here and nowhere else in `ir`.

`a == b` is lazy: used as an expression it is a comparison, as a bool it is identity, so that `axis in axes` works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tedsl.errors import ArgumentTypeError, ExpressionError, type_in_words
from tedsl.ir.node import SCOPE, Node, set_field

if TYPE_CHECKING:
    from tedsl.ir.dtype import DType
    from tedsl.ir.expr import Expr


def _binary(name: str, reflected: bool = False) -> Callable[[Any, Any], Expr]:
    def operator(self: Any, other: Any) -> Any:  # an Expr, or NotImplemented
        from tedsl.ir import build

        if not build.is_operand(other):
            refuse_beside(self, other)
            return NotImplemented
        function = getattr(build, name)
        return function(other, self) if reflected else function(self, other)

    operator.__name__ = name
    return operator


_NO_OPERANDS = (str, bytes, bytearray, complex, list, tuple, dict, set, frozenset, range, slice)  # and None


def refuse_beside(what: Any, other: object) -> None:
    """Raises ArgumentTypeError if `other` is a value of Python that cannot stand beside `what`, an expression or the name of a
    tensor, under an operator; other classes may know what to do with it."""
    if other is not None and not isinstance(other, _NO_OPERANDS):
        return
    from tedsl.ir import build

    left = what if isinstance(what, str) else _shown(build.as_expr(what))
    kind = "which is no value" if other is None else type_in_words(other)
    raise ArgumentTypeError(f"an operator of {left} has the operand {_text(other)}, {kind}", hint=_operand_instead(other))


def _operand_instead(value: object) -> str:
    """What to do for a value of Python that is no operand."""
    if isinstance(value, complex):
        return "there are no complex dtypes: keep the real and the imaginary part in two tensors"
    if isinstance(value, (list, tuple, range)):
        return "an expression is one element: declare a te.placeholder for data, or write a formula of the index"
    return "use numbers, variables, axes and elements of tensors such as A[i, j]"


def _text(value: object) -> str:
    """`value` for an error message, in one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# numpy's functions that are operators: the method of the left operand, and of the right one.
_OPERATORS = {
    **{ufunc: (f"__{name}__", f"__r{name}__") for ufunc, name in (
        ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"), ("true_divide", "truediv"),
        ("floor_divide", "floordiv"), ("remainder", "mod"), ("power", "pow"), ("left_shift", "lshift"),
        ("right_shift", "rshift"), ("bitwise_and", "and"), ("bitwise_or", "or"), ("bitwise_xor", "xor"))},
    "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"), "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"), "equal": ("__eq__", "__eq__"), "not_equal": ("__ne__", "__ne__"),
}
# Names of `te` and `topi` for those of numpy that are called otherwise.
_CALLED = {"absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
           "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "rint": "nearbyint"}
_SAME = ("ceil", "copysign", "cos", "cosh", "exp", "exp2", "floor", "fmod", "hypot", "isfinite", "isinf", "isnan", "ldexp",
         "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")


def from_numpy(what: str, module: str, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of the operator that corresponds to numpy's `ufunc`; ArgumentTypeError names its counterpart in `module` if
    there is none.

    what: the operand that is not an array, in words, for the message.
    """
    name: str = ufunc.__name__
    if method == "__call__" and not options and len(inputs) == 2 and name in _OPERATORS:
        left, right = inputs
        of_left, of_right = _OPERATORS[name]
        ours = getattr(type(left), "__array_ufunc__", None) is not None and not hasattr(left, "__array_interface__")
        result = getattr(left, of_left)(right) if ours else getattr(right, of_right)(left)
        if result is not NotImplemented:
            return result
    if method == "reduce":
        name, hint = f"{name}.reduce", "write te.sum(A[k], axis=k) inside te.compute, or topi.sum(A)"
    elif name == "matmul":
        hint = "topi.matmul(A, B), or te.sum(A[i, k] * B[k, j], axis=k) inside te.compute"
    elif name in ("maximum", "minimum"):
        hint = f"write {module}.{name[:3] if module == 'te' else name}"
    elif name in _SAME or name in _CALLED:
        hint = f"write {module}.{_CALLED.get(name, name)}"
    else:
        hint = "write it with te's functions, element by element: te.compute(shape, lambda i: ...)"
    raise ArgumentTypeError(f"numpy.{name} works on arrays, and {what}", hint=hint)


class ExprOperators:
    """Mixin: `+ - * / // % << >> & | ^ ~ **`, comparisons, `astype`, `equal`."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """`np.float32(2) * x` and `np.add(x, 1)` are operators of expressions; numpy's other functions are refused."""
        return from_numpy(f"{self} is an expression", "te", ufunc, method, inputs, options)

    __add__, __radd__ = _binary("add"), _binary("add", reflected=True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", reflected=True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", reflected=True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", reflected=True)
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _binary("floordiv", reflected=True)
    __mod__, __rmod__ = _binary("floormod"), _binary("floormod", reflected=True)
    __pow__, __rpow__ = _binary("power"), _binary("power", reflected=True)
    __lshift__, __rlshift__ = _binary("shift_left"), _binary("shift_left", reflected=True)
    __rshift__, __rrshift__ = _binary("shift_right"), _binary("shift_right", reflected=True)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", reflected=True)
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", reflected=True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", reflected=True)
    __lt__, __le__, __gt__, __ge__ = _binary("less"), _binary("less_equal"), _binary("greater"), _binary("greater_equal")

    def __neg__(self) -> Expr:
        from tedsl.ir import build

        return build.negative(self)

    def __invert__(self) -> Expr:
        from tedsl.ir import build

        return build.bitwise_not(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Expr:
        from tedsl.ir import build

        return build.absolute(build.as_expr(self))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __round__(self, digits: object = None) -> Any:
        raise ExpressionError(f"Python's round works on numbers, and {_shown(self)} is an expression",
                              hint="write te.round(x), halves away from zero, or te.nearbyint(x), halves to even")

    def __eq__(self, other: object) -> Any:
        return LazyEqual(self, other, equal=True)

    def __ne__(self, other: object) -> Any:
        return LazyEqual(self, other, equal=False)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"the expression {_shown(self)} has no truth value while the program is being written",
            hint="for `and`, `or`, `not`, `if` write te.all(a, b), te.any(a, b), tir.Not(a), te.if_then_else(cond, a, b); "
                 "a chained a < b < c is te.all(a < b, b < c); Python's max(a, b) and min(a, b) are te.max(a, b), te.min(a, b)")

    def __float__(self) -> float:
        raise ArgumentTypeError(f"the expression {_shown(self)} has no value while the program is being written",
                                hint="Python's math and float() work on numbers; on expressions use te.exp(x), te.floor(x)")

    def __int__(self) -> int:
        raise ArgumentTypeError(f"the expression {_shown(self)} has no value while the program is being written",
                                hint="int() works on numbers; on expressions write x.astype('int32')")

    def __complex__(self) -> complex:
        raise ArgumentTypeError(f"the expression {_shown(self)} has no value while the program is being written, and there are "
                                "no complex dtypes", hint="keep the real and the imaginary part in two tensors")

    def __trunc__(self) -> Any:
        raise ArgumentTypeError(f"math.trunc works on numbers, and {_shown(self)} is an expression", hint="write te.trunc(x)")

    def __matmul__(self, other: object) -> Any:
        raise ArgumentTypeError("@ multiplies matrices, and an expression is one element",
                                hint="te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k)); of whole tensors "
                                     "topi.matmul(A, B)")

    __rmatmul__ = __matmul__

    if not TYPE_CHECKING:  # type checkers refuse them
        def __getitem__(self, index: object) -> Any:
            raise ArgumentTypeError(f"the expression {_shown(self)} is one value: it has no elements to read or to iterate",
                                    hint="index a tensor, A[i, j], with as many indices as it has dimensions")

        def __len__(self) -> int:
            raise ArgumentTypeError(f"the expression {_shown(self)} is one value: it has no len()",
                                    hint="the extents of a tensor are A.shape, that of an axis is i.dom.extent")

    def asobject(self) -> Any:
        """The node itself; for a lazy `a == b` the comparison."""
        return self

    def equal(self, other: Any) -> Expr:
        """The comparison `self == other` as an expression."""
        from tedsl.ir import build

        return build.equal(self, other)

    def astype(self, dtype: object) -> Expr:
        """This value converted to `dtype`."""
        from tedsl.ir import build

        return build.cast(dtype, self)


class NamedCall:
    """What a call has beside its fields."""

    __slots__ = ()
    op: Any
    args: tuple[Any, ...]

    @property
    def name(self) -> str:
        """What is called, as TVM 0.6 named it: an operator without prefix, or the function that an external call names."""
        is_extern = self.args and self.op.short in ("call_extern", "call_pure_extern")
        return str(getattr(self.args[0], "value", self.op.short) if is_extern else self.op.short)


class LazyEqual(ExprOperators):
    """The result of `a == b` and `a != b`: a comparison where an expression is expected, identity as a bool."""

    __slots__ = ("_equal", "a", "b")

    def __init__(self, a: Any, b: Any, *, equal: bool) -> None:
        self.a, self.b, self._equal = a, b, equal

    def asobject(self) -> Expr:
        """The comparison as an expression node."""
        from tedsl.ir import build

        return build.equal(self.a, self.b) if self._equal else build.not_equal(self.a, self.b)

    def __bool__(self) -> bool:
        if self.a is self.b:
            return self._equal
        from tedsl.ir import build

        known = build.constant_equality(self.a, self.b)
        return (known if known is not None else False) == self._equal

    @property
    def dtype(self) -> Any:
        return self.asobject().dtype

    def same_as(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return repr(self.asobject())


def _shown(value: Any) -> str:
    """`value`, an operand where a number is expected, as text for errors."""
    from tedsl.ir.script import shown

    return shown(value)


# --- operands of nodes ------------------------------------------------------------------------------------------------

def operand(value: Any) -> Any:
    """`value` as an expression if it is an operand (an axis, `A[i] == x`, a number, a text), else itself."""
    from tedsl.ir import build

    try:
        return build.as_expr(value)
    except ExpressionError:
        return value


SCOPE["operand"] = operand


def adopt(node: Node, *names: str) -> None:
    """Turn operands given as users write them (an axis, `A[i] == x`, a number) into expressions; a pair gets one dtype."""
    from tedsl.ir import build

    given = [getattr(node, name) for name in names]
    if all(map(build.is_expr, given)):
        return
    operands = build.match_operands(*given, keep_bool=True) if len(given) == 2 else [build.as_expr(value) for value in given]
    for name, value in zip(names, operands):
        set_field(node, name, value)


def constants_of(node: Node, dtype: DType, *names: str) -> None:
    """Turn Python numbers and axes given for these fields into expressions, the numbers of `dtype`."""
    from tedsl.ir import build

    for name in names:
        value = getattr(node, name)
        if not build.is_expr(value):
            set_field(node, name, build.as_expr(value, dtype))
