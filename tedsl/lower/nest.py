"""The loops of one stage around its statements.

    for i.outer { for i.inner {                     the loops outside of the reduction
      for j.init { B[i, j] = 0 }                    init: copies of the data loops that lie inside it
      for k { for j { if likely(j < n) { B[i, j] = B[i, j] + A[i, j, k] } } }
    } }

Stages that are computed inside a loop stand at the beginning of its body. A loop of one iteration is not printed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import BufferLoad, Expr, Reduce, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.stmt import COMBINED, AttrStmt, For, ForKind, IfThenElse, Stmt, is_no_op, seq
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.operation import ComputeOp
from tedsl.lang.reads import is_ragged, loads_of
from tedsl.lower.compute import Translator, store_init, store_update, store_values
from tedsl.lower.intrinsics.region import outer_conditions, tensorized_at
from tedsl.lower.intrinsics.tensorized_nest import TensorizedNest
from tedsl.lower.plan import Guard, Loop, StagePlan
from tedsl.lower.reductions.order import components_in_order, places_of
from tedsl.lower.reductions.zeros import check_guests_inside, conditions_inside
from tedsl.lower.regions.propagate import compared
from tedsl.lower.site import Site
from tedsl.lower.threads.cross_thread import cross_thread, crosses_threads
from tedsl.lower.threads.wrap import around_thread, exceeded, on_named_threads, store_predicate
from tedsl.lower.uneven_splits import PaddedTranslator, is_masked, short_tiles
from tedsl.lower.versions import specialized
from tedsl.schedule.causes import attached, said
from tedsl.schedule.domains import indices_up
from tedsl.schedule.relations import touched_by

KINDS = {IterType.UNROLLED: ForKind.UNROLLED, IterType.VECTORIZED: ForKind.VECTORIZED, IterType.PARALLELIZED: ForKind.PARALLEL}


class Nest:
    """Builds the loops of the stage of `site`."""

    def __init__(self, site: Site) -> None:
        self.site, self.plan, self.analyzer = site, site.plan, site.analyzer
        self.buffers, self.buffer_of, plan = site.buffers, site.buffer_of, site.plan
        self.ragged = isinstance(plan.op, ComputeOp) and is_ragged(plan.op)
        self.at = tensorized_at(plan)  # the loop from which on an intrinsic stands for the loops, or None
        self.unlikely: set[Expr] = set()  # guards that passes are to leave where they are
        self.own: list[Expr] | None = None  # the conditions of the iterations of the loops themselves
        self.translate = self.translator(plan.offsets)

    def translator(self, offsets: Mapping[IterVar, Expr]) -> Translator:
        """A translator of formulas to values in the loops that `offsets` are expressions of."""
        values: dict[Var, Expr] = {}
        translate = Translator(values, self.buffer_of) if not self.plan.padded else \
            PaddedTranslator(self.plan, values, self.buffer_of, offsets, self.inside_tensor, self.analyzer,
                             self.site.note)
        for axis in self.plan.axes:
            if axis in offsets:
                value = build.cast(axis.dtype, build.add(self.plan.mins[axis], offsets[axis]))
                values[axis.var] = Translator(values, self.buffer_of)(value) if self.ragged else value
        return translate

    def build(self) -> Stmt:
        plan = self.plan
        if self.at is not None:
            return TensorizedNest(self, self.at).build()
        reduce = plan.bodies[0]
        place = self.place(self.translate)
        if not isinstance(reduce, Reduce):
            stores = store_values(plan, self.buffers, place, self.translate)
            return self.marked(self.wrap(0, len(plan.loops), self.guarded(stores, plan.offsets, self.starts(), self.translate)))
        if crosses_threads(plan):
            return self.marked(cross_thread(self, reduce))
        begin = _begin_of_reduction(plan)
        init = self.init(reduce, begin)
        sources = {at: self.translate(reduce.source[at]) for at in places_of(reduce)}
        in_order = components_in_order(plan, reduce, sources, self.analyzer) if sources else ()
        update = store_update(plan, reduce, self.buffers, place, self.translate, in_order)
        update = self.guarded(update, plan.offsets, self.starts(), self.translate)
        update = self.wrap(begin, len(plan.loops), update)
        if any(build.as_int(plan.extents[axis]) == 0 for axis in plan.axes[len(plan.data_axes):]):
            update = seq()
        return self.marked(self.wrap(0, begin, seq(init, update)))

    def place(self, translate: Translator) -> tuple[Expr, ...]:
        """The indices of the element that an iteration writes, as `translate` gives them."""
        return tuple(translate.values[axis.var] for axis in self.plan.data_axes)

    def starts(self) -> list[IterVar]:
        return [loop.leaf for loop in self.plan.loops]

    def wrap(self, begin: int, end: int, body: Stmt) -> Stmt:
        """`body` inside the loops begin .. end - 1, with the guests of each."""
        for at in reversed(range(begin, end)):
            body = self.around(self.plan.loops[at], self.extent(at), self.iteration(at, body))
        return body

    def iteration(self, at: int, body: Stmt) -> Stmt:
        """One iteration of loop number `at`: its guests, and `body` unless that adds zeros which are skipped."""
        if self.plan.loops[at].attr.skips_zeros:
            check_guests_inside(self.site, at)
            for condition in reversed(conditions_inside(self.plan, at, self.translate, self.analyzer)):
                body = IfThenElse(condition, body)
        return self.site.after_guests(at, body)

    def inside(self, at: int, body: Stmt) -> Stmt:
        """`body` inside loop number `at`."""
        return self.around(self.plan.loops[at], self.extent(at), body)

    def own_conditions(self) -> tuple[list[Expr], list[Expr]]:
        """The conditions under which an iteration exists, and separately the store predicate (a list of at most one)."""
        conditions = self.conditions(self.plan.offsets, self.starts(), self.translate)
        predicate = self.plan.stage.store_predicate
        at = len(conditions) - (predicate is not None and not build.is_true(predicate))
        return conditions[:at], conditions[at:]

    def extent(self, at: int) -> Expr:
        """The extent of loop number `at`.

        An extent that is read from a tensor may depend on outer loops only; it counts as 0 where the guards of these loops
        fail, because the guards stand inside the loop.
        """
        loop = self.plan.loops[at]
        if not self.ragged:
            return loop.extent
        extent: Expr = self.translate(loop.extent)
        inner = {other.var: other.leaf.name for other in self.plan.loops[at:] if other.var is not None}
        wrong = [inner[v] for v in variables(extent) if v in inner]
        if wrong:
            names = ", ".join(wrong)
            raise LoweringError(f"the extent of loop {loop.leaf.name} of {self.plan.name} depends on {names} inside it",
                                hint=f"reorder {names} to the outside of {loop.leaf.name}",
                                about=said(self.plan.stage, "leaf_iter_vars"))
        if not _is_read(extent):
            return extent
        for condition in reversed(self.existing()):
            if not any(v in inner for v in variables(condition)):
                extent = build.if_then_else(condition, extent, build.const(0, extent.dtype))
        return extent

    def existing(self) -> list[Expr]:
        """The conditions under which an iteration exists, those of threads included, without the store predicate."""
        limits = [exceeded(loop, self.site.launch) for loop in self.plan.loops] if crosses_threads(self.plan) else []
        return [*(limit for limit in limits if limit is not None), *self.own_conditions()[0]]

    # --- guards ---

    def guarded(self, stmt: Stmt, offsets: Mapping[IterVar, Expr], start: Collection[IterVar], translate: Translator) -> Stmt:
        """`stmt` under the conditions under which its iteration exists."""
        for condition in reversed(self.conditions(offsets, start, translate)):
            stmt = IfThenElse(condition if condition in self.unlikely else build.likely(condition), stmt)
        return on_named_threads(self.plan, self.site.launch, stmt, start)

    def conditions(self, offsets: Mapping[IterVar, Expr], start: Iterable[IterVar], translate: Translator) -> list[Expr]:
        if offsets is not self.plan.offsets:
            return self.found_conditions(offsets, start, translate)
        if self.own is None:
            self.own = self.found_conditions(offsets, start, translate)
        return self.own

    def found_conditions(self, offsets: Mapping[IterVar, Expr], start: Iterable[IterVar], translate: Translator) -> list[Expr]:
        plan = self.plan
        guards = self.guards_of_tiles(offsets, start, translate)
        for axis in plan.data_axes:
            if axis not in plan.padded:
                guards += [Guard(inside, "tensor", axis) for inside in self.inside_tensor(axis, translate.values[axis.var])]
        if self.ragged:  # one that reads a tensor does so where the others hold
            guards.sort(key=lambda guard: _is_read(guard.condition))
        if plan.stage.store_predicate is not None:
            guards.append(Guard(translate(store_predicate(plan)), "predicate"))
            self.unlikely.add(guards[-1].condition)
        if offsets is plan.offsets:  # those of the statements themselves, not of the start values: for explanations
            for guard in guards:
                self.site.note(guard)
        conditions = [guard.condition for guard in guards if not build.is_true(guard.condition)]
        return conditions if self.at is None else outer_conditions(plan, self.at, conditions, self.analyzer)

    def guards_of_tiles(self, offsets: Mapping[IterVar, Expr], start: Iterable[IterVar], translate: Translator) -> list[Guard]:
        """The guards of splits that do not come out even: they keep the loops within the extents of their parents."""
        plan, guards = self.plan, []
        for iv, splits in compared(plan, start).items():
            condition = build.less(offsets[iv], plan.extents[iv])
            guards.append(Guard(translate(condition) if self.ragged else condition, "tile", iv, splits))
            if is_masked(plan, iv):
                self.unlikely.add(guards[-1].condition)
        short = short_tiles(plan, offsets, self.analyzer)
        return guards + [Guard(condition, "short", splits=(split,)) for split, condition in short.items()]

    def inside_tensor(self, axis: IterVar, value: Expr) -> list[Expr]:
        """The conditions that keep the index `value` inside the tensor along `axis`; none unless the region of an attached
        stage may leave the tensor.
        """
        low, extent, domain = self.plan.mins[axis], self.plan.extents[axis], self.plan.domain(axis)
        [(begin, whole)] = specialized(self.plan, [(domain.min, build.as_expr(domain.extent))])
        all_of_it = extent is whole or build.as_int(extent) == build.as_int(whole) is not None
        if all_of_it and build.as_int(low) == build.as_int(begin) is not None:
            return []
        first, last = self.analyzer.bounds(value)
        end = build.add(begin, whole)
        start, limit = build.as_int(begin), build.as_int(end)
        needed: list[Expr] = []
        if first is None or start is None or first < start:
            needed.append(build.greater_equal(value, build.cast(value.dtype, begin)))
        if last is None or limit is None or last >= limit:
            needed.append(build.less(value, end))
        return [condition for condition in needed if not self.analyzer.can_prove(condition)]

    # --- init ---

    def init(self, reduce: Reduce, begin: int) -> Stmt:
        """The start values, inside copies of the data loops from number `begin` on."""
        plan = self.plan
        self.check_init_reads(reduce, begin)
        elements = touched_by(plan.data_axes, plan.stage.relations)  # with loops over elements and the reduction at once
        copies = [self.init_loop(loop) for loop in plan.loops[begin:] if not loop.leaf.is_reduction or loop.leaf in elements]
        values = {loop.leaf: loop.value for loop in (*plan.loops[:begin], *copies)}
        offsets = indices_up(plan.stage.relations, plan.tiling, values)
        translate = self.translator(offsets)
        stmt = store_init(reduce, self.buffers, self.place(translate), translate)
        stmt = self.guarded(stmt, offsets, values, translate)
        for loop in reversed(copies):
            stmt = self.around_copy(loop, stmt)
        return stmt

    def init_loop(self, loop: Loop) -> Loop:
        """A copy of `loop` with a variable of its own."""
        if loop.var is None or loop.attr.bind_thread is not None:
            return loop
        var = Var(f"{loop.leaf.name}.init", loop.leaf.dtype)
        self.analyzer.bind(var, Range.from_min_extent(build.const(0, var.dtype), loop.extent))
        return Loop(loop.leaf, loop.attr, loop.extent, var, var, loop.tail)

    def check_init_reads(self, reduce: Reduce, begin: int) -> None:
        """Refuses start values that read a stage which is computed inside the loops of the reduction, or after them."""
        read = {self.buffer_of(load.producer) for value in reduce.init for load in loads_of((value,))}
        if not read:
            return
        for at in range(begin, len(self.plan.loops)):
            for guest in self.site.guests_at(at):
                if any(self.buffer_of(guest.op.output(i)) in read for i in range(guest.op.num_outputs)):
                    raise self.init_before(guest, at)

    def init_before(self, guest: StagePlan, at: int) -> LoweringError:
        """The error for initial values that are stored before loop number `at`, although their producer `guest` is computed
        inside it.
        """
        plan, loops = self.plan, self.plan.loops
        what, out = f"{guest.name} gives the start values of {plan.name}", f"{guest.stage.written}.compute_root()"
        if plan.stage.init_at is not None and not any(loop.leaf.is_reduction for loop in loops[:at + 1]):
            before, after = plan.stage.init_at.name, loops[at + 1].leaf.name
            return LoweringError(f"{what}, which decompose_reduction put before loop {before}, and is computed at loop "
                                 f"{loops[at].leaf.name} behind that",
                                 hint=f"put them inside of that loop, {plan.stage.written}.decompose_reduction({after}), or "
                                      f"compute {guest.name} further out: {out}", about=said(plan.stage, "init_at"))
        return LoweringError(f"{what}, and is computed at loop {loops[at].leaf.name}, inside of its reduction",
                             hint=f"compute {guest.name} further out: {out}", about=attached(guest.stage))

    def around_copy(self, loop: Loop, body: Stmt) -> Stmt:
        """`body` inside `loop`, which is a copy of one of the loops."""
        return self.around(loop, loop.extent, body)

    def around(self, loop: Loop, extent: Expr, body: Stmt) -> Stmt:
        """`body` inside one loop and its pragmas."""
        if loop.attr.bind_thread is not None:
            body = around_thread(loop, body, self.site.launch)
        elif loop.var is not None and not is_no_op(body):
            kind = KINDS.get(loop.attr.iter_type, ForKind.SERIAL)
            combined = kind is ForKind.VECTORIZED and loop.leaf.is_reduction
            notes = FrozenDict({**({"tail": loop.tail} if loop.tail else {}), **({COMBINED: 1} if combined else {})})
            body = For(loop.var, build.const(0, loop.var.dtype), extent, kind, body, annotations=notes)
        for key, value in zip(reversed(loop.attr.pragma_keys), reversed(loop.attr.pragma_values)):
            body = AttrStmt(_axis_of(loop), f"pragma_{key.value}", build.const(1, "int32") if value is None else value, body)
        return body

    def begin_of_reduction(self) -> int:
        """The number of the loop in front of which the initial values are stored."""
        return _begin_of_reduction(self.plan)

    def marked(self, stmt: Stmt) -> Stmt:
        """`stmt` with the directives on the stage as a whole."""
        if self.plan.stage.nontemporal:
            for buffer in reversed(self.buffers):
                stmt = AttrStmt(buffer, "nontemporal", build.const(1, "int32"), stmt)
        return stmt


def _is_read(value: Expr) -> bool:
    """Whether `value` depends on elements of tensors."""
    return any(isinstance(node, BufferLoad) for node in post_order(value))


def _axis_of(loop: Loop) -> IterVar:
    """The loop as an axis, with the variable that it has in the text."""
    return loop.leaf if loop.var is None else loop.leaf.replace(var=loop.var)


def _begin_of_reduction(plan: StagePlan) -> int:
    """The number of the loop in front of which the initial values are stored: that of decompose_reduction, else the outermost
    loop of the reduction.
    """
    return next((at for at, loop in enumerate(plan.loops) if loop.leaf.is_reduction or loop.leaf is plan.stage.init_at),
                len(plan.loops))
