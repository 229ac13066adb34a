"""Matching of an intrinsic with loops: the regions of its tensors, if its formula is what the loops compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Reduce, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.intrinsics.shape_match import ShapeMatch
from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.intrinsics.tensor_intrin import Region, TensorIntrin
from tedsl.lang.operation import extent_of
from tedsl.lang.reads import has_load, loads_of
from tedsl.lang.tensor import Tensor
from tedsl.lower.intrinsics.compare import Comparison, Difference
from tedsl.lower.intrinsics.region import Cover
from tedsl.lower.intrinsics.show import formula_text
from tedsl.lower.plan import StagePlan
from tedsl.record import record
from tedsl.schedule.causes import annotated


@record(eq=False)
class Use:
    """An intrinsic in the loops: the region of each input and output, in terms of the loops around it, and the values of the
    variables of its shapes and of its scalar parameters."""

    intrin: TensorIntrin
    inputs: Mapping[Tensor, Region]
    outputs: tuple[Region, ...]
    values: Mapping[Var, Expr]


def use_of_call(plan: StagePlan, op: TensorComputeOp, cover: Cover, symbols: Mapping[Var, Expr],
                regions: Sequence[Region]) -> Use:
    """The use of an intrinsic by a te.compute that calls it.

    cover: the ranges that the call computes; symbols, regions: the variables and regions of `op`, in terms of these loops.
    """
    assert op.intrin is not None
    return Use(op.intrin, dict(zip(op.intrin.inputs, regions)), _outputs(plan, cover, op.output_dims), symbols)


def _outputs(plan: StagePlan, cover: Cover, dims: tuple[int, ...]) -> tuple[Region, ...]:
    mins = tuple(cover[axis][0] for axis in plan.data_axes)
    return tuple(Region(plan.op.output(k), mins, dims) for k in range(plan.op.num_outputs))


class Matcher:
    """Matches an intrinsic with the region `cover` of a tensorized stage. `use()` returns the match; its errors show both
    formulas.
    """

    def __init__(self, plan: StagePlan, at: int, cover: Cover, analyzer: Analyzer) -> None:
        self.plan, self.cover, self.analyzer = plan, cover, analyzer
        self.loop = plan.loops[at]
        self.intrin: TensorIntrin = self.loop.attr.tensor_intrin
        self.shapes = ShapeMatch(analyzer)
        self.fresh: dict[Var, Expr] = {}  # the axes of the intrinsic: variables of their own, or their one value

    def use(self) -> Use:
        op = self.intrin.op
        data, reduced = self.plan.data_axes, self.plan.axes[len(self.plan.data_axes):]
        output_dims = self.axes("shape of the output", op.axis, data)
        reduce_dims = self.axes("extents of the reduction", op.reduce_axis, reduced)
        names = self.renamed(op.axis, data, output_dims) | self.renamed(op.reduce_axis, reduced, reduce_dims)
        ours = [substitute(body, {**self.fresh, **self.shapes.symbols}) for body in op.body]
        theirs = [substitute(body, names) for body in self.plan.bodies]
        variables = (v for v in self.fresh.values() if isinstance(v, Var))
        comparison = Comparison(variables, self.intrin.scalar_params, self.analyzer)
        for a, b in zip(ours, theirs):
            if not comparison.same(a, b):
                self.refuse_formula(comparison.difference, ours, theirs)
        self.check_whole(comparison, ours)
        unused = [v.name for v in self.intrin.scalar_params if v not in comparison.values]
        if unused:
            self.refuse(f"its scalar parameter {unused[0]} does not occur in its formula, so that no value for it can be found",
                        "call the intrinsic in te.compute, with scalar_inputs=")
        return Use(self.intrin, comparison.regions, _outputs(self.plan, self.cover, output_dims),
                   {**self.shapes.symbols, **comparison.values})

    # --- axes ---

    def axes(self, what: str, ours: Sequence[IterVar], theirs: Sequence[IterVar]) -> tuple[int, ...]:
        """For each axis of the intrinsic the number of the axis of the stage that it stands for."""
        declared = [extent_of(axis) for axis in ours]
        actual = [self.cover[axis][1] for axis in theirs]
        dims = self.shapes.dims(declared, actual)
        if dims is None:
            inside = ", ".join(f"{axis.name}: {shown(extent)}" for axis, extent in zip(theirs, actual)) or "none"
            self.refuse(f"{what}: the intrinsic has {shown(tuple(declared))}, the loops cover {shown(tuple(actual))} "
                        f"({inside})",
                        "split the loops by the sizes of the intrinsic, and reorder the inner parts to the inside of "
                        f"{self.loop.leaf.name}")
        for axis in ours:
            taken = any(axis.name == loop.var.name for loop in self.plan.loops if loop.var is not None)
            var = Var(f"{axis.name}'" if taken else axis.name, axis.dtype)  # errors show it beside the variables of the loops
            extent = self.shapes.value(extent_of(axis))
            assert axis.dom is not None
            if build.as_int(extent) == 1:  # the region has one element there, wherever the loops stand
                self.fresh[axis.var] = build.cast(axis.dtype, self.shapes.value(axis.dom.min))
                continue
            self.analyzer.bind(var, Range.from_min_extent(axis.dom.min, build.cast(var.dtype, extent)))
            self.fresh[axis.var] = var
        return dims

    def renamed(self, ours: Sequence[IterVar], theirs: Sequence[IterVar], dims: tuple[int, ...]) -> dict[Var, Expr]:
        """The axes of the stage as expressions of the axes of the intrinsic."""
        names: dict[Var, Expr] = {axis.var: build.cast(axis.dtype, self.cover[axis][0]) for axis in theirs}
        for axis, dim in zip(ours, dims):
            own, var = theirs[dim], self.fresh[axis.var]
            assert axis.dom is not None
            step = build.sub(var, axis.dom.min)
            names[own.var] = build.cast(own.dtype, build.add(self.cover[own][0], step))
        return names

    # --- inputs ---

    def check_whole(self, comparison: Comparison, ours: Sequence[Expr]) -> None:
        """Refuses an intrinsic whose formula reads only a part of an input, all of which its code may read, or reads beyond
        one.
        """
        ranges = {var: self.analyzer_range(axis) for axis, var in self.axis_pairs()}
        for tensor in self.intrin.inputs:
            loads = list(dict.fromkeys(load for load in loads_of(tuple(ours)) if load.producer == tensor))
            for dim, extent in enumerate(tensor.shape):
                ends = [self.ends(load.indices[dim], ranges) for load in loads]
                problem = self.uncovered(self.shapes.value(extent), [pair for pair in ends if pair is not None])
                if problem:
                    self.refuse(f"its formula reads {problem} its input {tensor.name} {shown(tensor.shape)}, "
                                f"in dimension {dim}: {', '.join(dict.fromkeys(map(shown, loads)))}",
                                "declare the placeholder as large as what the formula reads")
        missing = [t.name for t in self.intrin.inputs if t not in comparison.regions]
        if missing:
            self.refuse(f"its input {missing[0]} is read under no condition that the loops have", "")

    def ends(self, index: Expr, ranges: Mapping[Var, tuple[Expr, Expr]]) -> tuple[Expr, Expr] | None:
        """The lowest and highest value of `index`, if they are known."""
        if has_load(index):
            return None
        low, high = relax(index, ranges, self.analyzer)
        return None if low is None or high is None else (low, high)

    def uncovered(self, size: Expr, ends: Sequence[tuple[Expr, Expr]]) -> str:
        """Says in words why the union of the intervals `ends` is not 0 .. size - 1; "" if it is."""
        last = build.sub(size, 1)
        rooms = [(self.analyzer.simplify(low), self.analyzer.simplify(build.sub(last, high))) for low, high in ends]
        reached = [False, False]
        inside = True
        for room in rooms:
            for side, part in enumerate(room):
                known = build.as_int(part)
                if known is None:
                    inside = inside and self.analyzer.can_prove(build.greater_equal(part, 0))
                elif known < 0:
                    return "more than"
                reached[side] = reached[side] or known == 0
        return "" if inside and all(reached) else "only a part of"

    def axis_pairs(self) -> list[tuple[IterVar, Var]]:
        axes = (*self.intrin.op.axis, *self.intrin.op.reduce_axis)
        return [(axis, var) for axis in axes if isinstance(var := self.fresh[axis.var], Var)]

    def analyzer_range(self, axis: IterVar) -> tuple[Expr, Expr]:
        assert axis.dom is not None
        extent = build.cast(axis.dtype, self.shapes.value(extent_of(axis)))
        return axis.dom.min, build.sub(build.add(axis.dom.min, extent), 1)

    # --- errors ---

    def refuse_formula(self, difference: Difference | None, ours: Sequence[Expr], theirs: Sequence[Expr]) -> NoReturn:
        """Raise the error that shows both formulas, in the names of the intrinsic's axes, and their first difference."""
        place = f"{self.intrin.op.name}[{', '.join(shown(self.fresh[axis.var]) for axis in self.intrin.op.axis)}]"
        over = ", ".join(shown(self.fresh[axis.var]) for axis in self.intrin.op.reduce_axis)
        text = "its formula is not what the loops compute"
        for a, b in zip(ours, theirs):
            text += f"\n    intrinsic  {place} = {formula_text(a, over)}\n    loops      {place} = {formula_text(b, over)}"
        if difference is not None:
            text += f"\n  {difference.what} differs:\n    intrinsic  {_side(difference.ours)}" \
                    f"\n    loops      {_side(difference.theirs)}"
        self.refuse(text, "declare the intrinsic with the formula that the loops compute, or tensorize another loop")

    def refuse(self, problem: str, hint: str) -> NoReturn:
        raise LoweringError(f"the intrinsic {self.intrin.name} at loop {self.loop.leaf.name} of {self.plan.name}: {problem}",
                            hint=hint, about=annotated(self.plan.stage, self.loop.leaf))


def _side(value: object) -> str:
    return formula_text(value) if isinstance(value, (Expr, Reduce)) else str(value)
