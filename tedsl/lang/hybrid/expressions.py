"""Expressions of a hybrid script: Python's syntax tree is evaluated to expressions, or to Python values that are known at
once.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.expr import BufferLoad, Expr
from tedsl.lang.hybrid.calls import arguments, call_language, in_language, is_function
from tedsl.lang.hybrid.names import LOOPS
from tedsl.lang.hybrid.scope import Array, Number, Scope
from tedsl.lang.hybrid.source import Source
from tedsl.lang.hybrid.values import kind_of, number, refuse_arrays, truth
from tedsl.lang.tensor import Tensor

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
    """Evaluates expressions. Values are Exprs, Python values, arrays of the program, or functions to call immediately."""

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
        except (TypeError, ValueError, ArithmeticError, IndexError, KeyError, AttributeError) as error:
            self.source.fail(node, f"{type(error).__name__}: {error}")

    def expr(self, node: ast.expr) -> Expr:
        """The value of `node` as an expression."""
        return number(self.source, node, self.value(node))

    def test(self, node: ast.expr) -> Expr | bool:
        """The value of `node` as a condition; a bool if it is already known."""
        if not isinstance(node, ast.BoolOp):
            return truth(self.source, node, self.value(node))
        both = isinstance(node.op, ast.And)
        result: Expr | bool = both
        for part in node.values:
            if isinstance(result, bool):
                if result is not both:
                    return result
                result = self.test(part)
            else:
                result = (build.logical_and if both else build.logical_or)(result, self.test(part))
        return result

    def name(self, node: ast.Name) -> Any:
        if node.id in self.scope:
            named = self.scope.find(node.id)
            return BufferLoad(named.buffer, (build.const(0),)) if isinstance(named, Number) else named
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
        self.source.fail(node, f"{node.value!r} is not a number")

    def sequence(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        return tuple([self.value(element) for element in node.elts])

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
        if isinstance(value, Tensor):
            self.source.fail(node, f"{value.name} is a tensor around the script", hint="make it an argument of the script")
        parts: Sequence[ast.expr] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:  # b[i, j] is b[i][j] of a list of lists
            index = self.value(part)
            at = build.as_int(index) if isinstance(index, Expr) else index
            if at is None:
                self.source.fail(node, "a tuple is indexed by a constant", hint="use const_range for a loop over its elements")
            value = value[at]
        return value

    def indices(self, node: ast.Subscript, array: Array) -> tuple[Expr, ...]:
        """The indices of an element of `array`."""
        parts: Sequence[ast.expr] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(part, ast.Slice) for part in parts):
            self.source.fail(node, "a part of an array cannot be taken", hint="write the loop over its elements")
        indices = tuple([self.expr(part) for part in parts])
        if len(indices) != len(array.buffer.shape):
            rank = len(array.buffer.shape)
            self.source.fail(node, f"{array.name} has {rank} dimensions and is indexed by {len(indices)}")
        for part, index in zip(parts, indices):
            if not index.dtype.is_integer:
                self.source.fail(part, f"an index is an integer, this is {index.dtype}", hint="cast it: int32(x)")
        return indices

    # --- operators ---

    def binary(self, node: ast.BinOp) -> Any:
        return self.apply(node, node.op, self.value(node.left), self.value(node.right))

    def apply(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        """`left op right`."""
        function = _BINARY.get(type(op))
        if function is None:
            self.source.fail(node, f"the operator {type(op).__name__} is not part of hybrid script")
        refuse_arrays(self.source, node, left, right)
        return function(left, right)

    def unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            holds = self.test(node.operand)
            return build.logical_not(holds) if isinstance(holds, Expr) else not holds
        value = self.value(node.operand)
        refuse_arrays(self.source, node, value)
        if isinstance(node.op, ast.USub):
            return -value
        return ~value if isinstance(node.op, ast.Invert) else value

    def logical(self, node: ast.BoolOp, at: int = 0) -> Any:
        """The value of `and` or `or`: one of the operands, as in Python; later operands are evaluated only where earlier ones
        do not decide.
        """
        part, both = node.values[at], isinstance(node.op, ast.And)
        value = self.value(part)
        if at + 1 == len(node.values):
            return value
        holds = truth(self.source, part, value)
        if isinstance(holds, bool):
            return self.logical(node, at + 1) if holds is both else value
        later = number(self.source, node.values[at + 1], self.logical(node, at + 1))
        if value.dtype.is_bool and later.dtype.is_bool:
            return (build.logical_and if both else build.logical_or)(value, later)
        return build.if_then_else(holds, *((later, value) if both else (value, later)))

    def compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = True
        for op, side in zip(node.ops, node.comparators):
            right = self.value(side)
            now, later = _COMPARE.get(type(op), (None, None))
            if now is None or later is None:
                self.source.fail(node, f"the comparison {type(op).__name__} is not part of hybrid script")
            refuse_arrays(self.source, node, left, right)
            comparison = later(left, right) if isinstance(left, Expr) or isinstance(right, Expr) else now(left, right)
            lazy = isinstance(result, Expr) or isinstance(comparison, Expr)
            result = build.logical_and(result, comparison) if lazy else result and comparison
            left = right
        return result

    def choice(self, node: ast.IfExp) -> Any:
        test = self.test(node.test)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse)
        return build.if_then_else(test, self.expr(node.body), self.expr(node.orelse))

    # --- calls ---

    def call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id not in self.scope:
            name = node.func.id
            if name in ("output_tensor", "allocate"):
                self.source.fail(node, f"{name} stands alone on the right of an assignment", hint=f"write t = {name}(...)")
            if name in LOOPS and name not in self.captured:
                self.source.fail(node, f"{name} makes a loop", hint=f"write for i in {name}(...):")
            if is_function(name) and in_language(name, self.captured):
                return call_language(self.source, node, name, *arguments(self.source, node, self.value))
        function = self.value(node.func)
        args, options = arguments(self.source, node, self.value)
        if not callable(function):
            self.source.fail(node, f"{kind_of(function)} cannot be called")
        # A function of the program around may use an array as it likes.
        if any(function is builtin for builtin in _BUILTINS.values()):
            refuse_arrays(self.source, node, *args)
        return function(*args, **options)


_READ: dict[type[ast.AST], Callable[[Expressions, Any], Any]] = {
    ast.Name: Expressions.name, ast.Constant: Expressions.constant, ast.Tuple: Expressions.sequence,
    ast.List: Expressions.sequence, ast.Attribute: Expressions.attribute, ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions.binary, ast.UnaryOp: Expressions.unary, ast.BoolOp: Expressions.logical,
    ast.Compare: Expressions.compare, ast.IfExp: Expressions.choice, ast.Call: Expressions.call,
}
