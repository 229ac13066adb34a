"""The language of journals: the arguments of a directive as data that refers to no object of a particular schedule.

    s[C].op.axis[0]     Apply("item", (Apply("axis", (Apply("op", (Apply("item", (Name("s"), Name("C"))),)),)), 0))

A `Term` is a plain value, a name, a list, a function of indices, or one of the operations in `FORMS`. That table defines the
language: how each operation is written in Python, and what it means. Texts are printed from it, parsed with it (grammar.py) and
evaluated with it (evaluate.py); none is ever run as Python.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from tedsl.ir.expr import Expr
from tedsl.ir.operators import ExprOperators
from tedsl.lang import arithmetic, declare, reductions
from tedsl.lang.operation import Operation
from tedsl.record import record
from tedsl.schedule.memory_options import AXIS_SEPARATOR

NUMBERS = (int, float, Expr, ExprOperators)
PROGRAMS_FIT = "a journal fits programs with the same stages and axes; their sizes and formulas may differ"


@record
class Name:
    """A reference by name: to the schedule `s`, a tensor, or an object that an earlier directive created."""

    text: str


@record
class Apply:
    """An operation of `FORMS` on `parts`."""

    op: str
    parts: tuple[Term, ...]


@record
class Series:
    """A list, or a tuple."""

    parts: tuple[Term, ...]
    is_list: bool = True


@record
class Function:
    """`lambda parameters: result`. The parameters hide other names."""

    parameters: tuple[str, ...]
    result: Term


@record
class Defined:
    """`name := value`: the value, to which the name refers from here on."""

    name: str
    value: Term


Term: TypeAlias = bool | int | float | str | Name | Apply | Series | Function | Defined | None


class Meaningless(Exception):
    """Raised for an operation without a value. The message continues the text of its first part: "s[D].op.axis" "has 2 entries
    here".
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


@record
class Form:
    """How an operation is written in Python, with {} for each part, and its meaning. numeric: its parts must be numbers."""

    text: str
    meaning: Callable[..., Any]
    numeric: bool = False


def _field(name: str, owner: Any) -> Any:
    value = getattr(owner, name, None)
    if value is None:
        raise Meaningless(f"has no {name} that a journal may name")
    return value


def _item(items: Any, at: Any) -> Any:
    """Entry `at` of a list of stages or axes."""
    if not isinstance(items, (list, tuple)):
        raise Meaningless("is not a list")
    if isinstance(at, int) and 0 <= at < len(items):
        return items[at]
    count = f"{len(items)} {'entry' if len(items) == 1 else 'entries'}"
    raise Meaningless(f"has {count} here, and number {at!r}, counted from 0, is asked for", PROGRAMS_FIT)


def _output(op: Any, at: Any) -> Any:
    if not isinstance(op, Operation) or not isinstance(at, int) or not 0 <= at < op.num_outputs:
        raise Meaningless(f"has no output {at!r}", PROGRAMS_FIT)
    return op.output(at)


def _astype(value: Any, dtype: Any) -> Any:
    if not isinstance(value, ExprOperators):
        raise Meaningless("is not an expression")
    return value.astype(dtype)


FIELDS = ("stages", "op", "axis", "reduce_axis", "scan_axis", "var")
INFIX: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, ">>": operator.rshift,  # no <<, which makes a number of any length
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
FORMS: Mapping[str, Form] = {
    **{name: Form(f"{{}}.{name}", partial(_field, name)) for name in FIELDS},
    "item": Form("{}[{}]", _item),
    "output": Form("{}.output({})", _output),
    **{sign: Form(f"({{}} {sign} {{}})", meaning, numeric=True) for sign, meaning in INFIX.items()},
    "~": Form("(~{})", operator.invert, numeric=True),
    "-x": Form("(-{})", operator.neg, numeric=True),
    "astype": Form("{}.astype({})", _astype),
    "te.const": Form("te.const({}, {})", arithmetic.const),
    "te.min": Form("te.min({}, {})", reductions.min, numeric=True),
    "te.max": Form("te.max({}, {})", reductions.max, numeric=True),
    "te.all": Form("te.all({}, {})", reductions.all, numeric=True),
    "te.any": Form("te.any({}, {})", reductions.any, numeric=True),
    "te.AXIS_SEPARATOR": Form("te.AXIS_SEPARATOR", lambda: AXIS_SEPARATOR),
    "thread": Form("te.thread_axis({})", declare.thread_axis),
    "thread, range": Form("te.thread_axis({}, {})", declare.thread_axis),
    "thread, name": Form("te.thread_axis({}, name={})", lambda tag, name: declare.thread_axis(tag, name=name)),
    "thread, range, name": Form("te.thread_axis({}, {}, name={})", declare.thread_axis),
}


def text_of(term: Term) -> str:
    """`term` as Python text."""
    match term:
        case Name(text=text):
            return text
        case Apply(op=op, parts=parts):
            return FORMS[op].text.format(*map(enclosed, parts))
        case Series(parts=parts, is_list=is_list):
            inner = ", ".join(map(text_of, parts))
            return f"[{inner}]" if is_list else f"({inner}{',' * (len(parts) == 1)})"
        case Function(parameters=names, result=result):
            return f"lambda {', '.join(names)}: {text_of(result)}"
        case Defined(name=name, value=value):
            return f"{name} := {text_of(value)}"
    return repr(term)


def is_sound(number: float) -> bool:
    """Whether a journal may hold `number`: finite, and of at most 64 bits if it is an integer."""
    return math.isfinite(number) if isinstance(number, float) else abs(number) < 2**64


def enclosed(term: Term) -> str:
    """`term` as Python text inside another term, where `name := value` and functions need parentheses."""
    return f"({text_of(term)})" if isinstance(term, (Defined, Function)) else text_of(term)


def names_used(term: Term) -> Iterator[str]:
    """The free names of `term`: neither parameters of its functions nor names that it defines."""
    match term:
        case Name(text=text):
            yield text
        case Apply(parts=parts) | Series(parts=parts):
            for part in parts:
                yield from names_used(part)
        case Function(parameters=names, result=result):
            yield from (name for name in names_used(result) if name not in names)
        case Defined(value=value):
            yield from names_used(value)


def names_defined(term: Term) -> Iterator[str]:
    """The names that `term` defines: `x := te.thread_axis(...)`."""
    match term:
        case Apply(parts=parts) | Series(parts=parts):
            for part in parts:
                yield from names_defined(part)
        case Defined(name=name, value=value):
            yield name
            yield from names_defined(value)


def field(owner: Term, name: str, at: int | None = None) -> Term:
    """The term `owner.name`, or with `at` the entry `owner.name[at]`."""
    whole = Apply(name, (owner,))
    return whole if at is None else Apply("item", (whole, at))


def stage_named(name: str) -> Term:
    """The term `s[name]`."""
    return Apply("item", (SCHEDULE, Name(name)))


SCHEDULE = Name("s")
