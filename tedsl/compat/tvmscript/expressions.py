"""Expressions of a script, evaluated: Python computes them with the variables and buffers of the function as values."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import reduce
from typing import Any

from tedsl.compat.tvmscript import declarations
from tedsl.errors import ExpressionError, TedslError
from tedsl.ir import build
from tedsl.ir.expr import Expr

_OURS = "_of_scripts"  # the name in `names` under which rewritten expressions find the functions of this file


def evaluate(node: ast.expr, names: Mapping[str, Any], where: str) -> Any:
    """The value of an expression. where: the function and line, for errors of Python, which become errors about the script."""
    code = compile(ast.fix_missing_locations(ast.Expression(_Rewritten().visit(node))), where, "eval")
    try:
        return eval(code, {**names, _OURS: _FUNCTIONS})
    except TedslError:
        raise
    except Exception as error:
        raise ExpressionError(f"{where}: {ast.unparse(node)}: {error}") from None


class _Rewritten(ast.NodeTransformer):
    """What Python does not let objects decide: `a and b`, `not a`, `a if c else b`, `a < b < c`; and elements of buffers."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        return self._call("all" if isinstance(node.op, ast.And) else "any", *node.values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return self._call("no", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return self._call("choose", node.test, node.body, node.orelse)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        one = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:])]
        return one[0] if len(one) == 1 else self._call("all", *one)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        return self._call("load", node.value, _key(node.slice))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("vload", "vstore"):
            call = self._call(node.func.attr, node.func.value, *node.args)
            call.keywords = node.keywords
            return call
        return node

    def _call(self, name: str, *args: ast.expr) -> ast.Call:
        function = ast.Subscript(ast.Name(_OURS, ast.Load()), ast.Constant(name), ast.Load())
        return ast.Call(function, list(args), [])


def _key(node: ast.expr) -> ast.expr:
    """An index as an expression: slices as calls of `slice`."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_key(part) for part in node.elts], ast.Load())
    if not isinstance(node, ast.Slice):
        return node
    parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
    return ast.Call(ast.Name("slice", ast.Load()), parts, [])


def key_of(node: ast.expr) -> ast.expr:
    """The index of an element that is assigned, as an expression to evaluate."""
    return _key(node)


def _logical(two: Any, plain: Any) -> Any:
    return lambda *values: reduce(two, values) if any(isinstance(value, Expr) for value in values) else plain(values)


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, Expr):
        return build.if_then_else(condition, yes, no)
    return yes if condition else no


_FUNCTIONS = {
    "all": _logical(build.logical_and, all), "any": _logical(build.logical_or, any), "choose": _choose,
    "no": lambda value: build.logical_not(value) if isinstance(value, Expr) else not value,
    "load": declarations.load, "vload": declarations.vload, "vstore": declarations.vstore,
}
