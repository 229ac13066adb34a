"""Comparisons and selections: setp, set, selp, slct, testp."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from tedsl.simulate.instructions.operation import LOGIC, Array, Operation, array_type, chosen, modifiers, unknown
from tedsl.simulate.instructions.rounding import bfloat_values, flushed
from tedsl.simulate.ptx.syntax import Group, Instruction

_ORDERED: dict[str, Callable[..., Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_JOINED: dict[str, Callable[..., Array]] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(name: str, form: str) -> Callable[..., Array]:
    """Returns the comparison `name` of values of type `form`, as arrays of bools; KeyError if there is none.

    Of floats, eq, ne, lt, le, gt and ge are false where an operand is NaN; with a u behind their names they are true there.
    """
    if name in ("num", "nan"):
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == (name == "nan")
    if form[0] not in "fb" or form in ("b16", "b32", "b64"):
        return _ORDERED[_UNSIGNED.get(name, name)]
    plain = _ORDERED[name.removesuffix("u")]
    if name.endswith("u") and name != "u":
        return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b)
    return plain if name != "ne" else lambda a, b: plain(a, b) & ~(np.isnan(a) | np.isnan(b))


def predicate(instruction: Instruction) -> Operation:
    """The operation of setp: a comparison, joined with a predicate if the name says so."""
    form = instruction.type
    found = set(instruction.parts[1:-1])
    joined = found & _JOINED.keys()
    try:
        compare = comparison(instruction.parts[1], form)
    except KeyError:
        raise unknown(instruction) from None
    if not found - joined - {instruction.parts[1]} <= {"ftz"} or isinstance(instruction.operands[0], Group):
        raise unknown(instruction)
    compare = _converted(compare, form, "ftz" in found)
    if not joined:
        return Operation("pred", (form, form), compare, LOGIC)
    join = _JOINED[joined.pop()]
    return Operation("pred", (form, form, "pred"), lambda a, b, p: join(compare(a, b), p), LOGIC)


def _converted(compare: Callable[..., Array], form: str, ftz: bool) -> Callable[..., Array]:
    """The comparison of what operands stand for: bfloat16 numbers are held as bits."""
    if form == "bf16":
        return lambda a, b: compare(bfloat_values(a), bfloat_values(b))
    return (lambda a, b: compare(flushed(a), flushed(b))) if ftz and form == "f32" else compare


def set_of(instruction: Instruction) -> Operation:
    """The operation of set: 1.0, or all ones, where a comparison holds."""
    result, form = instruction.parts[-2:]
    found = set(instruction.parts[1:-2])
    if not found - {instruction.parts[1]} <= {"ftz"}:
        raise unknown(instruction)
    compare = _converted(comparison(instruction.parts[1], form), form, "ftz" in found)
    kind = array_type(result)
    true = kind.type(1) if kind.kind == "f" else ~np.zeros((), kind)
    return Operation(result, (form, form), lambda a, b: np.where(compare(a, b), true, kind.type(0)), LOGIC)


def selection(instruction: Instruction) -> Operation:
    """The operation of selp: the first operand where the predicate holds, elsewhere the second."""
    modifiers(instruction, ())
    form = instruction.type
    return Operation(form, (form, form, "pred"), lambda a, b, p: chosen(p, a, b), LOGIC)


def selection_by_sign(instruction: Instruction) -> Operation:
    """The operation of slct: the first operand where the third is not negative."""
    form, sign = instruction.parts[-2:]
    modifiers(instruction, {"ftz"}, types=2)
    return Operation(form, (form, form, sign), lambda a, b, c: chosen(c >= 0, a, b), LOGIC)


_TESTS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite, "infinite": np.isinf, "number": lambda a: ~np.isnan(a), "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny),
    "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny)}


def test(instruction: Instruction) -> Operation:
    """The operation of testp."""
    if instruction.parts[1] not in _TESTS:
        raise unknown(instruction)
    return Operation("pred", (instruction.type,), cast("Callable[..., Array]", _TESTS[instruction.parts[1]]), LOGIC)
