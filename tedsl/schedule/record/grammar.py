"""The Python that a journal may contain, and what it means: calls on `s`, its stages and their axes, with plain arguments.

    i_outer, i_inner = s[C].split(s[C].op.axis[0], factor=8)
    A_local = s.cache_read(A, 'local', [s.stages[2].op])

Texts are parsed and walked, never run: a journal that comes from a file can do nothing but apply directives.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tedsl.errors import ArgumentError, TedslError
from tedsl.ir.expr import Expr
from tedsl.ir.operators import ExprOperators
from tedsl.lang import arithmetic, declare, reductions
from tedsl.lang.operation import Operation
from tedsl.schedule.layout import AXIS_SEPARATOR

LONGEST = 10_000  # characters of one directive
NUMBERS = (bool, int, float, Expr, ExprOperators)
ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.RShift: operator.rshift}  # << is none of them: of two numbers it makes one of any length
COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne}
TE: Mapping[str, Callable[..., Any]] = {
    "thread_axis": declare.thread_axis, "const": arithmetic.const, "min": reductions.min, "max": reductions.max,
    "all": reductions.all, "any": reductions.any}


@dataclass(frozen=True)
class ParsedCall:
    """`results = on.name(...)`, where `on` is `s` itself or an expression for a stage."""

    results: tuple[str, ...]
    name: str
    on: ast.expr
    call: ast.Call

    @property
    def on_schedule(self) -> bool:
        return isinstance(self.on, ast.Name) and self.on.id == "s"


def parse(text: str) -> ParsedCall:
    """The call that `text` writes; ArgumentError for anything that is not one directive."""
    if len(text) > LONGEST:
        raise ArgumentError(f"a directive of {len(text)} characters: the longest that is read has {LONGEST}")
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise refused(text, f"it is no Python: {error}") from None
    statement = body[0] if len(body) == 1 else None
    results: tuple[str, ...] = ()
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        results = _names(statement.targets[0], text)
    elif not isinstance(statement, ast.Expr):
        raise refused(text, "it is not one call")
    value: Any = statement.value
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        raise refused(text, "it is no call of a directive")
    if value.func.attr.startswith("_"):
        raise refused(text, f"{value.func.attr} is no directive")
    return ParsedCall(results, value.func.attr, value.func.value, value)


def _names(target: ast.expr, text: str) -> tuple[str, ...]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(isinstance(part, ast.Name) for part in parts):
        raise refused(text, "results are given names")
    return tuple([part.id for part in parts if isinstance(part, ast.Name)])


def refused(text: str, problem: str, hint: str = "") -> ArgumentError:
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return ArgumentError(f"the journal says {shown!r}: {problem}",
                         hint=hint or "a journal holds directives as s.journal writes them, for example "
                              "s[C].split(s[C].op.axis[0], factor=8)")


class Evaluator:
    """The values of the expressions of a directive. `lookup` knows the names, `schedule` is `s`; `own`: parameters of the
    lambda that they stand in, which hide all other names."""

    def __init__(self, text: str, schedule: Any, lookup: Callable[[str], Any], define: Callable[[str, Any], None],
                 own: Mapping[str, Any] | None = None) -> None:
        self.text, self.schedule, self.lookup, self.define = text, schedule, lookup, define
        self.own: Mapping[str, Any] = own or {}

    def arguments(self, call: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        if any(keyword.arg is None for keyword in call.keywords):
            raise refused(self.text, "arguments are written out, not **given")
        return [self(one) for one in call.args], {str(k.arg): self(k.value) for k in call.keywords}

    def __call__(self, e: ast.expr) -> Any:
        try:
            return self._named(e.id) if isinstance(e, ast.Name) else self._value(e)
        except RecursionError as error:
            raise refused(self.text, f"{ast.unparse(e)} has no value: {error}") from None

    def _computed(self, e: ast.expr, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """function(*args, **named), for `e`. Only what goes wrong here is a fault of the journal, not of who looks names up."""
        try:
            return function(*args, **named)
        except TedslError:
            raise
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise refused(self.text, f"{ast.unparse(e)} has no value: {error}") from None

    def _value(self, e: ast.expr) -> Any:
        match e:
            case ast.Constant(value=value) if isinstance(value, (bool, int, float, str, type(None))):
                return value
            case ast.List(elts=parts):
                return [self(part) for part in parts]
            case ast.Tuple(elts=parts):
                return tuple([self(part) for part in parts])
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                made = self(value)
                self.define(name, made)
                return made
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._computed(e, operator.invert, self._number(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._computed(e, operator.neg, self._number(operand))
            case ast.BinOp(left=a, op=op, right=b) if type(op) in ARITHMETIC:
                return self._computed(e, ARITHMETIC[type(op)], self._number(a), self._number(b))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in COMPARISONS:
                return self._computed(e, COMPARISONS[type(op)], self._number(a), self._number(b))
            case ast.Lambda(args=ast.arguments(posonlyargs=[], args=names, vararg=None, kwonlyargs=[], kwarg=None), body=body):
                return self._function([one.arg for one in names], body)
            case ast.Attribute(value=ast.Name(id="te"), attr="AXIS_SEPARATOR") if "te" not in self.own:
                return AXIS_SEPARATOR
            case ast.Subscript(value=owner, slice=index):
                return self._item(owner, index)
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(owner, name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="te"), attr=name)) if name in TE and "te" not in self.own:
                args, named = self.arguments(e)
                return self._computed(e, TE[name], *args, **named)
            case ast.Call(func=ast.Attribute(value=owner, attr="output"), args=[index], keywords=[]):
                op, at = self(owner), self(index)
                if isinstance(op, Operation) and isinstance(at, int) and 0 <= at < op.num_outputs:
                    return op.output(at)
            case ast.Call(func=ast.Attribute(value=owner, attr="astype"), args=[kind], keywords=[]):
                return self._computed(e, operator.methodcaller("astype", self(kind)), self._number(owner))
        raise refused(self.text, f"{ast.unparse(e)} is nothing that a journal may say")

    def _named(self, name: str) -> Any:
        if name in self.own:
            return self.own[name]
        return self.schedule if name == "s" else self.lookup(name)

    def _function(self, names: list[str], body: ast.expr) -> Callable[..., Any]:
        """The function that a lambda writes."""
        def called(*given: Any) -> Any:
            own = {**self.own, **dict(zip(names, given))}
            return Evaluator(self.text, self.schedule, self.lookup, self.define, own)(body)

        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return called

    def _number(self, e: ast.expr) -> Any:
        value = self(e)
        if not isinstance(value, NUMBERS):
            raise refused(self.text, f"{ast.unparse(e)} is no number")
        return value

    def _is_schedule(self, e: ast.expr) -> bool:
        return isinstance(e, ast.Name) and e.id == "s" and "s" not in self.own

    def _item(self, owner: ast.expr, index: ast.expr) -> Any:
        """`s[C]`, `s.stages[2]`, `....op.axis[0]`."""
        if self._is_schedule(owner):
            return self.schedule[self(index)]
        if isinstance(owner, ast.Attribute) and owner.attr in ("stages", "axis", "reduce_axis"):
            among, at = self(owner), self(index)
            if not isinstance(among, Sequence):
                raise refused(self.text, f"{ast.unparse(owner)} is no list")
            if isinstance(at, int) and 0 <= at < len(among):
                return among[at]
            count = f"{len(among)} {'entry' if len(among) == 1 else 'entries'}"
            raise refused(self.text, f"{ast.unparse(owner)} has {count} here, and number {at!r}, counted from 0, is asked for",
                          "a journal fits programs with the same stages and axes; their sizes and formulas may differ")
        raise refused(self.text, f"{ast.unparse(owner)}[...] is nothing that a journal may say")

    def _attribute(self, owner: ast.expr, name: str) -> Any:
        if name == "stages" and self._is_schedule(owner):
            return self.schedule.stages
        if name in ("op", "axis", "reduce_axis", "scan_axis", "var"):
            found = getattr(self(owner), name, None)
            if found is not None:
                return found
        raise refused(self.text, f"{ast.unparse(owner)} has no {name} that a journal may name")
