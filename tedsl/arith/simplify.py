"""The simplifier: simplifies operands first, then applies rules until none does. Explicit stack, linear in the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.arith.bounds import Bounds
from tedsl.arith.conditions import conjuncts, learn
from tedsl.arith.rules.compare import fold_comparison
from tedsl.arith.rules.floordiv import constant, fold_floordiv
from tedsl.arith.rules.floormod import fold_floormod
from tedsl.arith.rules.logic import fold_call, fold_logical, fold_not, fold_select, negated
from tedsl.arith.rules.minmax import fold_minmax
from tedsl.arith.rules.sums import fold_add, fold_mul, fold_sub
from tedsl.arith.rules.vectors import fold_vector
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, dtype
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryOp,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.ops import IF_THEN_ELSE

Rule = Callable[[Any, Bounds], Expr | None]
MAX_CHOICES = 2  # nested conditions that are used inside their sides: each simplifies shared parts anew
MAX_STEPS = 12  # rewrites of one node: rules make progress, this is the fuse

# The bits of the significand, with the leading one: integers up to 2**bits are exact.
_EXACT = {dtype("float16"): 11, dtype("bfloat16"): 8, dtype("float32"): 24, dtype("float64"): 53}

# Rules of scalar integers; the value of the table at a type is tried again on what it returns.
INTEGER_RULES: dict[type, Rule] = {
    Add: fold_add, Sub: fold_sub, Mul: fold_mul, FloorDiv: fold_floordiv, FloorMod: fold_floormod,
}


def _fold_truncated(e: Div | Mod, known: Bounds) -> Expr | None:
    """Folds constants, and turns x / d and x mod d of nonnegative integers into x // d and x % d where those get simpler."""
    folded = build.fold(type(e), e.a, e.b)
    if folded is not None or not e.dtype.is_integer or e.dtype.lanes != 1:
        return folded
    if known.within(e.a, 0, None) and known.within(e.b, 0, None):
        folded = fold_floordiv(FloorDiv(e.a, e.b), known) if type(e) is Div else fold_floormod(FloorMod(e.a, e.b), known)
    return _divided_twice(e) if folded is None and type(e) is Div else folded


def _divided_twice(e: Div) -> Expr | None:
    """Simplifies (x / c) / d → x / (c*d) for positive constants whose product fits: both round towards 0."""
    inner, d = e.a, e.b
    if type(inner) is not Div or not isinstance(inner.b, IntImm) or not isinstance(d, IntImm):
        return None
    if inner.b.value < 1 or d.value < 1:
        return None
    by = constant(inner.b.value * d.value, e.dtype)
    return None if by is None else Div(inner.a, by)


def _fold_cast(e: Cast, known: Bounds) -> Expr | None:
    folded = build.cast(e.dtype, e.value)
    if not isinstance(folded, Cast):
        return folded
    return _cast_through_float(e, known)


def _cast_through_float(e: Cast, known: Bounds) -> Expr | None:
    """Simplifies cast(int, cast(float, x)) → cast(int, x) for integers x that the float represents."""
    through = e.value
    if not (e.dtype.is_integer and isinstance(through, Cast) and through.dtype in _EXACT and through.value.dtype.is_integer
            and e.dtype.lanes == 1):
        return None
    exact = 1 << _EXACT[through.dtype]
    low, high = known.range(through.value)
    whole = low is not None and high is not None and -exact <= low and high <= exact
    kept = known.within(through.value, e.dtype.min_value, e.dtype.max_value)
    return build.cast(e.dtype, through.value) if whole and kept else None


def _fold_other_arithmetic(e: Any, known: Bounds) -> Expr | None:
    """Folds floats and vectors: constants only, for x - x may be NaN."""
    return build.fold(type(e), e.a, e.b)


RULES: dict[type, Rule] = {
    **dict.fromkeys((EQ, NE, LT, LE, GT, GE), fold_comparison),
    Min: fold_minmax, Max: fold_minmax, And: fold_logical, Or: fold_logical, Not: fold_not,
    Select: fold_select, Call: fold_call, Cast: _fold_cast, Div: _fold_truncated, Mod: _fold_truncated,
}


def rewrite(e: Expr, known: Bounds) -> Expr | None:
    """Returns `e`, whose operands are simplified, after one step of simplification at its root; None if no rule applies."""
    kind, dtype = type(e), e.dtype
    if dtype.lanes > 1 and isinstance(e, BinaryOp):
        result = fold_vector(e, known)
        if result is not None:
            return result
    rule = INTEGER_RULES.get(kind)
    if rule is not None:
        if not dtype.is_integer or dtype.lanes != 1:
            return _fold_other_arithmetic(e, known)
        result = rule(e, known)
        if result is None and known.facts:
            low, high = known.range(e)
            if low is not None and low == high:  # a condition leaves one value
                return constant(low, dtype)
        return result
    rule = RULES.get(kind)
    if rule is None:
        return None
    result = rule(e, known)
    if result is None and dtype is BOOL and known.truths:
        holds = known.truths.get(known.value(e))  # type: ignore[arg-type]
        return None if holds is None else IntImm(BOOL, int(holds))
    return result


_LEAVES = frozenset((Var, SizeVar, IntImm, FloatImm, StringImm))


def simplify(root: Expr, known: Bounds, done: dict[Expr, Expr], depth: int = 0) -> Expr:
    """Returns the simplified form of `root`; `done` remembers results for the place that `known` describes.

    depth: how many conditions of `if_then_else` are known around `root`, at most MAX_CHOICES.
    """
    stack = [root]
    forms: dict[Expr, tuple[Expr, int]] = {}  # for a node that was rewritten: to what, and how many times
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        form, steps = forms.get(node) or (node, 0)
        if steps and form in done:
            stack.pop()
            done[node] = done[form]
            continue
        rebuilt = _with_simple_operands(form, known, done, stack, depth)
        if rebuilt is None:
            continue
        result = rewrite(rebuilt, known) if steps < MAX_STEPS else None
        if result is None or result is rebuilt:
            stack.pop()
            done[rebuilt] = done[form] = done[node] = rebuilt
        else:
            forms[node] = result, steps + 1
    return done[root]


def _with_simple_operands(form: Any, known: Bounds, done: dict[Expr, Expr], stack: list[Expr], depth: int) -> Expr | None:
    """Returns `form` over its simplified operands; None if some are not done yet and were put on the stack."""
    if type(form) in _LEAVES:
        return form  # type: ignore[no-any-return]
    if isinstance(form, BinaryOp):
        a, b = form.a, form.b
        x, y = done.get(a), done.get(b)
        if x is None and type(a) in _LEAVES:
            x = a
        if y is None and type(b) in _LEAVES:
            y = b
        if x is None or y is None:
            if y is None:
                stack.append(b)
            if x is None:
                stack.append(a)
            return None
        if x is a and y is b:
            return form
        node_type: Any = type(form)
        rebuilt: Expr = node_type(x, y)
        return rebuilt
    if type(form) is Let:
        if form.value not in done:
            stack.append(form.value)
            return None
        known.enter_let(form)
    elif type(form) is Call and form.op is IF_THEN_ELSE and depth < MAX_CHOICES and form.args[0].dtype is BOOL:
        condition = done.get(form.args[0])
        if condition is None:
            stack.append(form.args[0])
            return None
        if not known.reads_memory(condition):
            return _choice(form, condition, known, depth)
    pending = [c for c in form.child_nodes() if c not in done]
    if pending:
        stack.extend(reversed(pending))
        return None
    return form.map_children(done.__getitem__)  # type: ignore[no-any-return]


def _choice(form: Call, condition: Expr, known: Bounds, depth: int) -> Expr:
    """Returns an if_then_else with each side simplified under its condition or the condition's negation.

    A Select is not treated so: it evaluates both sides, and an index that its condition keeps within bounds may be out of
    bounds elsewhere.
    """
    _, x, y = form.args
    if not isinstance(condition, IntImm):  # a decided one becomes one side by its rule
        x, y = _where(condition, x, known, depth), _where(negated(condition), y, known, depth)
    changed = any(new is not old for new, old in zip((condition, x, y), form.args))
    return Call(form.dtype, form.op, (condition, x, y)) if changed else form


def _where(condition: Expr, side: Expr, known: Bounds, depth: int) -> Expr:
    """Returns `side` simplified where `condition` holds."""
    if type(side) in _LEAVES and side.dtype is not BOOL:
        return side
    with known.scope():
        for part in conjuncts(condition):
            learn(known, part)
        return simplify(side, known, known_variables(known), depth + 1)


def known_variables(known: Bounds) -> dict[Expr, Expr]:
    """Returns the initial results at a place: the bool variables that its conditions decide."""
    return {v: IntImm(BOOL, int(holds)) for v, holds in known.truths.items() if isinstance(v, Var)}
