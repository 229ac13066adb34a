"""The graph that a text describes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy

from tedsl.errors import GraphError, TedslError
from tedsl.graph.apply import apply, call
from tedsl.graph.dimensions import dimension_of, variables_in
from tedsl.graph.graph import Graph
from tedsl.graph.value import CALL, Spec, Value, constant
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Var
from tedsl.runtime.array import numpy_dtype

_FLOATS = {"inf": float("inf"), "nan": float("nan")}


def parse(source: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """The last graph of a text, which may call those before it. constants: the arrays that the text names, or constants.

    Raises GraphError, with the number of the line, for a text that describes no graph.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise GraphError(f"line {error.lineno}: {error.msg}",
                         hint="the text is in the syntax of Python, as str(graph) writes it") from None
    reader = _Reader(dict(constants or {}))
    for statement in tree.body:
        reader.graph(statement)
    if not reader.graphs:
        raise GraphError("the text has no graph: def main(x: float32[1, 3]): ...")
    return list(reader.graphs.values())[-1]


def _refuse(at: ast.AST, problem: str, hint: str = "") -> NoReturn:
    raise GraphError(f"line {getattr(at, 'lineno', '?')}: {problem}", hint=hint)


def spec_of(tree: ast.expr | None, variables: dict[str, Var]) -> Spec:
    """The shape and dtype that a piece of text says: float32[1, n]. Raises GraphError if it says none."""
    match tree:
        case ast.Subscript(value=ast.Name(id=name), slice=inside):
            extents = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            shape = [dimension_of(one, variables) for one in extents]
            if None in shape:
                raise GraphError(f"{ast.unparse(inside)} are no extents")
            return Spec(shape, dtype(name))
        case _:
            raise GraphError("a shape and dtype are missing", hint="x: float32[1, 3], or float32[()] without dimensions")


class _Reader:
    def __init__(self, constants: dict[str, Any]) -> None:
        self.arrays = constants
        self.graphs: dict[str, Graph] = {}
        self.constants: dict[str, Value] = {}  # those that stand in the text by their name, one for all graphs
        self.everywhere: dict[str, Var] = {}  # one for all graphs, too: results of a call have the extents of the callee
        self.variables: dict[str, Var] = {}  # those in the shapes of this graph
        self.values: dict[str, Value] = {}

    def graph(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.FunctionDef):
            _refuse(statement, "here stands a graph: def name(x: float32[1, 3]): ...")
        compiler = self._compiler(statement)
        given = statement.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs:
            _refuse(statement, f"{statement.name}: the inputs of a graph are x: float32[1, 3], without defaults or stars")
        self.variables, self.values = {}, {}
        names = [one.arg for one in given.args]
        twice = [one for at, one in enumerate(given.args) if one.arg in names[:at]]
        if twice:
            _refuse(twice[0], f"{statement.name} has two inputs called {twice[0].arg}", "every value has a name of its own")
        inputs = [Value(one.arg, self._spec(one.annotation, one)) for one in given.args]
        self.values = dict(zip(names, inputs))
        *body, last = statement.body
        for line in body:
            self._assign(line)
        if not isinstance(last, ast.Return) or last.value is None:
            _refuse(last, f"{statement.name} ends with `return` and its outputs")
        returned = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
        if statement.name in self.graphs:
            _refuse(statement, f"there are two graphs called {statement.name}")
        self.graphs[statement.name] = Graph(inputs, [self._value(one) for one in returned], statement.name, compiler)

    @staticmethod
    def _compiler(statement: ast.FunctionDef) -> str | None:
        match statement.decorator_list:
            case []:
                return None
            case [ast.Call(func=ast.Name(id="compiler"), args=[ast.Constant(value=str() as name)], keywords=[])]:
                return name
            case [other, *_]:
                _refuse(other, f"{ast.unparse(other)} is not known here",
                        hint='@compiler("name") says who makes code of the graph')
        return None

    def _spec(self, annotation: ast.expr | None, at: ast.AST) -> Spec:
        try:
            spec = spec_of(annotation, self.everywhere)
        except TedslError as refusal:
            _refuse(at, str(refusal))
        self.variables |= {var.name: var for extent in spec.shape for var in variables_in(extent)}
        return spec

    def _assign(self, line: ast.stmt) -> None:
        match line:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.Call() as value):
                self._set([name], value, line, annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
                self._set([name], value, line, None)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Call() as value) \
                    if all(isinstance(one, ast.Name) for one in names):
                self._set([ast.unparse(one) for one in names], value, line, None)
            case _:
                _refuse(line, f"{ast.unparse(line)} is no line of a graph", hint="write y: float32[1, 3] = nn.relu(x)")

    def _set(self, names: list[str], value: ast.Call, line: ast.stmt, annotation: ast.expr | None) -> None:
        for name in names:
            if name in self.values:
                _refuse(line, f"{name} is set twice", hint="every value has a name of its own")
        stated = None if annotation is None else self._spec(annotation, line)  # its variables may be arguments
        results = self._results(value, names[0], annotation)
        if len(results) != len(names):
            _refuse(line, f"{ast.unparse(value.func)} gives {len(results)} values, for {len(names)} names")
        if stated is not None and stated != results[0].spec:
            _refuse(line, f"{names[0]} is {results[0].spec}, and the text says {stated}")
        self.values |= zip(names, results)

    def _results(self, value: ast.Call, name: str, annotation: ast.expr | None) -> list[Value]:
        operator = ast.unparse(value.func)
        if operator == "constant":
            return [self._constant(value, name, annotation)]
        if operator == CALL:
            return _named(self._call(value), name)
        args = [self._argument(one) for one in value.args]
        named = {one.arg: self._argument(one.value) for one in value.keywords if one.arg}
        try:
            made = apply(operator, *args, **named)
        except TedslError as refusal:
            raise GraphError(f"line {value.lineno}: {refusal}") from refusal
        return _named(made if isinstance(made, list) else [made], name)

    def _call(self, value: ast.Call) -> list[Value]:
        match value.args:
            case [ast.Name(id=name), *operands] if name in self.graphs:
                given = [self._value(one) for one in operands]
                try:
                    return list(call(self.graphs[name], *given).outputs)
                except GraphError as refusal:
                    raise GraphError(f"line {value.lineno}: {refusal}") from None
            case _:
                _refuse(value, f"{ast.unparse(value)} calls no graph that stands above",
                        hint=f"graphs: {', '.join(self.graphs) or 'none'}")

    def _constant(self, value: ast.Call, name: str, annotation: ast.expr | None) -> Value:
        if len(value.args) != 1 or value.keywords or annotation is None:
            _refuse(value, 'a constant is c: float32[2] = constant([1.0, 2.0]), or constant("name") of an array that is given')
        spec = self._spec(annotation, value)
        (given,) = value.args
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return self._array(given.value, spec, value)
        numbers = self._number(given)
        try:
            array = numpy.array(numbers, dtype=numpy_dtype(spec.dtype))
        except (ValueError, TypeError, OverflowError) as error:
            _refuse(value, f"{ast.unparse(given)} are no elements of {spec}: {error}")
        if array.size == 0 and spec.size == 0:
            array = numpy.empty([extent for extent in spec.shape if isinstance(extent, int)], array.dtype)
        if array.shape != spec.shape:
            _refuse(value, f"{name} is {spec}, and its elements have the shape {array.shape}")
        known = self.constants.get(name)  # names of constants are those of the whole text: graphs may share one
        if known is None or known.spec != spec or known.data.tobytes() != array.tobytes():
            known = self.constants[name] = constant(array, name=name)
        return known

    def _array(self, name: str, spec: Spec, at: ast.AST) -> Value:
        if name not in self.constants:
            if name not in self.arrays:
                _refuse(at, f"the array of the constant {name} is missing", hint=f"Graph.parse(text, {{{name!r}: array}})")
            given = self.arrays[name]
            self.constants[name] = given if isinstance(given, Value) else constant(numpy.asarray(given), name=name)
        if self.constants[name].spec != spec:
            _refuse(at, f"the constant {name} is {spec}, and its array is {self.constants[name].spec}")
        return self.constants[name]

    def _number(self, tree: ast.expr) -> Any:
        match tree:
            case ast.List(elts=parts):
                return [self._number(part) for part in parts]
            case ast.Constant(value=bool() | int() | float() as number):
                return number
            case ast.Name(id=name) if name in _FLOATS:
                return _FLOATS[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._number(operand)
            case _:
                _refuse(tree, f"{ast.unparse(tree)} is no number")

    def _value(self, tree: ast.expr) -> Value:
        if isinstance(tree, ast.Name) and tree.id in self.values:
            return self.values[tree.id]
        _refuse(tree, f"{ast.unparse(tree)} is not the name of a value", hint=f"values: {', '.join(self.values) or 'none'}")

    def _argument(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.Name(id=name) if name in _FLOATS:
                return _FLOATS[name]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)) if name in _FLOATS:
                return -_FLOATS[name]
            case ast.Constant(value=None | bool() | int() | float() | str() as constant_):
                return constant_
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple([self._argument(part) for part in parts])
            case _:
                variables = dict(self.variables)
                found = dimension_of(tree, variables)
                unknown = [name for name in variables if name not in self.variables]
                if unknown:
                    _refuse(tree, f"{unknown[0]} is neither a value nor a variable of a shape",
                            hint=f"values: {', '.join(self.values) or 'none'}")
                if found is None:
                    _refuse(tree, f"{ast.unparse(tree)} is no argument of an operator")
                return found


def _named(results: list[Value], name: str) -> list[Value]:
    """The results of a node; a single one with the name that it has in the text."""
    if len(results) == 1:
        object.__setattr__(results[0], "name", name)  # it was made a line ago, and nobody else has it
    return results
