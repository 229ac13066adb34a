"""The walk over the accesses of a handwritten function, which bounds-checks each: proved, refused, asserted or clamped.

    proved                under the loops and conditions around it: nothing to do, except that a Select, te.all or te.any whose
                      condition is needed becomes an if_then_else, which does not evaluate the read
outside for certain   in some iteration: LoweringError, with that iteration
    decided by the call   AssertStmt, as far outside of the loops as the index allows (`demand`)
    decided by data       a read is clamped, as those of formulas are; a write is asserted on the spot
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Call, Expr, Let, Load, Ramp, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import Range
from tedsl.ir.node import Node
from tedsl.ir.ops import ACCESS_PTR, MAKE_ARRAY
from tedsl.ir.script import shown
from tedsl.ir.stmt import BufferStore, Stmt, Store
from tedsl.ir.walk.accesses import MOST_PLACES, reads
from tedsl.ir.walk.around import Eager, Facts, Loop
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.counterexample import Scope, SearchResult, find_outside, free_symbols, relevant
from tedsl.ir.walk.lanes import lane_of, one_lane
from tedsl.ir.walk.mended import mended
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.checks import KEPT, clamp
from tedsl.lower.written.demand import Demand, asserted, within
from tedsl.lower.written.known_memory import BoundedIndex, MemoryTable, kept_inside, span

Clamps = dict[Node, list[BoundedIndex]]  # loads whose indices must be kept inside


class AccessChecker(ScopedRewriter):
    """Rewrites statements so that every access stays inside its memory; LoweringError for an access that certainly does not.

    `statements` adds a handler for each kind of statement. accesses: AT_RUN_TIME leaves loads and stores that may be out of
    range unchanged, to be checked at run time; the modes for data indices leave only accesses whose index depends on data.
    """

    def __init__(self, table: MemoryTable, analyzer: Analyzer, *, may_return: bool,
                 accesses: Accesses = Accesses.PROVED) -> None:
        self.table, self.analyzer, self.may_return = table, analyzer, may_return
        self.accesses, self.at_run_time = accesses, accesses is Accesses.AT_RUN_TIME
        self.scopes: list[Scope] = []
        self.unsure = 0  # conditions around that depend on data: what stands below may never happen
        self.data: set[Var] = set()  # variables whose values depend on memory
        self.values: dict[Var, Expr] = {}  # of lets that do not
        self.trusted: frozenset[Var] = frozenset()  # memory whose data-dependent indices are said to be in range
        self.demands: list[Demand] = []
        self.line = ""  # of a hybrid script: where the statement at hand is written
        self.here: list[tuple[Expr, str]] = []  # conditions that depend on data: before the statement at hand

    # --- statements ---

    @contextmanager
    def inside(self, *scopes: Scope, unsure: bool = False) -> Iterator[list[Demand]]:
        """Context manager for the statements inside `scopes` (loops and conditions). It yields a list, filled on exit, of the
        demands made inside. unsure: whether the statements run at all is not known.
        """
        outer, self.demands, inner = self.demands, [], list[Demand]()
        self.scopes += scopes
        self.unsure += unsure
        with ExitStack() as known:
            for scope in scopes:
                fact = build.greater_equal(scope.extent, 1) if isinstance(scope, Loop) else scope
                known.enter_context(self.analyzer.constraint_scope(fact))
            yield inner
        self.unsure -= unsure
        del self.scopes[len(self.scopes) - len(scopes):]
        inner += self.demands
        self.demands = outer

    def loop(self, var: Var, low: Expr, extent: Expr, body: Stmt) -> Stmt:
        """Check the body of a loop over `var`."""
        number = build.as_int(extent)
        if number is not None and number <= 0:
            return body  # never runs
        loop = Loop(var, low, extent)
        by_data = self.depends_on_data(low) or self.depends_on_data(extent)
        if by_data:
            self.data.add(var)
            self.analyzer.bind(var, (self.analyzer.bounds(low)[0], None))
        else:
            self.analyzer.bind(var, Range.from_min_extent(low, extent))
        with self.inside(*(() if by_data else (loop,)), unsure=by_data) as inner:
            checked = self.stmt(body)
        staying = [d for d in inner if by_data or not self.moved(d, d.out_of(loop, self.analyzer))]
        return asserted(checked, staying)

    def moved(self, old: Demand, new: Demand | None) -> bool:
        """Moves the demand `old` out of a loop in the form `new`, which is dropped if it is proved there. Returns False if
        `new` is None: the demand must stay inside.
        """
        if new is None:
            return False
        with ExitStack() as known:
            for fact in new.facts:
                known.enter_context(self.analyzer.constraint_scope(fact))
            if not self.analyzer.can_prove(new.inside()):
                self.demands.append(new)
        return True

    def branch(self, condition: Expr, body: Stmt) -> Stmt:
        """Check a statement that runs where `condition` holds."""
        by_data = self.depends_on_data(condition)
        if by_data:
            with self.analyzer.constraint_scope(condition), self.inside(unsure=True) as inner:
                checked = self.stmt(body)
            return asserted(checked, inner)
        with self.inside(condition) as inner:
            checked = self.stmt(body)
        self.demands += [Demand(d.least, d.most, d.first, d.extent, (condition, *d.facts), d.message) for d in inner]
        return checked

    # --- expressions ---

    def expr(self, expr: Expr) -> Expr:
        """Checks the loads of `expr` and returns it with indices clamped and choices made lazy where that is needed."""
        if not contains(expr, Load, BufferLoad, ACCESS_PTR, MAKE_ARRAY):
            return expr
        lets = {node.var: node.value for node in of_kinds(expr, Let) if isinstance(node, Let)}
        for var, value in lets.items():
            self.data.update([var] if self.depends_on_data(value) else [])
        clamps: Clamps = {}
        lazy: dict[Eager, None] = {}
        for read in reads((expr,), wanted=_uses_memory, outside_in=True, most_places=MOST_PLACES):
            node, facts = read.node, read.facts
            if isinstance(node, Call):
                (self.check_pointer if node.op is ACCESS_PTR else self.check_array)(node, facts)
            elif isinstance(node, (Load, BufferLoad)):
                for place in self.table.places(node):
                    self.check_load(node, place, facts, lets, clamps, lazy)
        keep = KEPT.get(self.accesses, clamp)
        return mended(expr, {load: partial(kept_inside, places, keep) for load, places in clamps.items()}, lazy)

    def check_load(self, load: Load | BufferLoad, place: BoundedIndex, facts: Facts | None, lets: dict[Var, Expr],
                   clamps: Clamps, lazy: dict[Eager, None]) -> None:
        predicate = load.predicate if isinstance(load, Load) else None
        if (facts is None or next(facts.choices(), None) is None) and self.is_trusted(load, place):
            return
        if self.proved(place, None, predicate):
            return
        if facts is not None and self.proved(place, facts, predicate):
            _need(facts, lazy)
            return
        conditions = list(facts or ())
        by_data = any(map(self.depends_on_data, (place.index, *conditions)))
        if by_data and not self.keeps_data(load):
            _need(facts, lazy)
            return
        if by_data and predicate is None:
            clamps.setdefault(load, []).append(place)
            if not self.analyzer.can_prove(build.greater_equal(place.extent, 1)):
                self.need_element(load, place, conditions)
                _need(facts, lazy)
            return
        for var, value in reversed(lets.items()):
            place = BoundedIndex(substitute(place.index, {var: value}), place.low, place.extent, place.where)
            conditions = [substitute(c, {var: value}) for c in conditions]
        if self.unproved(load, place, conditions, predicate):
            _need(facts, lazy)

    def keeps_data(self, access: Load | Store | BufferLoad | BufferStore) -> bool:
        """Whether data-dependent indices of `access` are clamped or asserted here."""
        if self.accesses is Accesses.PROVED:
            return data_of(access) not in self.trusted
        return self.accesses is Accesses.DATA_AT_RUN_TIME

    def is_trusted(self, access: Load | Store | BufferLoad | BufferStore, place: BoundedIndex) -> bool:
        """Whether an index of `access` depends on data, and is left as it is, in range or not: nothing need be proved."""
        return not self.keeps_data(access) and self.depends_on_data(place.index)

    def need_element(self, load: Node, place: BoundedIndex, conditions: list[Expr]) -> None:
        """Demands at least one element in the dimension of a clamped index."""
        message = f"{shown(load)} reads {place.where}, which has extent {shown(place.extent)}: no elements"
        least, zero = (build.const(n, place.extent.dtype) for n in (1, 0))
        if any(map(self.depends_on_data, conditions)):
            self.here.append((self.implied(conditions, build.greater_equal(place.extent, least)), message))
        else:
            self.demands.append(Demand(place.extent, zero, least, place.extent, tuple(conditions), message))

    def check_pointer(self, call: Call, facts: Facts | None) -> None:
        """Check the region that `access_ptr` hands to a call."""
        lanes = call.args[0].dtype.lanes
        first = build.mul(call.args[2], lanes)
        self.check_region(call, first, build.sub(build.add(first, build.mul(call.args[3], lanes)), 1), facts)

    def check_array(self, call: Call, facts: Facts | None) -> None:
        """Check the array that a call passes to a Python function."""
        data, shape, strides, _, marker, offset = call.args
        assert isinstance(data, Var) and isinstance(shape, Call)
        steps = strides.args if isinstance(strides, Call) else ()
        memory = self.table.memory(data)
        if marker.dtype.element is not memory.element.element:
            raise LoweringError(f"an array of {marker.dtype} on the memory of {memory.name}, "
                                f"whose elements are {memory.element}")
        owner = memory.owner
        if owner is not None and owner.elem_offset is offset and _same((*owner.shape, *owner.strides), (*shape.args, *steps)):
            return
        low, high = span(Buffer(data, marker.dtype, shape.args, steps, offset, memory.name))
        self.check_region(call, build.add(offset, low), build.add(offset, high), facts)

    def check_region(self, call: Call, least: Expr, most: Expr, facts: Facts | None) -> None:
        """Checks that the elements `least` to `most`, which external code may access, exist; most = least - 1 means no
        elements.
        """
        data = call.args[1] if call.op is ACCESS_PTR else call.args[0]
        assert isinstance(data, Var)
        memory = self.table.memory(data)
        top = build.add(memory.low, memory.size)
        bottom = memory.low  # an empty region may stand at either end
        if not self.analyzer.can_prove(build.greater_equal(most, bottom)):
            bottom = build.minimum(bottom, most)
        for place in (BoundedIndex(least, memory.low, build.add(memory.size, 1), memory.name),
                      BoundedIndex(most, bottom, build.sub(top, bottom), memory.name)):
            conditions = list(facts or ())
            if self.proved(place, None, None):
                continue
            if any(map(self.depends_on_data, (place.index, *conditions))):
                self.here.append((self.implied(conditions, self.kept(place)), self.message(call, place)))
            else:
                self.unproved(call, place, conditions, None)

    # --- one index ---

    def depends_on_data(self, expr: Expr) -> bool:
        """Whether the value of `expr` depends on memory or calls, so that it may change between evaluations."""
        return any(node in self.data or isinstance(node, (Load, BufferLoad)) or (isinstance(node, Call) and not node.op.is_pure)
                   for node in post_order(expr))

    def proved(self, place: BoundedIndex, facts: Facts | None, predicate: Expr | None) -> bool:
        """Whether the index is proved to be in range in every lane that `predicate` turns on."""
        if _is_inside(place):
            return True
        index, conditions = place.index, [f for f in facts or () if not self.depends_on_data(f)]
        if index.dtype.lanes > 1:
            lane = Var("lane", build.const(0).dtype)
            self.analyzer.bind(lane, (0, index.dtype.lanes - 1))
            scalar = one_lane(index, lane)
            masked = None if predicate is None else one_lane(predicate, lane)
            if scalar is None:
                return False
            index, conditions = scalar, conditions + ([] if masked is None else [masked])
        elif predicate is not None:
            conditions.append(predicate)
        low, high = self.analyzer.bounds(index)
        first, limit = build.as_int(place.low), build.as_int(place.extent)
        if None not in (low, high, first, limit) and low >= first and high < first + limit:  # type: ignore[operator]
            return True
        if index.dtype.is_bool:
            index = build.cast("int32", index)
        with ExitStack() as scopes:
            for condition in conditions:
                if condition.dtype.lanes == 1:
                    scopes.enter_context(self.analyzer.constraint_scope(condition))
            return self.analyzer.can_prove(build.greater_equal(index, place.low)) and \
                self.analyzer.can_prove(build.less(index, build.add(place.low, place.extent)))

    def unproved(self, access: Node, place: BoundedIndex, conditions: list[Expr], predicate: Expr | None) -> bool:
        """Refuses the access, or demands at the call that it is in range; nothing in it depends on data.

        Returns whether `conditions` are needed for it to be in range.
        """
        index = place.index
        later = self.at_run_time and not isinstance(access, Call)
        if predicate is not None or (index.dtype.lanes > 1 and not _is_plain_ramp(index)):
            if later:
                return bool(conditions)
            wanted = self.implied(conditions, self.kept(place, predicate))
            self.here.append((wanted, self.message(access, place)))
            return False
        for end in _ends(index):
            scopes = self.expanded([*self.scopes, *conditions])
            whole = substitute(end, self.values)
            around = relevant(scopes, whole, place.low, place.extent)
            symbols = free_symbols(around, whole, place.low, place.extent)
            if not self.unsure and (not symbols or self.surely_outside(place, end, conditions)):
                example = find_outside(whole, place.low, place.extent, around)
                if example.at is not None:
                    raise self.refusal(access, place, example)
                if example.complete and not symbols:
                    continue
            if not later:
                self.demands.append(Demand(end, end, place.low, place.extent, tuple(conditions), self.message(access, place)))
        return bool(conditions)

    def expanded(self, scopes: list[Scope]) -> list[Scope]:
        """`scopes` with lets replaced by their values."""
        if not self.values:
            return scopes
        known = self.values
        return [Loop(s.var, substitute(s.min, known), substitute(s.extent, known)) if isinstance(s, Loop)
                else substitute(s, known) for s in scopes]

    def surely_outside(self, place: BoundedIndex, index: Expr, conditions: list[Expr]) -> bool:
        """Whether it is proved that some iteration is out of range for all values of the symbols."""
        demand: Demand | None = Demand(index, index, place.low, place.extent, (), "")
        if conditions:
            return False
        for scope in reversed(self.scopes):
            if demand is None or not isinstance(scope, Loop):
                return False
            demand = demand.out_of(scope, self.analyzer)
        if demand is None:
            return False
        top = build.add(demand.first, demand.extent)
        return self.analyzer.can_prove(build.less(demand.least, demand.first)) or \
            self.analyzer.can_prove(build.greater_equal(demand.most, top))

    def kept(self, place: BoundedIndex, predicate: Expr | None = None) -> Expr:
        """The condition that the index is in range in every lane that `predicate` turns on; it may read memory."""
        lanes = place.index.dtype.lanes
        wanted: Expr = build.true()
        for k in range(lanes):
            at = lane_of(place.index, k)
            holds = within(at, at, place.low, place.extent)
            if predicate is not None:
                holds = build.logical_or(build.logical_not(lane_of(predicate, k)), holds)
            wanted = build.logical_and(wanted, holds)
        return wanted

    def implied(self, conditions: list[Expr], wanted: Expr) -> Expr:
        """The condition that `wanted` holds wherever all `conditions` do; each is evaluated only where those before it hold.
        Conditions on lanes turn nothing off: both sides of a choice by lanes are evaluated, and masks are in `wanted`.
        """
        for condition in reversed([one for one in conditions if one.dtype.lanes == 1]):
            wanted = build.if_then_else(condition, wanted, build.true())
        return wanted

    # --- words ---

    def placed(self, access: Node) -> str:
        """The access in words, preceded by its line in a script if it is known."""
        return f"{self.line}: {_access_text(access)}" if self.line else _access_text(access)

    def message(self, access: Node, place: BoundedIndex) -> str:
        return f"{self.placed(access)} leaves its memory: {place.where} has the indices {_range_text(place)} and the index " \
               f"is {shown(place.index)}{self.by_data(access, place)}"

    def by_data(self, access: Node, place: BoundedIndex) -> str:
        """What to do about a store whose index depends on data, which is not clamped as that of a read; "" for others."""
        stores = isinstance(access, (Store, BufferStore)) and self.depends_on_data(place.index)
        instead = "pass indices in range, or store under a condition"
        return f"; it depends on data, and stores are not clamped: {instead}" if stores else ""

    def refusal(self, access: Node, place: BoundedIndex, example: SearchResult) -> LoweringError:
        low, high = self.analyzer.bounds(place.index) if place.index.dtype.lanes == 1 else (None, None)
        reached = f", which goes from {'?' if low is None else low} to {'?' if high is None else high}" if low != high else ""
        loops = ", ".join(s.var.name for s in self.scopes if isinstance(s, Loop))
        within = f">= {shown(place.low)}" if example.reached < 0 else f"< {shown(place.extent)}"
        guard = f"write it under a condition: if {shown(place.index)} {within}:" if self.line else \
            "guard the access: with ib.if_scope(index < extent)"
        return LoweringError(
            f"{self.placed(access)} is outside: {place.where} has the indices {_range_text(place)} and the index is "
            f"{shown(place.index)}{reached}{example.beside(place.index)}\n  loops: {loops or '(none)'}",
            hint=f"make the loop shorter or the {'array' if self.line else 'buffer'} larger, or {guard}")


# --- parts ----------------------------------------------------------------------------------------------------------

def _uses_memory(node: Node) -> bool:
    """Whether `node` reads memory, or passes a pointer to it to a function."""
    if isinstance(node, Call):
        return (node.op is ACCESS_PTR and isinstance(node.args[1], Var)) or node.op is MAKE_ARRAY
    return isinstance(node, (Load, BufferLoad))


def data_of(access: Load | Store | BufferLoad | BufferStore) -> Var:
    """The pointer to the memory that `access` reads or writes."""
    return access.buffer_var if isinstance(access, (Load, Store)) else access.buffer.data


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(x is y or build.as_int(x) == build.as_int(y) is not None for x, y in zip(a, b))


def _is_plain_ramp(index: Expr) -> bool:
    return isinstance(index, Ramp)


def _ends(index: Expr) -> tuple[Expr, ...]:
    """The first and last lane of the index, as scalars; the index itself if it is a scalar."""
    return (lane_of(index, 0), lane_of(index, index.lanes - 1)) if isinstance(index, Ramp) else (index,)


def _is_inside(place: BoundedIndex) -> bool:
    """Whether the index is a constant, or a vector of constants in steps, in a range of constant ends."""
    index, first, extent = place.index, build.as_int(place.low), build.as_int(place.extent)
    at, step = (build.as_int(index.base), build.as_int(index.stride)) if isinstance(index, Ramp) else (build.as_int(index), 0)
    if first is None or extent is None or at is None or step is None:
        return False
    return all(first <= end < first + extent for end in (at, at + step * (index.dtype.lanes - 1)))


def _need(facts: Facts | None, lazy: dict[Eager, None]) -> None:
    """Records in `lazy` that a read is in range only where `facts` hold, so that it must not be evaluated elsewhere."""
    lazy.update(dict.fromkeys(facts.choices() if facts is not None else ()))


def _access_text(access: Node) -> str:
    """Words for `access`: "the store to A[i + 1]", "the read of A[i]"."""
    if isinstance(access, BufferStore):
        return f"the store to {shown(BufferLoad(access.buffer, access.indices))}"
    if isinstance(access, Store):
        return f"the store to {shown(Load(access.value.dtype, access.buffer_var, access.index))}"
    return f"the read of {shown(access)}"


def _range_text(place: BoundedIndex) -> str:
    low, last = shown(place.low), shown(build.sub(build.add(place.low, place.extent), 1))
    return f"{low} to {last}" if len(low) + len(last) < 100 else "that its shape and strides say"
