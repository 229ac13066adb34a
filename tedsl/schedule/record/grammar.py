"""The Python of one directive read as data: `i_outer, i_inner = s[C].split(s[C].op.axis[0], factor=8)`.

A text is parsed by Python's `ast` and matched with the patterns in `FORMS`; any other text is refused. Nothing is run.
"""

from __future__ import annotations

import ast
import functools
import warnings

from tedsl.errors import ArgumentError
from tedsl.ir.source_line import SourceLine
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.term import FORMS, Apply, Defined, Function, Name, Series, Term, is_sound

LONGEST = 10_000  # characters of one directive
DEEPEST = 100  # expressions in one another


def read_directive(text: str, stage: str = "", where: SourceLine | None = None) -> Directive:
    """The directive that `text` denotes; ArgumentError for any other text. `stage`, `where`: see Directive."""
    if len(text) > LONGEST:
        raise ArgumentError(f"a directive of {len(text)} characters: the longest that is read has {LONGEST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's doubts about a text that is not going to be run
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise refused(text, f"it is not Python: {error}") from None
    statement = body[0] if len(body) == 1 else None
    results: tuple[str, ...] = ()
    several = False
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        several = isinstance(statement.targets[0], ast.Tuple)
        results = _names(statement.targets[0], text)
    elif not isinstance(statement, ast.Expr):
        raise refused(text, "it is not one call")
    value = statement.value
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        raise refused(text, "it is not a call of a directive")
    if any(keyword.arg is None for keyword in value.keywords):
        raise refused(text, "arguments are written out, not **given")
    if len({keyword.arg for keyword in value.keywords}) < len(value.keywords):
        raise refused(text, "an argument is given twice")
    read = functools.partial(_term, text=text, depth=0)
    on = read(value.func.value)
    if not isinstance(on, (Name, Apply)):
        raise refused(text, f"{_shown(value.func.value)} has no directives")
    return Directive(value.func.attr, stage, on, tuple([read(one) for one in value.args]),
                     tuple([(str(one.arg), read(one.value)) for one in value.keywords]), results, several, where)


def refused(text: str, problem: str, hint: str = "") -> ArgumentError:
    """The error for a text that is not a directive."""
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return ArgumentError(f"the journal says {shown!r}: {problem}",
                         hint=hint or "a journal holds directives as s.journal writes them, for example "
                              "s[C].split(s[C].op.axis[0], factor=8)")


def _names(target: ast.expr, text: str) -> tuple[str, ...]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(isinstance(part, ast.Name) for part in parts):
        raise refused(text, "results are given names")
    return tuple([part.id for part in parts if isinstance(part, ast.Name)])


def _term(e: ast.expr, text: str, depth: int) -> Term:
    """The term that `e` denotes. `text`: that of the whole directive; `depth`: the number of expressions around `e`."""
    if depth > DEEPEST:
        raise refused(text, f"more than {DEEPEST} expressions stand in one another")
    read = functools.partial(_term, text=text, depth=depth + 1)
    match e:
        case ast.Constant(value=bool() | str() | None as value):
            return value
        case ast.Constant(value=int() | float() as number) if is_sound(number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if is_sound(number):
            return -number
        case ast.Name(id=name):
            return Name(name)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return Series(tuple(map(read, parts)), isinstance(e, ast.List))
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            return Defined(name, read(value))
        case ast.Lambda(args=ast.arguments(posonlyargs=[], args=names, vararg=None, kwonlyargs=[], kwarg=None, defaults=[]),
                        body=body) if len({one.arg for one in names}) == len(names):
            return Function(tuple([one.arg for one in names]), read(body))
    for op, pattern in _patterns().get(type(e), ()):
        captured = _captured(pattern, e)
        if captured is None:
            continue
        if FORMS[op].text.startswith("{}") and isinstance(captured[0], (ast.Constant, ast.UnaryOp)):
            break  # a number has no fields, and Python does not read 3.op
        return Apply(op, tuple(map(read, captured)))
    raise refused(text, f"{_shown(e)} is nothing that a journal may say")


def _shown(e: ast.expr) -> str:
    try:
        return ast.unparse(e)
    except (ValueError, RecursionError):  # a number of thousands of digits, a tree of thousands of levels
        return "a part of it"


@functools.cache
def _patterns() -> dict[type, list[tuple[str, ast.expr]]]:
    """The forms by the type of their ast node; in these patterns, parts are the names _0, _1, _2, in this order."""
    patterns: dict[type, list[tuple[str, ast.expr]]] = {}
    for op, form in FORMS.items():
        pattern = ast.parse(form.text.format("_0", "_1", "_2"), mode="eval").body
        patterns.setdefault(type(pattern), []).append((op, pattern))
    return patterns


def _captured(pattern: ast.AST, node: ast.AST) -> list[ast.expr] | None:
    """The expressions in `node` at the places of the parts of `pattern`, in order; None where `node` does not match."""
    if isinstance(pattern, ast.Name) and pattern.id in ("_0", "_1", "_2"):
        return [node] if isinstance(node, ast.expr) else None
    if type(pattern) is not type(node):
        return None
    parts: list[ast.expr] = []
    for name, wanted in ast.iter_fields(pattern):
        given = getattr(node, name)
        several = isinstance(wanted, list)
        if several and len(wanted) != len(given):
            return None
        for one, other in zip(wanted, given) if several else ((wanted, given),):
            captured = _captured(one, other) if isinstance(one, ast.AST) else [] if one == other else None
            if captured is None:
                return None
            parts += captured
    return parts
