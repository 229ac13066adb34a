"""Maps from the indices of a tensor to those of its memory, and back: `lambda n, c: [n, c // 4, c % 4]`.

A final index is a sum of parts of axes with contiguous scales (`i*6 + j`, j in 0..6); a part is the whole of an axis or
`axis // lower % count`. The parts of an axis, put together again, must give the axis: then the way back is

    i = final // 6, j = final % 6          c = final_1*4 + final_2, and final_1*4 + final_2 < C where 4 does not divide C
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Add, Cast, Expr, FloorDiv, FloorMod, IntImm, Mul, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.reads import has_load
from tedsl.record import record

PLACES = "each element needs a place of its own: permute, split (c // 4, c % 4) or join (i*6 + j)"


class NotInvertible(Exception):
    """A map that cannot be inverted: the message says why an element of the memory does not correspond to one element of the
    tensor.
    """

    def __init__(self, problem: str, hint: str = PLACES) -> None:
        super().__init__(problem)
        self.hint = hint


@record
class MapParameters:
    """The names of parameters by position, of `*rest` if there is one, and by name alone.

    Those by name take the last indices: `lambda i, *rest, j: [i, j, *rest]`. One by name with a default keeps it.
    """

    by_position: tuple[str, ...]
    rest: str | None
    by_name: tuple[str, ...]

    @property
    def fixed(self) -> int:
        """How many indices there are without those of `*rest`."""
        return len(self.by_position) + len(self.by_name)

    def takes(self, count: int) -> bool:
        """Whether the function can be called with `count` indices."""
        return count == self.fixed or (count > self.fixed and self.rest is not None)

    def called(self, function: Callable[..., Any], indices: Sequence[Any]) -> Any:
        """The result of `function` for `indices`, as many as it `takes`."""
        first = len(indices) - len(self.by_name)
        return function(*indices[:first], **dict(zip(self.by_name, indices[first:])))


def parameters_of(function: Callable[..., Any]) -> MapParameters:
    """The parameters of `function`; of one that does not tell them, any number by position."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return MapParameters((), "i", ())
    return MapParameters(
        tuple([one.name for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]),
        next((one.name for one in given if one.kind is one.VAR_POSITIONAL), None),
        tuple([one.name for one in given if one.kind is one.KEYWORD_ONLY and one.default is one.empty]))


@record(eq=False)
class Part:
    """A summand of a final index: `axis // lower % count * scale`."""

    axis: Var
    lower: Expr
    count: Expr
    scale: Expr


@record(eq=False)
class Layout:
    """A map from the indices `axes` of a tensor to the indices `finals` of its memory, and its inverse.

    extents: the shape of the memory. inverse: each of `axes` as an expression of `places`, the variables of the final indices.
    conditions: over `places`; where they hold, an element of the memory is one of the tensor; empty if that is so everywhere.
    """

    axes: tuple[Var, ...]
    finals: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    places: tuple[Var, ...]
    inverse: tuple[Expr, ...]
    conditions: tuple[Expr, ...]

    def forward(self, indices: Sequence[Expr], analyzer: Analyzer) -> tuple[Expr, ...]:
        """The indices in memory of the element at `indices`."""
        values = {axis: build.cast(axis.dtype, index) for axis, index in zip(self.axes, indices)}
        return tuple([analyzer.simplify(substitute(final, values)) for final in self.finals])


def layout_of(axes: Sequence[Var], shape: Sequence[Expr], finals: Sequence[Expr]) -> Layout:
    """The layout that puts the element `axes` of a tensor of `shape` at `finals`; NotInvertible says why there is none."""
    sizes = dict(zip(axes, shape))
    analyzer = Analyzer()
    for axis, size in sizes.items():
        analyzer.bind(axis, (0, analyzer.simplify(build.sub(size, 1))))
    reader = _Reader(sizes, analyzer)
    places, extents = [], []
    values: dict[Part, Expr] = {}
    for number, final in enumerate(finals):
        parts = reader.chained(reader.parts(final), final)
        extent: Expr = build.const(1, final.dtype)
        for part in parts:
            extent = build.product_of_extents(extent, build.cast(extent.dtype, part.count))
        name = final.name if isinstance(final, Var) else f"axis{number}"
        place = Var(name, extent.dtype)
        values.update(_parts_of(place, parts))
        places.append(place)
        extents.append(analyzer.simplify(extent))
    inverse, conditions = _inverse(sizes, values, analyzer)
    return Layout(tuple(axes), tuple(finals), tuple(extents), tuple(places), tuple(inverse), tuple(conditions))


def _parts_of(place: Var, parts: Sequence[Part]) -> Mapping[Part, Expr]:
    """The value of each part in terms of the final index `place`; `parts` with the smallest scale first."""
    values = {}
    for at, part in enumerate(parts):
        value = build.floordiv(place, build.cast(place.dtype, part.scale))
        if at < len(parts) - 1:
            value = build.floormod(value, build.cast(place.dtype, part.count))
        values[part] = value
    return values


def _inverse(sizes: Mapping[Var, Expr], values: Mapping[Part, Expr], analyzer: Analyzer) -> tuple[list[Expr], list[Expr]]:
    inverse: list[Expr] = []
    conditions: list[Expr] = []
    for axis, size in sizes.items():
        rest = [part for part in values if part.axis is axis]
        value: Expr = build.const(0, axis.dtype)
        covered: Expr = build.const(1, axis.dtype)
        while rest:
            following = next((part for part in rest if _same(part.lower, covered, analyzer)), None)
            if following is None:
                raise NotInvertible(f"the parts of {axis.name} do not fit together: several elements would share a place, "
                                    "or an element would have several")
            rest.remove(following)
            value = build.add(value, build.mul(build.cast(axis.dtype, values[following]), following.lower))
            covered = build.mul(covered, following.count)
        covered = analyzer.simplify(covered)
        if not analyzer.can_prove(build.greater_equal(covered, size)):
            what = "nothing" if build.as_int(covered) == 1 else f"only {shown(covered)} of its {shown(size)} values"
            raise NotInvertible(f"the new indices tell {what} of {axis.name}: several elements would share a place")
        inverse.append(value)
        if not _same(covered, size, analyzer):
            conditions.append(build.less(value, size))
    return inverse, conditions


def _same(a: Expr, b: Expr, analyzer: Analyzer) -> bool:
    return build.as_int(analyzer.simplify(build.sub(a, build.cast(a.dtype, b)))) == 0


class _Reader:
    """Decomposes final indices into parts of axes."""

    def __init__(self, sizes: Mapping[Var, Expr], analyzer: Analyzer) -> None:
        self.sizes, self.analyzer = sizes, analyzer

    def parts(self, e: Expr) -> list[Part]:
        """The summands of `e`; NotInvertible if it adds a constant other than 0 or is not made of axes by +, *, // and %."""
        match e:
            case Var() if e in self.sizes:
                one = build.const(1, e.dtype)
                return self.kept([Part(e, one, self.sizes[e], one)])
            case IntImm(value=0):
                return []
            case IntImm(value=added):
                raise NotInvertible(f"{added} is added: the memory begins with the first element, at index 0")
            case Cast(value=value):
                return self.parts(value)
            case Add(a=a, b=b):
                return self.parts(a) + self.parts(b)
            case Mul(a=a, b=b) if not self.depends(b):
                return [replace(part, scale=build.mul(part.scale, build.cast(part.scale.dtype, b))) for part in self.parts(a)]
            case Mul(a=a, b=b) if not self.depends(a):
                return self.parts(build.mul(b, a))
            case FloorDiv(b=IntImm(value=by)) | FloorMod(b=IntImm(value=by)) if by <= 0:
                raise NotInvertible(f"{shown(e)} divides by {by}: tiles have at least one element")
            case FloorDiv(a=a, b=by) | FloorMod(a=a, b=by) if not self.depends(by):
                return self.divided(e, self.parts(a), by)
        raise NotInvertible(f"{shown(e)} is not made of axes by +, *, // and %")

    def divided(self, e: FloorDiv | FloorMod, parts: list[Part], by: Expr) -> list[Part]:
        if not parts:
            return []
        one = parts[0]
        if len(parts) > 1 or build.as_int(one.scale) != 1:
            raise self.no_division(e, parts)
        by = build.cast(one.lower.dtype, by)
        if isinstance(e, FloorDiv):
            count = self.analyzer.simplify(build.ceil_div(one.count, by))
            return self.kept([replace(one, lower=self.analyzer.simplify(build.mul(one.lower, by)), count=count)])
        if self.analyzer.can_prove(build.less_equal(one.count, by)):
            return [one]
        return self.kept([replace(one, count=by)])

    def no_division(self, e: FloorDiv | FloorMod, parts: list[Part]) -> NotInvertible:
        """The error that a sum of several `parts` cannot be divided in one step, with what to write instead if it is an
        index.
        """
        try:
            self.chained(parts, e)
        except NotInvertible:
            return NotInvertible(f"{shown(e)} divides {shown(e.a)}, in which several elements have one place")
        return NotInvertible(f"{shown(e)} divides a sum",
                             hint=f"call transform_layout twice, first with {shown(e.a)} as an index, then with the "
                                  "parts of that")

    def kept(self, parts: list[Part]) -> list[Part]:
        """`parts` without those that are always 0."""
        return [part for part in parts if build.as_int(part.count) != 1]

    def depends(self, e: Expr) -> bool:
        return any(v in self.sizes for v in variables(e))

    def chained(self, parts: list[Part], final: Expr) -> list[Part]:
        """`parts` sorted by scale; NotInvertible unless each scale is the product of the counts before it."""
        rest, chain = list(parts), []
        covered: Expr = build.const(1, final.dtype)
        while rest:
            following = next((part for part in rest if _same(part.scale, covered, self.analyzer)), None)
            if following is None:
                raise NotInvertible(f"in {shown(final)} the values of {', '.join(dict.fromkeys(p.axis.name for p in rest))} "
                                    "overlap with the rest, or leave gaps")
            rest.remove(following)
            chain.append(following)
            covered = build.mul(following.scale, following.count)
        return chain


# --- formulas over padded axes --------------------------------------------------------------------------------------------

def value_inside(value: Expr, conditions: Sequence[Expr]) -> Expr:
    """`value` where `conditions` hold; elsewhere, in the padding of a layout, zero."""
    return build.if_then_else(_all(conditions), value, build.const(0, value.dtype)) if conditions else value


def reduction_inside(whole: Reduce, conditions: Sequence[Expr]) -> Reduce:
    """`whole`, a reduction, where `conditions` hold. Elsewhere it has no iterations, and the conditions on data that it has are
    not evaluated.
    """
    if not conditions:
        return whole
    condition = build.if_then_else(_all(conditions), whole.condition, build.const(False)) if has_load(whole.condition) \
        else functools.reduce(build.logical_and, conditions, whole.condition)
    return whole.replace(condition=condition, init=tuple([_read_inside(one, conditions) for one in whole.init]))


def range_inside(axis: IterVar, conditions: Sequence[Expr]) -> IterVar:
    """`axis` of a reduction. A range that is read from a tensor is made empty, without being read, where `conditions` do not
    hold.
    """
    return axis.map_children(lambda dom: dom.map_children(lambda end: _read_inside(end, conditions))) if conditions else axis


def _read_inside(value: Expr, conditions: Sequence[Expr]) -> Expr:
    return value_inside(value, conditions) if has_load(value) else value


def _all(conditions: Sequence[Expr]) -> Expr:
    return functools.reduce(build.logical_and, conditions)
