"""The loops of a tensorized stage, whose inner part is an intrinsic.

    for yo { gemv(...) }                                          the whole reduction inside: the body
    for yo { fill(...); for ko { gemv_add(...) } }                loops of the reduction outside: start values and updates
    for yo { for ko { if (ko == 0) { gemv } else { gemv_add } } }     without start values: the body does the first update
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.stmt import AttrStmt, IfThenElse, Stmt, seq
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.intrinsics.tensor_intrin import Region
from tedsl.lower.intrinsics.bind import BODY, RESET, UPDATE, instance
from tedsl.lower.intrinsics.check_part import check_part
from tedsl.lower.intrinsics.match import Matcher, Use, use_of_call
from tedsl.lower.intrinsics.region import check_inside, covered
from tedsl.schedule.causes import annotated, said
from tedsl.schedule.domains import indices_up

if TYPE_CHECKING:
    from tedsl.lower.nest import Nest


class TensorizedNest:
    """Builds the loops outside an intrinsic that replaces loop number `at` and all loops inside it; `nest` builds single
    loops.
    """

    def __init__(self, nest: Nest, at: int) -> None:
        self.nest, self.at, self.plan, self.analyzer = nest, at, nest.plan, nest.analyzer

    def build(self) -> Stmt:
        plan = self.plan
        self.refuse_unfit()
        check_inside(self.nest.site, self.at)
        use = self.use({loop.leaf: loop.value for loop in plan.loops[:self.at]})
        begin = self.nest.begin_of_reduction()
        if self.at <= begin or not isinstance(plan.bodies[0], Reduce):
            body = self.instance(self.part(use, BODY), use)
            body = self.nest.guarded(body, plan.offsets, self.nest.starts(), self.nest.translate)
            return self.marked(self.nest.wrap(0, self.at, body))
        update = self.instance(self.part(use, UPDATE), use)
        reset = None
        if use.intrin.reduce_init is not None:
            reset = self.reset(begin)
        else:
            update = self.first_by_body(use, update, begin)
        update = self.nest.guarded(update, plan.offsets, self.nest.starts(), self.nest.translate)
        update = self.nest.wrap(begin, self.at, update)
        if any(build.as_int(plan.extents[axis]) == 0 for axis in plan.axes[len(plan.data_axes):]):
            update = seq()
        return self.marked(self.nest.wrap(0, begin, seq(reset, update)))

    def refuse_unfit(self) -> None:
        plan = self.plan
        if self.nest.ragged:
            raise LoweringError(f"{plan.name} is tensorized, and its reduction has extents that differ from element to element",
                                hint="an intrinsic computes regions of one size", about=said(plan.stage, "iter_var_attrs"))
        if plan.padded:
            names = ", ".join(axis.name for axis in plan.padded)
            raise LoweringError(f"{plan.name} is tensorized, and a split of {names} is rounded up: it reads elements that do "
                                "not exist", hint="pad the tensors themselves, or split by a factor that divides the extent",
                                about=said(plan.stage, "relations"))
        for loop in plan.loops[self.at:]:
            if loop.attr.skips_zeros:
                raise LoweringError(f"{plan.name} skips zeros at loop {loop.leaf.name}, which an intrinsic replaces",
                                    hint="skip zeros at a loop outside of the one that is tensorized",
                                    about=annotated(plan.stage, loop.leaf, "skips_zeros"))
        for loop in plan.loops[:self.at]:
            if loop.leaf.is_reduction and loop.attr.bind_thread is not None and build.as_int(loop.extent) != 1:
                raise LoweringError(
                    f"{plan.name} is tensorized inside of its reduction loop {loop.leaf.name}, which is bound to "
                    f"{loop.attr.bind_thread.thread_tag}: an intrinsic updates memory, and all threads would update the same",
                    hint=f"leave {loop.leaf.name} unbound; or give each thread a part of its own, s.rfactor({plan.name}, "
                         f"{loop.leaf.name}), and tensorize that", about=annotated(plan.stage, loop.leaf))

    def use(self, outside: Mapping[IterVar, Expr]) -> Use:
        """The use of the intrinsic if the loops outside have the values `outside`."""
        plan, op = self.plan, self.plan.op
        cover = covered(plan, self.at, outside, self.analyzer)
        if not isinstance(op, TensorComputeOp):
            return Matcher(plan, self.at, cover, self.analyzer).use()
        here = {axis.var: cover[axis][0] for axis in plan.axes if axis not in op.without_loops}
        here = {var: build.cast(var.dtype, value) for var, value in here.items()}
        regions = [Region(r.tensor, tuple(substitute(low, here) for low in r.mins), r.dims) for r in op.regions]
        return use_of_call(plan, op, cover, {v: substitute(value, here) for v, value in op.symbols.items()}, regions)

    def part(self, use: Use, name: str) -> str:
        """The part `name` of the intrinsic; LoweringError if it has none."""
        if getattr(use.intrin, name) is not None:
            return name
        where = "the whole reduction is inside" if name == BODY else "a loop of the reduction is outside"
        raise LoweringError(f"the intrinsic {use.intrin.name} in {self.plan.name} has no {name}: {where} of the loop that it "
                            "replaces", hint="return (body, reduce_init, reduce_update) from the function of "
                            "decl_tensor_intrin, or tensorize another loop", about=self.cause())

    def instance(self, part: str, use: Use) -> Stmt:
        """The statements of one part of the intrinsic for `use`; LoweringError if they are certain to be wrong there."""
        check_part(part, use, self.plan, self.at, self.nest.buffers)
        return instance(part, use, self.plan, self.nest.buffer_of)

    def cause(self) -> object:
        loops = self.plan.loops
        return annotated(self.plan.stage, loops[self.at].leaf) if self.at < len(loops) else None

    def marked(self, stmt: Stmt) -> Stmt:
        """`stmt` under the pragmas on the inner loops that apply to the whole function."""
        for loop in self.plan.loops[self.at:]:
            for key, value in zip(loop.attr.pragma_keys, loop.attr.pragma_values):
                assert value is not None, "pragma refuses imports of nothing"
                stmt = AttrStmt(loop.leaf, f"pragma_{key.value}", value, stmt)
        return self.nest.marked(stmt)

    # --- reductions ---

    def reset(self, begin: int) -> Stmt:
        """The start values, inside copies of the data loops from number `begin` on that are outside of the intrinsic."""
        plan, nest = self.plan, self.nest
        assert isinstance(plan.bodies[0], Reduce)
        nest.check_init_reads(plan.bodies[0], begin)
        between = plan.loops[begin:self.at]
        copies = [nest.init_loop(loop) for loop in between if not loop.leaf.is_reduction]
        values = {loop.leaf: loop.value for loop in (*plan.loops[:begin], *copies)}
        zero = {loop.leaf: build.const(0, loop.leaf.dtype) for loop in between if loop.leaf.is_reduction}
        stmt = self.instance(RESET, self.use({**values, **zero}))
        inner = {loop.leaf: loop.value for loop in plan.loops[self.at:] if not loop.leaf.is_reduction}
        offsets = indices_up(plan.stage.relations, plan.tiling, {**values, **inner})
        stmt = nest.guarded(stmt, offsets, {**values, **inner}, nest.translator(offsets))
        for loop in reversed(copies):
            stmt = nest.around_copy(loop, stmt)
        return stmt

    def first_by_body(self, use: Use, update: Stmt, begin: int) -> Stmt:
        """The body in the first iteration of the reduction's loops, the update in the others."""
        for loop in self.plan.loops[begin:self.at]:
            if loop.attr.skips_zeros:
                raise LoweringError(f"the intrinsic {use.intrin.name} in {self.plan.name} has no reduce_init, and the first "
                                    f"iteration of {loop.leaf.name}, which writes the start values, may be skipped as zeros",
                                    hint="return (body, reduce_init, reduce_update) from the function of decl_tensor_intrin, "
                                    "or leave out skip_zeros", about=annotated(self.plan.stage, loop.leaf, "skips_zeros"))
            if loop.leaf.is_reduction and not self.analyzer.can_prove(build.greater_equal(loop.extent, 1)):
                raise LoweringError(f"the intrinsic {use.intrin.name} in {self.plan.name} has no reduce_init, and loop "
                                    f"{loop.leaf.name} of the reduction may have no iteration (its extent is "
                                    f"{shown(loop.extent)}): nothing would write the start values",
                                    hint="return (body, reduce_init, reduce_update) from the function of decl_tensor_intrin",
                                    about=self.cause())
        body = self.instance(self.part(use, BODY), use)
        names: list[Var] = [loop.var for loop in self.plan.loops[begin:self.at]
                            if loop.leaf.is_reduction and loop.var is not None]
        first = reduce(build.logical_and, [build.equal(v, build.const(0, v.dtype)) for v in names], build.true())
        return body if build.is_true(first) else IfThenElse(first, body, update)
