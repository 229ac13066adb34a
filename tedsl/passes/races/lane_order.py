"""Decides which vectorized loops must not run all lanes at once, since one lane accesses an element that another one writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Broadcast, Expr, IntImm, Let, Load, Ramp, Var
from tedsl.ir.iters import Range
from tedsl.ir.stmt import For, IfThenElse, LetStmt, Stmt, Store
from tedsl.ir.walk.accesses import Access, accesses
from tedsl.ir.walk.around import Loop
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.index_arithmetic import alike
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.dependence import Dependence
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.loops.vectorize_expr import LaneExpressions, NotVectorizable
from tedsl.passes.races.may_meet import Axes, may_meet

PAIRS = 4096  # of accesses to compare; a body with more runs serially
Uses = Callable[[Expr, set[Var]], bool]
LANES = 256  # to look at one by one


def must_run_in_order(body: Stmt, lane_var: Var, low: Expr, lanes: int, around: Sequence[For] = (),
                      written_by_hand: bool = False) -> bool:
    """Tells whether lanes of a loop with `body` may touch each other's elements, so that their order matters.

    around: the loops outside of it. written_by_hand: the indices are arbitrary; otherwise they come from a formula and stay
    within their dimensions, so that rows of a matrix are disjoint even where their length is symbolic.
    """
    uses = Dependence().on_any
    binders = [node for node in of_kinds(body, LetStmt, Let, For) if isinstance(node, (LetStmt, Let, For))]
    varying = varying_variables(binders, lane_var, uses)
    touched = list(accesses(body))
    stores = [access for access in touched if access.writes]
    written = {store.memory for store in stores}
    loads = [access for access in touched if not access.writes and access.memory in written]
    read = {load.memory for load in loads}
    for store in stores:
        if not uses(store.node.index, varying):
            if store.memory in read or _is_guarded(store, varying, uses) or uses(store.node.value, varying):
                return True
    together: list[tuple[list[Access], list[Access]]] = []  # the writes to one memory, and all accesses to it
    for memory in written:
        wrote = _distinct(store for store in stores if store.memory is memory)
        used = _distinct([*wrote, *(load for load in loads if load.memory is memory)])
        if len(wrote) * len(used) > PAIRS:
            return True
        if len(used) > 1 or memory in read:
            together.append((wrote, used))
    if not together:
        return False
    inner = [node for node in binders if isinstance(node, For)]
    order = _Order(lane_var, low, lanes, inner, varying - {lane_var}, around if written_by_hand else None)
    if written_by_hand:
        order.tell_iterations_apart(inner, body)
    axes = _axes(lane_var, low, lanes, inner, around)
    axes.lets = {node.var for node in binders if not isinstance(node, For)}
    return any(order.conflict(a.node.index, b.node.index) and may_meet(a, b, distinct=axes)
               for wrote, used in together for a in wrote for b in used)


def _axes(lane_var: Var, low: Expr, lanes: int, inner: Sequence[For], around: Sequence[For]) -> Axes:
    """Returns the axes whose points are the lanes, with the loops inside, innermost first."""
    axes = Axes([Loop(lane_var, low, build.const(lanes, lane_var.dtype))],
                [Loop(loop.loop_var, loop.min, loop.extent) for loop in around])
    for loop in reversed(inner):
        axes.loop(loop.loop_var, loop.min, loop.extent)
    return axes


def varying_variables(binders: Sequence[LetStmt | Let | For], lane_var: Var, uses: Uses) -> set[Var]:
    """Returns the variables that may differ among the lanes: lets of varying values and inner loops with varying bounds too.

    binders: the lets and loops of the body, in post-order.
    """
    varying = {lane_var}
    for node in reversed(binders):  # the outermost first
        if isinstance(node, For):
            if uses(node.min, varying) or uses(node.extent, varying):
                varying.add(node.loop_var)
        elif uses(node.value, varying):
            varying.add(node.var)
    return varying


def _is_guarded(store: Access, varying: set[Var], uses: Uses) -> bool:
    """Tells whether a condition or the extent of a loop around `store` differs among the lanes."""
    guards = [c.expr for c in store.conditions if isinstance(c.by, IfThenElse)] + [loop.extent for loop in store.loops]
    return any(uses(guard, varying) for guard in guards)


def _distinct(accesses: Iterable[Access]) -> list[Access]:
    """Returns the accesses without those whose index occurred before."""
    once: dict[Expr, Access] = {}
    for access in accesses:
        once.setdefault(access.node.index, access)
    return list(once.values())


class _Order:
    """Compares the addresses of two accesses across lanes."""

    def __init__(self, lane_var: Var, low: Expr, lanes: int, inner: Sequence[For], varying: set[Var],
                 around: Sequence[For] | None) -> None:
        self.lane_var, self.low, self.lanes, self.varying = lane_var, low, lanes, varying
        self.inner = {loop.loop_var for loop in inner}
        self.number = Numbering()
        self.analyzer = Analyzer()
        self.doubtful = around is not None  # what is not shown to be apart may meet
        for loop in (*(around or ()), *reversed(inner)):
            self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        self.elsewhere: dict[Var, Expr] = {}  # what is bound inside of the body, as another lane may have it at that time
        self.changing: set[Var] = set()  # memory that the body writes
        self.vector = LaneExpressions(lanes, {lane_var: Ramp(low, IntImm(low.dtype, 1), lanes)})

    def tell_iterations_apart(self, inner: Sequence[For], body: Stmt) -> None:
        """Lets the loops inside (innermost first) be at different iterations in the two accesses.

        Lanes that run at once execute each iteration of an inner loop together; in order, a lane executes all of them before
        the next lane begins. So any iteration of one lane must be compared with any iteration of another.
        """
        for loop in reversed(inner):
            other = Var(f"{loop.loop_var.name}_elsewhere", loop.loop_var.dtype)
            low, extent = substitute(loop.min, self.elsewhere), substitute(loop.extent, self.elsewhere)
            self.analyzer.bind(other, Range.from_min_extent(low, extent))
            self.elsewhere[loop.loop_var] = other
        for node in post_order(body):
            if isinstance(node, (LetStmt, Let)):
                self.elsewhere[node.var] = Var(f"{node.var.name}_elsewhere", node.var.dtype)
            elif isinstance(node, Store):
                self.changing.add(node.buffer_var)

    def conflict(self, a: Expr, b: Expr) -> bool:
        """Tells whether lane x at `a` and another lane y at `b` may touch one element.

        Elements of formulas that are a symbolic distance apart can only coincide because of loops inside.
        """
        if any(isinstance(node, Load) and node.buffer_var in self.changing for e in (a, b) for node in post_order(e)):
            return True
        b = substitute(b, self.elsewhere)
        if a.dtype.lanes > 1 or b.dtype.lanes > 1 or any(v in self.varying for e in (a, b) for v in variables(e)):
            return True
        try:
            wide_a, wide_b = self.vector(a), self.vector(b)
        except NotVectorizable:
            return True
        step_a, step_b = _step(wide_a), _step(wide_b)
        if isinstance(wide_a, Ramp) and isinstance(wide_b, Ramp) and step_a is None is step_b \
                and self._same(wide_a.stride, wide_b.stride):
            return self._conflict_by_strides(a, b, wide_a.stride)
        if step_a is None or step_b is None:
            return not (self._same(a, b) and self._all_different(a))
        if step_a == 0 and step_b == 0:
            return False  # written once, with the value of every lane
        if step_a == 0 or step_b == 0:
            return self._on_the_way(self._distance(a, b) if step_a == 0 else self._distance(b, a), step_a or step_b)
        if step_a != step_b:
            return True
        distance = self._distance(a, b)
        known = build.as_int(distance)
        if known is None:
            if not self.doubtful:
                return self._may_meet(a, b, step_a * self.lanes)
            return not (self._apart(distance, abs(step_a) * self.lanes) or self._within(distance, build.const(abs(step_a))))
        lanes_apart, rest = divmod(known, step_a)
        return rest == 0 and 0 < abs(lanes_apart) < self.lanes

    def _on_the_way(self, distance: Expr, step: int) -> bool:
        """Tells whether the lanes, which are `step` apart, reach an element that all of them touch, at `distance` from the
        first lane.
        """
        known = build.as_int(distance)
        if known is None:
            return self.doubtful and not self._apart(distance, abs(step) * self.lanes)
        lane, rest = divmod(known, step)
        return rest == 0 and 0 <= lane < self.lanes

    def _conflict_by_strides(self, a: Expr, b: Expr, stride: Expr) -> bool:
        """Tells whether lanes that are a symbolic `stride` apart may touch one element: rows of a matrix do not, neighbours in
        a row do.
        """
        distance = self._distance(a, b)
        if build.as_int(distance) == 0:
            return self.doubtful and not self._apart(stride, 1)  # all lanes would be one element
        if self.doubtful and self._within(distance, stride):
            return False
        if self.doubtful or build.as_int(distance) is not None or any(v in self.inner for v in variables(distance)):
            return True
        factors = self.number.factors(distance)
        return factors.keys() == {self.number(stride)} and abs(factors[self.number(stride)]) < self.lanes

    def _may_meet(self, a: Expr, b: Expr, span: int) -> bool:
        """Tells whether different iterations of loops inside may move the elements of two lanes, `span` elements in all, onto
        each other.

        For 8 lanes, v + k and v + j may be equal; v + k*8 and v + j*8 may not.
        """
        factors = self.number.factors(build.sub(a, b))
        return any(factors.get(self.number(var), 0) % span for var in self.inner)

    def _distance(self, a: Expr, b: Expr) -> Expr:
        """Returns, for the first lane, the index of `a` minus the index of `b`."""
        if alike(a, b):
            return build.const(0, a.dtype)
        first = {self.lane_var: self.low}
        return self.analyzer.simplify(build.sub(substitute(a, first), substitute(b, first)))

    def _apart(self, distance: Expr, span: int) -> bool:
        """Tells whether the distance is proved to be at least `span`, or a multiple of it (0 included: both are of the same
        lane).
        """
        known = self.analyzer.can_prove
        return known(build.greater_equal(distance, span)) or known(build.less_equal(distance, -span)) or \
            (span > 1 and known(build.equal(build.floormod(distance, span), 0)))

    def _within(self, distance: Expr, stride: Expr) -> bool:
        """Tells whether the distance is proved to be less than `stride`, so that only one lane can touch both elements."""
        known = self.analyzer.can_prove
        return known(build.less(distance, stride)) and known(build.less(build.negative(stride), distance))

    def _same(self, a: Expr, b: Expr) -> bool:
        return alike(a, b) or build.as_int(self.analyzer.simplify(build.sub(a, b))) == 0

    def _all_different(self, index: Expr) -> bool:
        """Tells whether the lanes of a non-linear index are proved, by enumeration, to select different elements."""
        if self.lanes > LANES or any(isinstance(node, Load) for node in post_order(index)):
            return False
        at_zero = substitute(index, {self.lane_var: self.low})
        seen: set[int] = set()
        for lane in range(self.lanes):
            here = substitute(index, {self.lane_var: build.add(self.low, lane)})
            distance = build.as_int(self.analyzer.simplify(build.sub(here, at_zero)))
            if distance is None or distance in seen:
                return False
            seen.add(distance)
        return True


def _step(wide: Expr) -> int | None:
    """Returns the distance between the elements of neighbouring lanes; None if it is not a constant."""
    if wide.dtype.lanes == 1 or isinstance(wide, Broadcast):
        return 0
    return wide.stride.value if isinstance(wide, Ramp) and isinstance(wide.stride, IntImm) else None


