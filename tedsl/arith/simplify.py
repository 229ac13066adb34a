"""The simplifier: simplifies operands first, then applies rules until none does. Explicit stack, linear in the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.arith.bounds import Bounds
from tedsl.arith.conditions import conjuncts, learn
from tedsl.arith.rules.bits import BITWISE, fold_bits
from tedsl.arith.rules.casts import fold_cast
from tedsl.arith.rules.choices import TWO_CHOICES, fold_call, fold_select, fold_two_choices
from tedsl.arith.rules.compare import fold_comparison
from tedsl.arith.rules.floordiv import constant, fold_floordiv
from tedsl.arith.rules.floormod import fold_floormod
from tedsl.arith.rules.logic import fold_logical, fold_not, negated
from tedsl.arith.rules.minmax import fold_minmax
from tedsl.arith.rules.reductions import fold_reduce
from tedsl.arith.rules.sums import fold_add, fold_mul, fold_sub
from tedsl.arith.rules.truncated import fold_truncated
from tedsl.arith.rules.vectors import fold_lanes, fold_vector
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, INT32, INT64
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
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Reduce,
    Select,
    Sub,
    Var,
)
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.visitor import LEAVES

Rule = Callable[[Any, Bounds], Expr | None]
MAX_CHOICES = 2  # nested conditions that are used inside their sides: each simplifies shared parts anew
MAX_STEPS = 12  # rewrites of one node: rules make progress, this is the fuse

# Rules of scalar integers; the value of the table at a type is tried again on what it returns.
INTEGER_RULES: dict[type, Rule] = {
    Add: fold_add, Sub: fold_sub, Mul: fold_mul, FloorDiv: fold_floordiv, FloorMod: fold_floormod,
}


def _fold_other_arithmetic(e: Any, known: Bounds) -> Expr | None:
    """Folds floats and vectors: constants only, for x - x may be NaN."""
    return build.fold(type(e), e.a, e.b)


def _fold_load(e: Load, known: Bounds) -> Expr | None:
    """Drops a mask that is on in all lanes."""
    mask = e.predicate.value if isinstance(e.predicate, Broadcast) else e.predicate
    return Load(e.dtype, e.buffer_var, e.index) if isinstance(mask, IntImm) and mask.value else None


def _fold_call(e: Call, known: Bounds) -> Expr | None:
    return fold_bits(e, known) if e.op in BITWISE else fold_call(e, known)


RULES: dict[type, Rule] = {
    **dict.fromkeys((EQ, NE, LT, LE, GT, GE), fold_comparison),
    Reduce: fold_reduce,
    Min: fold_minmax, Max: fold_minmax, And: fold_logical, Or: fold_logical, Not: fold_not,
    Select: fold_select, Load: _fold_load, Call: _fold_call, Cast: fold_cast, Div: fold_truncated, Mod: fold_truncated,
}

_RULED = frozenset((*INTEGER_RULES, *RULES))  # constants, ramps, ... have no rules


def rewrite(e: Expr, known: Bounds) -> Expr | None:
    """Returns `e`, whose operands are simplified, after one step of simplification at its root; None if no rule applies."""
    kind, dtype = type(e), e.dtype
    if kind not in _RULED:
        return None
    if dtype.lanes > 1:
        result = (fold_vector(e, known) if isinstance(e, BinaryOp) else
                  fold_lanes(e, known) if isinstance(e, (Select, Cast, Not)) else None)
        if result is not None:
            return result
    if isinstance(e, TWO_CHOICES) and dtype.is_integer and type(e.a) in (Select, Call):
        result = fold_two_choices(e, known)
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
    if isinstance(e, BinaryOp) and e.a.dtype.is_custom:
        return None  # only the program knows what its operators mean
    result = RULES[kind](e, known)
    if result is None and dtype is BOOL and known.truths:
        holds = known.truths.get(known.value(e))  # type: ignore[arg-type]
        return None if holds is None else IntImm(BOOL, int(holds))
    return result


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
        form, steps = node, 0
        if node in forms:
            form, steps = forms[node]
            if form in done:
                stack.pop()
                done[node] = done[form]
                continue
        found = _at_once(form, known, done)
        if found is not None:
            stack.pop()
            done[node] = found
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


_NESTED = 3  # ramps, broadcasts and loads of each other
_OPERAND: dict[type, Callable[[Any], Expr | None]] = {  # the only operand, if there are no others but constants
    Broadcast: lambda e: e.value, Ramp: lambda e: e.base if type(e.stride) is IntImm else None,
    Load: lambda e: e.index if e.predicate is None else None,
}
_OVER: dict[type, Callable[[Any, Expr], Expr]] = {  # the same over another operand
    Broadcast: lambda e, x: Broadcast(x, e.lanes), Ramp: lambda e, x: Ramp(x, e.stride, e.lanes),
    Load: lambda e, x: Load(e.dtype, e.buffer_var, x),
}


def _at_once(e: Expr, known: Bounds, done: dict[Expr, Expr], depth: int = _NESTED) -> Expr | None:
    """Returns the simplified form of `e` if that takes no rules: of a constant, a variable, a plain sum, and of a ramp,
    broadcast or load of such, or of what is done; None for any other.
    """
    found = done.get(e)
    if found is not None:
        return found
    kind = type(e)
    if kind in LEAVES:
        return e
    if kind is Add or kind is Mul:
        if (e.dtype is INT32 or e.dtype is INT64) and not (known.facts and known.pins()):
            found = _plain_sum(e, known, done)
    elif kind in _OPERAND and depth and e.dtype is not BOOL and (operand := _OPERAND[kind](e)) is not None:
        x = _at_once(operand, known, done, depth - 1)
        found = None if x is None else e if x is operand else _OVER[kind](e, x)
    if found is not None:
        done[e] = done[found] = found
    return found


def _plain_sum(e: Any, known: Bounds, done: dict[Expr, Expr]) -> Expr | None:
    """Returns the index `e`, an Add or Mul, if it is plain, or the plain sum that it is with its constant at the end, as
    (x + 1) + y in unrolled copies; None for any other.
    """
    if type(e) is Add and type(e.a) is Add and type(e.a.b) is IntImm:
        e = known.add(known.add(e.a.a, e.b), e.a.b)
    return e if _is_plain(e, known, done) else None


def _is_plain(e: Any, known: Bounds, done: dict[Expr, Expr]) -> bool:
    """Tells whether `e` adds up multiples of different variables, and a constant, as `Canonical.build` writes them: most
    indices do. No rule applies to that where no condition leaves a single value. Where none is known, one term may be a min or
    max that is done, if it is multiplied: nothing goes into its sides then.
    """
    if type(e) is Add and type(e.b) is IntImm:
        if e.b.value <= 0:
            return False
        e = e.a
    met: set[Any] = set()
    more = True
    while more:
        more = type(e) is Add
        term = e.b if more else e
        if type(term) is Mul:
            if type(term.b) is not IntImm or term.b.value < 2:
                return False
            term = term.a
            if type(term) is not Var:
                if (type(term) is not Min and type(term) is not Max) or known.data or known.facts or done.get(term) is not term:
                    return False
                term = Min  # one of them
        elif type(term) is not Var:
            return False
        if term in met:
            return False
        met.add(term)
        e = e.a if more else e
    return known.data.isdisjoint(met) and not (known.facts and known.has_single(met))


def _with_simple_operands(form: Any, known: Bounds, done: dict[Expr, Expr], stack: list[Expr], depth: int) -> Expr | None:
    """Returns `form` over its simplified operands; None if some are not done yet and were put on the stack."""
    kind = type(form)
    if isinstance(form, BinaryOp):
        a, b = form.a, form.b
        x, y = _at_once(a, known, done), _at_once(b, known, done)
        if x is None or y is None:
            if y is None:
                stack.append(b)
            if x is None:
                stack.append(a)
            return None
        if x is a and y is b:
            return form
        node_type: Any = kind
        rebuilt: Expr = node_type(x, y)
        return rebuilt
    if kind in _OPERAND and (operand := _OPERAND[kind](form)) is not None:
        x = done.get(operand)
        if x is None:
            stack.append(operand)
            return None
        return form if x is operand else _OVER[kind](form, x)
    if kind is Let:
        if form.value not in done:
            stack.append(form.value)
            return None
        known.enter_let(form)
    elif depth < MAX_CHOICES and (given := _condition_of_sides(form, known)) is not None:
        condition = done.get(given)
        if condition is None:
            stack.append(given)
            return None
        if not known.reads_memory(condition):
            return _choice(form, condition, known, depth)
    children = form.child_nodes()
    if type(form) is Reduce:
        children += form.combiner.child_nodes()
    pending = [c for c in children if c not in done]
    if pending:
        stack.extend(reversed(pending))
        return None
    if type(form) is Reduce:
        return _reduced(form, done)
    return form.map_children(done.__getitem__)  # type: ignore[no-any-return]


def _condition_of_sides(form: Expr, known: Bounds) -> Expr | None:
    """Returns the condition that holds in the sides of a choice.

    A Select evaluates both sides, where an index that its condition keeps within bounds may be out of bounds: only sides that
    read no memory are those of a choice, and only if that is asked for, since the range of a Select is that of both sides.
    """
    if type(form) is Call and form.op is IF_THEN_ELSE and form.args[0].dtype is BOOL:
        return form.args[0]
    if type(form) is Select and known.in_selects and form.condition.dtype is BOOL:
        return None if known.reads_memory(form.true_value) or known.reads_memory(form.false_value) else form.condition
    return None


def _choice(form: Call | Select, condition: Expr, known: Bounds, depth: int) -> Expr:
    """Returns an if_then_else or Select with each side simplified under its condition or the condition's negation."""
    old = form.args if isinstance(form, Call) else (form.condition, form.true_value, form.false_value)
    _, x, y = old
    if not isinstance(condition, IntImm):  # a decided one becomes one side by its rule
        x, y = _where(condition, x, known, depth), _where(negated(condition), y, known, depth)
    if all(new is was for new, was in zip((condition, x, y), old)):
        return form
    return Call(form.dtype, form.op, (condition, x, y)) if isinstance(form, Call) else Select(condition, x, y)


def _reduced(form: Reduce, done: dict[Expr, Expr]) -> Reduce:
    """Returns a reduction over its simplified operands, the combiner's among them."""
    combiner = form.combiner.map_children(done.__getitem__)
    form = form if combiner is form.combiner else form.replace(combiner=combiner)
    return form.map_children(done.__getitem__)


def _where(condition: Expr, side: Expr, known: Bounds, depth: int) -> Expr:
    """Returns `side` simplified where `condition` holds."""
    if type(side) in LEAVES and side.dtype is not BOOL:
        return side
    with known.scope():
        for part in conjuncts(condition):
            learn(known, part)
        return simplify(side, known, known_variables(known), depth + 1)


def known_variables(known: Bounds) -> dict[Expr, Expr]:
    """Returns the initial results at a place: the bool variables that its conditions decide."""
    return {v: IntImm(BOOL, int(holds)) for v, holds in known.truths.items() if isinstance(v, Var)}
