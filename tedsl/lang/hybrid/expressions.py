"""Expressions of a hybrid script: Python's syntax tree becomes values of the language, or Python values known now."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import BufferLoad, Expr, IntImm
from tedsl.lang import arithmetic
from tedsl.lang import math as functions
from tedsl.lang.hybrid.names import CASTS, LOOPS, MATH
from tedsl.lang.hybrid.scope import Array, Number, Scope
from tedsl.lang.hybrid.source import Source

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}
_COMPARE: dict[type[ast.AST], tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Expr]]] = {
    ast.Eq: (operator.eq, build.equal), ast.NotEq: (operator.ne, build.not_equal), ast.Lt: (operator.lt, build.less),
    ast.LtE: (operator.le, build.less_equal), ast.Gt: (operator.gt, build.greater), ast.GtE: (operator.ge, build.greater_equal),
}
_BUILTINS = {name: getattr(builtins, name) for name in ("len", "int", "float", "bool", "abs", "min", "max", "round", "sum",
                                                        "tuple", "list", "True", "False", "None", "str", "range")}


class Expressions:
    """Reads expressions. Values are Exprs, Python values, arrays of the program, or functions to call now."""

    def __init__(self, source: Source, scope: Scope, captured: Mapping[str, Any]) -> None:
        self.source, self.scope, self.captured = source, scope, captured

    def value(self, node: ast.expr) -> Any:
        """The value of `node`."""
        read = _READ.get(type(node))
        if read is None:
            self.source.fail(node, f"{type(node).__name__} is not part of hybrid script",
                             hint="numbers, arrays, arithmetic, comparisons, conditions, tuples and calls are")
        try:
            return read(self, node)
        except TedslError as error:
            raise self.source.relocated(node, error) from error
        except (TypeError, ValueError, ZeroDivisionError, IndexError, KeyError, AttributeError) as error:
            self.source.fail(node, f"{type(error).__name__}: {error}")

    def expr(self, node: ast.expr) -> Expr:
        """The value of `node` as an expression."""
        value = self.value(node)
        if isinstance(value, (Array, str, tuple, list)) or callable(value):
            self.source.fail(node, f"a number is wanted here, this is {_kind(value)}",
                             hint="read an element: a[i]" if isinstance(value, Array) else "")
        return build.as_expr(value)

    def name(self, node: ast.Name) -> Any:
        if node.id in self.scope:
            found = self.scope.find(node.id)
            return BufferLoad(found.buffer, (build.const(0),)) if isinstance(found, Number) else found
        if node.id in self.scope.ended:
            self.source.fail(node, f"{node.id} is assigned in the block that begins in line "
                             f"{self.source.first + self.scope.ended[node.id] - 1} only, and used after it",
                             hint=f"assign {node.id} before that block")
        if node.id in self.captured:
            return self.captured[node.id]
        if node.id in _BUILTINS:
            return _BUILTINS[node.id]
        self.source.fail(node, f"nothing is called {node.id} here", hint="arguments, variables that are assigned before, and "
                         "constants of the module around can be used")

    def constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bool, int, float, str)) or node.value is None:
            return node.value
        self.source.fail(node, f"{node.value!r} is no number")

    def sequence(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        return tuple([self.value(one) for one in node.elts])

    def attribute(self, node: ast.Attribute) -> Any:
        value = self.value(node.value)
        if isinstance(value, Array):
            if node.attr in ("shape", "dtype", "name"):
                return getattr(value.buffer, node.attr)
            if node.attr == "ndim":
                return len(value.buffer.shape)
            self.source.fail(node, f"an array has shape, dtype and ndim, no {node.attr}")
        if isinstance(value, Expr):
            if node.attr in ("dtype", "astype"):
                return getattr(value, node.attr)
            self.source.fail(node, f"a number has dtype and astype, no {node.attr}")
        return getattr(value, node.attr)

    def subscript(self, node: ast.Subscript) -> Any:
        value = self.value(node.value)
        if isinstance(value, Array):
            return BufferLoad(value.buffer, self.indices(node, value))
        if isinstance(value, Expr):
            self.source.fail(node, "a number has no elements")
        index = self.value(node.slice)
        at = build.as_int(index) if isinstance(index, Expr) else index
        if at is None:
            self.source.fail(node, "a tuple is indexed by a constant", hint="use const_range for a loop over its elements")
        return value[at]

    def indices(self, node: ast.Subscript, array: Array) -> tuple[Expr, ...]:
        """The indices of an element of `array`."""
        parts: Sequence[ast.expr] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(part, ast.Slice) for part in parts):
            self.source.fail(node, "a part of an array cannot be taken", hint="write the loop over its elements")
        found = tuple([self.expr(part) for part in parts])
        if len(found) != len(array.buffer.shape):
            rank = len(array.buffer.shape)
            self.source.fail(node, f"{array.buffer.name} has {rank} dimensions and is indexed by {len(found)}")
        for part, index in zip(parts, found):
            if not index.dtype.is_integer:
                self.source.fail(part, f"an index is an integer, this is {index.dtype}", hint="cast it: int32(x)")
        return found

    # --- operators ---

    def binary(self, node: ast.BinOp) -> Any:
        return self.apply(node, node.op, self.value(node.left), self.value(node.right))

    def apply(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        """`left op right`."""
        function = _BINARY.get(type(op))
        if function is None:
            self.source.fail(node, f"the operator {type(op).__name__} is not part of hybrid script")
        for side in (left, right):
            if isinstance(side, Array):
                self.source.fail(node, f"{side.buffer.name} is a whole array", hint="read an element: a[i]")
        return function(left, right)

    def unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return build.logical_not(self.condition(value)) if isinstance(value, Expr) else not value
        if isinstance(node.op, ast.USub):
            return -value
        return ~value if isinstance(node.op, ast.Invert) else value

    def logical(self, node: ast.BoolOp) -> Any:
        """`and`, `or`: the later ones are asked only where the earlier ones do not decide."""
        both = isinstance(node.op, ast.And)
        result: Any = both
        for part in node.values:
            value = self.value(part)
            if not isinstance(result, Expr):
                if bool(result) is not both:
                    return result
                result = value
            else:
                join = build.logical_and if both else build.logical_or
                result = join(self.condition(result), self.condition(build.as_expr(value)))
        return result

    def condition(self, value: Expr) -> Expr:
        """`value` as a condition: a number counts as true unless it is 0, as in Python."""
        return value if value.dtype.is_bool else build.not_equal(value, build.const(0, value.dtype))

    def compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = True
        for op, side in zip(node.ops, node.comparators):
            right = self.value(side)
            now, later = _COMPARE.get(type(op), (None, None))
            if now is None or later is None:
                self.source.fail(node, f"the comparison {type(op).__name__} is not part of hybrid script")
            one = later(left, right) if isinstance(left, Expr) or isinstance(right, Expr) else now(left, right)
            result = build.logical_and(result, one) if isinstance(result, Expr) or isinstance(one, Expr) else result and one
            left = right
        return result

    def choice(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        if not isinstance(test, Expr):
            return self.value(node.body if test else node.orelse)
        return build.if_then_else(self.condition(test), self.expr(node.body), self.expr(node.orelse))

    # --- calls ---

    def call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id not in self.scope:
            name = node.func.id
            if name in ("output_tensor", "allocate"):
                self.source.fail(node, f"{name} stands alone on the right of an assignment", hint=f"write t = {name}(...)")
            if name in LOOPS and name not in self.captured:
                self.source.fail(node, f"{name} makes a loop", hint=f"write for i in {name}(...):")
            made = self.language_call(node, name)
            if made is not None:
                return made
        function = self.value(node.func)
        args = [self.value(arg) for arg in node.args]
        options = {option.arg: self.value(option.value) for option in node.keywords if option.arg is not None}
        if not callable(function):
            self.source.fail(node, f"{_kind(function)} cannot be called")
        return function(*args, **options)

    def language_call(self, node: ast.Call, name: str) -> Any:
        """A function of the language; None if `name` is none, or if it can be computed now."""
        if name not in _LANGUAGE and not (name in CASTS or name in MATH):
            return None
        if name in self.captured and not hasattr(builtins, name) and not _is_plain_math(self.captured[name]):
            return None
        args = [self.value(arg) for arg in node.args]
        if node.keywords:
            self.source.fail(node, f"{name} takes no named arguments")
        if name == "len":
            return len(args[0].buffer.shape) and args[0].buffer.shape[0] if isinstance(args[0], Array) else len(args[0])
        for arg in args:
            if isinstance(arg, (Array, str, tuple)):
                self.source.fail(node, f"{name} takes numbers, not {_kind(arg)}")
        if name in CASTS:
            return build.cast(name, build.as_expr(args[0]))
        if name in _LANGUAGE:
            return _LANGUAGE[name](*args)
        if name in ("abs", "round", "power", "popcount"):
            return getattr(arithmetic if name != "round" else functions, name)(*args)
        return getattr(functions, name)(*args)


def _is_plain_math(value: Any) -> bool:
    """Whether a captured function is one of Python's or numpy's: the language has its own of that name."""
    return getattr(value, "__module__", "") in ("math", "numpy", "builtins") or type(value).__name__ == "ufunc"


def _fold(now: Callable[..., Any], later: Callable[[Any, Any], Expr]) -> Callable[..., Any]:
    def apply(*args: Any) -> Any:
        if not any(isinstance(arg, Expr) for arg in args):
            return now(*args)
        result = args[0]
        for arg in args[1:]:
            result = later(result, arg)
        return result

    return apply


def _ceil_div(a: Any, b: Any) -> Any:
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return -(-a // b)
    return build.floordiv(build.add(a, build.sub(b, 1)), b)


_LANGUAGE: dict[str, Callable[..., Any]] = {
    "len": len, "min": _fold(min, build.minimum), "max": _fold(max, build.maximum), "ceil_div": _ceil_div,
    "likely": lambda c: build.likely(c) if isinstance(c, Expr) else c, "max_num_threads": lambda allow_none=True: 1,
    "int": lambda x: build.cast("int32", x) if isinstance(x, Expr) else int(x),
    "float": lambda x: build.cast("float32", x) if isinstance(x, Expr) else float(x),
}


def _kind(value: Any) -> str:
    if isinstance(value, Array):
        return f"the array {value.buffer.name}"
    if isinstance(value, DType):
        return "a dtype"
    if isinstance(value, str):
        return f"the text {value!r}"
    return "a function" if callable(value) else f"a {type(value).__name__}" if not isinstance(value, IntImm) else "a number"


_READ: dict[type[ast.AST], Callable[[Expressions, Any], Any]] = {
    ast.Name: Expressions.name, ast.Constant: Expressions.constant, ast.Tuple: Expressions.sequence,
    ast.List: Expressions.sequence, ast.Attribute: Expressions.attribute, ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions.binary, ast.UnaryOp: Expressions.unary, ast.BoolOp: Expressions.logical,
    ast.Compare: Expressions.compare, ast.IfExp: Expressions.choice, ast.Call: Expressions.call,
}
