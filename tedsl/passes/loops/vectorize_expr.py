"""Vectorizes one expression over all lanes of a loop: parts that do not depend on the lane stay scalar.

    A[i*8 + v] * x + 1        →  A[ramp(i*8, 1, 8)] * broadcast(x, 8) + broadcast(1, 8)
    if_then_else(v < n, A[v], 0)  →  A[ramp(0, 1, 8)] if (ramp(0, 1, 8) < broadcast(n, 8)): a masked load

A *mask* (a vector of bool, or None) says which lanes are on: a lane that is off must not load. A load from one address for all
lanes is executed if any lane is on.
"""

from __future__ import annotations

import math
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Load,
    Mul,
    Not,
    Ramp,
    Select,
    Sub,
    Var,
)
from tedsl.ir.ops import BITS_BINARY, BITS_UNARY, CALL_PURE_EXTERN, CLASSIFY, IF_THEN_ELSE, LIKELY, MATH_BINARY, MATH_UNARY, Op
from tedsl.passes.facts.conjunctions import mask_parts, without_likely

ELEMENTWISE = frozenset(Op.get(f"tir.{name}") for name in (
    *MATH_UNARY, *MATH_BINARY, *CLASSIFY, *BITS_UNARY, *BITS_BINARY, "exp_bounded", "fma", "reinterpret"))
MOST_MASKS = 1000  # of choices, after which lanes run serially: a value in both sides of n nested choices has 2**n masks
_OPPOSITE: dict[type[Expr], Any] = {LT: GE, LE: GT, GT: LE, GE: LT}


class NotVectorizable(Exception):
    """Raised for an expression that must be computed lane by lane; the statement around it becomes a serial loop."""


class LaneExpressions:
    """Vectorizes expressions that are written for one lane.

    varying: maps each variable that differs among the lanes to its vector; the caller adds the variables of lets.
    """

    def __init__(self, lanes: int, varying: dict[Var, Expr]) -> None:
        self.lanes = lanes
        self.varying = varying
        self._done: dict[tuple[Expr, Expr | None], Expr] = {}
        self._branch_masks: dict[tuple[Expr, Expr | None], tuple[Expr | None, Expr | None]] = {}
        self._any_lane: dict[Expr, Expr | None] = {}

    def __call__(self, root: Expr, mask: Expr | None = None) -> Expr:
        """Returns `root` for all lanes: a scalar if it is the same for each, else a vector."""
        done = self._done
        stack = [(root, mask)]
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            pending = [k for k in self._children(*key) if k not in done]
            if pending:
                stack.extend(reversed(pending))
            else:
                stack.pop()
                done[key] = self._rebuild(*key)
        return done[(root, mask)]

    def widen(self, value: Expr) -> Expr:
        """Returns `value` as a vector with one element per lane."""
        return value if value.dtype.lanes > 1 else Broadcast(value, self.lanes)

    def _children(self, node: Expr, mask: Expr | None) -> list[tuple[Expr, Expr | None]]:
        """Returns the children of `node` in the order in which they are vectorized, each with its mask: a condition comes
        before the sides that it masks.
        """
        if isinstance(node, Call) and node.op is IF_THEN_ELSE:
            condition = (node.args[0], mask)
            if condition not in self._done:
                return [condition]
            on, off = self._masks(node, mask)
            return [(node.args[1], on), (node.args[2], off)]
        if isinstance(node, Let):
            value = (node.value, mask)
            if value not in self._done:
                return [value]
            if self._done[value].dtype.lanes != node.value.dtype.lanes and node.var not in self.varying:
                self.varying[node.var] = Var(node.var.name, self._done[value].dtype)
            return [(node.body, mask)]
        return [(child, mask) for child in node.child_nodes()]  # type: ignore[misc]

    def _masks(self, node: Call, mask: Expr | None) -> tuple[Expr | None, Expr | None]:
        key = (node, mask)
        if key not in self._branch_masks:
            if len(self._branch_masks) >= MOST_MASKS:
                raise NotVectorizable("choices within both sides of choices")
            condition = without_likely(self._done[(node.args[0], mask)])
            both = (mask, mask) if condition.dtype.lanes == 1 else (
                self.both(mask, condition), self.both(mask, opposite(condition)))
            self._branch_masks[key] = both
        return self._branch_masks[key]

    def both(self, mask: Expr | None, condition: Expr) -> Expr:
        """Returns the mask of the lanes that are on in `mask` and meet `condition`."""
        wide = self.widen(condition)
        return wide if mask is None else build.logical_and(mask, wide)

    def _rebuild(self, node: Expr, mask: Expr | None) -> Expr:
        if isinstance(node, Var):
            return self.varying.get(node, node)
        if isinstance(node, Load):
            return self._load(node, mask)
        if isinstance(node, Call) and node.op is IF_THEN_ELSE:
            return self._if_then_else(node, mask)
        if mask is not None and isinstance(node, Call) and node.op is CALL_PURE_EXTERN:
            raise NotVectorizable("a function that may fail, where no lane may need it")
        old: list[Any] = node.child_nodes()
        new = [self._done[(child, mask)] for child in old]
        if all(a is b for a, b in zip(new, old)):
            return node
        if all(a.dtype.lanes == b.dtype.lanes for a, b in zip(new, old)):  # a scalar load that a mask guards now
            return node.map_children(dict(zip(old, new)).__getitem__)
        if any(b.dtype.lanes > 1 for b in old) or node.dtype.lanes > 1:
            raise NotVectorizable("a vector of vectors")
        return self._vector(node, new)

    def _vector(self, node: Expr, new: list[Expr]) -> Expr:
        """Returns the scalar operation `node` on operands some of which are vectors."""
        if any(e.dtype.is_custom for e in (node, *new)):
            raise NotVectorizable(f"an operator of {node.dtype}, which functions of the program compute")
        match node:
            case BinaryOp():
                return self._binary(type(node), new[0], new[1])
            case Not():
                return opposite(new[0])
            case Select():
                condition, yes, no = new
                if yes.dtype.lanes != no.dtype.lanes or yes.dtype.lanes == 1:
                    yes, no = self.widen(yes), self.widen(no)
                return Select(without_likely(condition), yes, no)
            case Cast(value=value):
                if isinstance(value, Var) and isinstance(new[0], Ramp) and node.dtype.is_integer and node.dtype.bits >= 32:
                    return Ramp(build.cast(node.dtype, new[0].base), build.cast(node.dtype, new[0].stride), self.lanes)
                return Cast(node.dtype.with_lanes(self.lanes), new[0])
            case Call(op=op) if op is LIKELY:
                return new[0]
            case Call(op=op) if op in ELEMENTWISE:
                return Call(node.dtype.with_lanes(self.lanes), op, tuple(map(self.widen, new)))
            case Let():
                vector: Any = self.varying.get(node.var, node.var)
                return Let(vector, new[0], new[1])
            case _:
                raise NotVectorizable(type(node).__name__)

    def _binary(self, kind: type[BinaryOp], a: Expr, b: Expr) -> Expr:
        if a.dtype.is_integer and kind in (Add, Sub, Mul):
            ramp = self._ramp(kind, _uniform(a), _uniform(b))
            if ramp is not None:
                return ramp
        node_type: Any = kind
        rebuilt: Expr = node_type(self.widen(a), self.widen(b))
        return rebuilt

    def _ramp(self, kind: type[BinaryOp], a: Expr, b: Expr) -> Expr | None:
        """Returns the sum, difference or product of ramps and scalars as a ramp; None where it is not one."""
        scalar_a, scalar_b = a.dtype.lanes == 1, b.dtype.lanes == 1
        if not (scalar_a or isinstance(a, Ramp)) or not (scalar_b or isinstance(b, Ramp)):
            return None
        base_a, step_a = (a.base, a.stride) if isinstance(a, Ramp) else (a, IntImm(a.dtype, 0))
        base_b, step_b = (b.base, b.stride) if isinstance(b, Ramp) else (b, IntImm(b.dtype, 0))
        if kind is Mul:
            if not (scalar_a or scalar_b):
                return None
            step = build.mul(step_b, a) if scalar_a else build.mul(step_a, b)
        else:
            step = build.binary(kind, step_a, step_b)
        base = build.binary(kind, base_a, base_b)
        if isinstance(step, IntImm) and step.value == 0:
            return Broadcast(base, self.lanes)
        return Ramp(base, step, self.lanes)

    def _if_then_else(self, node: Call, mask: Expr | None) -> Expr:
        on, off = self._masks(node, mask)
        condition = self._done[(node.args[0], mask)]
        yes, no = self._done[(node.args[1], on)], self._done[(node.args[2], off)]
        if condition is node.args[0] and yes is node.args[1] and no is node.args[2]:
            return node
        if node.dtype.lanes > 1 and condition.dtype.lanes > 1:
            raise NotVectorizable("a vector of vectors")
        if condition.dtype.lanes == 1:
            if yes.dtype.lanes != no.dtype.lanes:
                yes, no = self.widen(yes), self.widen(no)
            return Call(yes.dtype, IF_THEN_ELSE, (condition, yes, no))
        if mask is None and isinstance(yes, Load) and yes.predicate is on and _is_zero(no):
            return yes  # a lane that is off loads 0
        return Select(without_likely(condition), self.widen(yes), self.widen(no))

    def _load(self, node: Load, mask: Expr | None) -> Expr:
        index = self._done[(node.index, mask)]
        own = None if node.predicate is None else self._done[(node.predicate, mask)]
        if node.dtype.lanes > 1 and (index is not node.index or own is not node.predicate or mask is not None):
            raise NotVectorizable("a vector of vectors")
        if own is not None and (own.dtype.lanes > 1 or mask is not None):
            mask = self.both(mask, own)
        if index.dtype.lanes > 1:
            return Load(node.dtype.with_lanes(self.lanes), node.buffer_var, index, mask)
        if mask is None:
            return node if index is node.index and own is node.predicate else Load(node.dtype, node.buffer_var, index, own)
        if mask not in self._any_lane:
            self._any_lane[mask] = any_lane(mask)
        once = self._any_lane[mask]
        if once is not None:
            return Load(node.dtype, node.buffer_var, index, once)
        return Load(node.dtype.with_lanes(self.lanes), node.buffer_var, self.widen(index), mask)


def opposite(condition: Expr) -> Expr:
    """Returns the negation of a condition; for a comparison of integers the opposite comparison."""
    kind = _OPPOSITE.get(type(condition))
    if kind is not None and condition.a.dtype.is_integer:  # type: ignore[attr-defined]
        return kind(condition.a, condition.b)  # type: ignore[attr-defined,no-any-return]
    return build.logical_not(condition) if condition.dtype.lanes == 1 else Not(condition)


def any_lane(mask: Expr) -> Expr | None:
    """Returns a scalar condition that holds exactly if some lane of `mask` is on; None where there is no cheap one."""
    parts = mask_parts(mask)
    vectors = [part for part in parts if part.dtype.lanes > 1]
    if len(vectors) > 1:
        return None
    scalars = [part for part in parts if part.dtype.lanes == 1]
    if vectors:
        weakest = extreme_lane(vectors[0], weakest=True)
        if weakest is None:
            return None
        scalars.append(weakest)
    result = build.true()
    for part in scalars:
        result = build.logical_and(result, part)
    return result


def extreme_lane(condition: Expr, *, weakest: bool) -> Expr | None:
    """Returns the comparison of a ramp with a scalar for the lane where it is easiest (`weakest`) or hardest to satisfy; None
    for other conditions.
    """
    if type(condition) not in _OPPOSITE:
        return None
    a, b = _uniform(condition.a), _uniform(condition.b)  # type: ignore[attr-defined]
    ramp, scalar, rising_helps = (a, b, False) if isinstance(a, Ramp) else (b, a, True)
    if not isinstance(ramp, Ramp) or scalar.dtype.lanes > 1 or not isinstance(ramp.stride, IntImm):
        return None
    if isinstance(condition, (GT, GE)):
        rising_helps = not rising_helps
    last = (ramp.stride.value > 0) == rising_helps
    if not weakest:
        last = not last
    end = build.add(ramp.base, build.mul(ramp.stride, ramp.lanes - 1)) if last else ramp.base
    node_type: Any = type(condition)
    return build.binary(node_type, end, scalar) if ramp is a else build.binary(node_type, scalar, end)


def _uniform(value: Expr) -> Expr:
    return value.value if isinstance(value, Broadcast) else value


def _is_zero(value: Expr) -> bool:
    v = _uniform(value)
    if isinstance(v, FloatImm):
        return v.value == 0 and math.copysign(1.0, v.value) > 0
    return isinstance(v, IntImm) and v.value == 0
