"""Facts that follow from a condition where it holds."""

from __future__ import annotations

from tedsl.arith.bounds import Bounds
from tedsl.arith.modular import ANYTHING, both
from tedsl.arith.rules.logic import at_least_zero, negated
from tedsl.ir.expr import EQ, And, Call, Expr, FloorMod, IntImm, Mod, Not, Or
from tedsl.ir.ops import LIKELY


def conjuncts(condition: Expr) -> list[Expr]:
    """Returns the conditions that must all hold: And is split, `likely` removed, !(a || b) becomes !a, !b."""
    parts: list[Expr] = []
    stack = [condition]
    while stack:
        c = stack.pop()
        if isinstance(c, And):
            stack += [c.b, c.a]
        elif isinstance(c, Call) and c.op is LIKELY:
            stack.append(c.args[0])
        elif isinstance(c, Not) and isinstance(c.a, Or):
            stack += [negated(c.a.b), negated(c.a.a)]
        elif isinstance(c, Not) and not isinstance(c.a, (Not, IntImm)) and not isinstance(negated(c.a), Not):
            stack.append(negated(c.a))
        else:
            parts.append(c)
    return parts


def learn(known: Bounds, condition: Expr) -> None:
    """Adds one conjunct to the facts of the place; does nothing if it depends on memory."""
    if isinstance(condition, IntImm) or condition.dtype.lanes != 1 or known.reads_memory(condition):
        return
    value = known.value(condition)
    known.truths[value] = True  # type: ignore[index]
    opposite = negated(condition)
    known.truths[known.value(opposite)] = False  # type: ignore[index]
    gap = at_least_zero(known, condition)
    if gap is not None:
        known.learn(gap, 0, None)
    elif isinstance(condition, EQ) and condition.a.dtype.is_integer:
        known.learn(known.sum(condition.a).plus(known.sum(condition.b), -1), 0, 0)
        _learn_residue(known, condition)


def _learn_residue(known: Bounds, condition: EQ) -> None:
    """Adds the fact of a conjunct such as x % 4 == 1, beside those that are there. Both remainders of x by 4 differ from x by a
    multiple of 4.
    """
    a, b = condition.a, condition.b
    if not (isinstance(a, (FloorMod, Mod)) and isinstance(a.b, IntImm) and a.b.value > 0 and isinstance(b, IntImm)):
        return
    value = known.sum(a.a)
    if list(value.terms.values()) != [1] or (value.const and not known.is_index(value)):
        return
    term, = value.terms
    residue = a.b.value, (b.value - value.const) % a.b.value
    known.residues[term] = both(known.residues.get(term, ANYTHING), residue)
