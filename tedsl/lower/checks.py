"""Bounds checks of the reads of formulas: proved, checked at the call, clamped, or refused.

Each formula is checked as written, over its whole domain, before inlining and attaching: the result then holds for any part
of the domain that a schedule computes. For an index and the extent of its dimension:

    proved             under the ranges of the axes and the conditions around the read: nothing to do, except that a Select,
                       te.all or te.any whose condition is needed becomes an if_then_else, which does not evaluate the read
    data-dependent     (or conditions that cannot be decided): the index becomes max(min(index, extent - 1), 0)
    constant shapes    LoweringError, which shows an iteration that reads outside, if one is found
    symbolic shapes    the condition on the shapes is checked once per call (`Requirement` -> AssertStmt)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from itertools import islice

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Mul, ProducerLoad, SizeVar, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.ops import DATA_INDEX
from tedsl.ir.script import shown
from tedsl.ir.text import key_text
from tedsl.ir.walk.around import Eager, Facts, Loop
from tedsl.ir.walk.counterexample import Scope, SearchResult, find_outside, free_symbols
from tedsl.ir.walk.mended import mended
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import ComputeOp, extent_of
from tedsl.lang.reads import guarded_loads, has_load, is_ragged, takes_its_ends
from tedsl.lang.tensor import Tensor
from tedsl.record import record

MAX_FACTS = 32  # conditions around a read that a proof may use, the innermost ones
NO_DOMAINS: Mapping[IterVar, Range] = {}
ZERO = build.const(0, "int32")


@record(eq=False)
class Requirement:
    """A condition on the symbols of the shapes, checked at the call, without which a formula would read outside a tensor.

    read: the tensor and the dimension that the condition keeps in range, where it is one.
    """

    condition: Expr
    message: str
    read: tuple[Tensor, int] | None = None


@record(eq=False)
class Checked:
    """The bodies of an operation with unproved indices clamped, and the conditions that the shapes must satisfy.

    by_data: the reads, as they were written, whose index depends on data.
    """

    bodies: tuple[Expr, ...]
    requirements: tuple[Requirement, ...]
    by_data: tuple[ProducerLoad, ...] = ()


def check_reads(op: ComputeOp, domains: Mapping[IterVar, Range] = NO_DOMAINS, *,
                accesses: Accesses = Accesses.PROVED) -> Checked:
    """Check every read of `op`; LoweringError for one that leaves its tensor. domains: narrower ranges of some axes.

    accesses: how indices that depend on data are handled. AT_RUN_TIME refuses nothing: the loops check what cannot be proved.
    """
    if any(axis in domains for axis in op.axis):
        op = op.replace(axis=tuple([axis.replace(dom=domains.get(axis, axis.dom)) for axis in op.axis]))
    if any(build.as_int(extent_of(axis)) == 0 for axis in op.axis):
        return Checked(op.body, ())
    checker = _Checker(op, at_run_time=accesses is Accesses.AT_RUN_TIME)
    for body in op.body if op.reduction is None else op.body[:1]:  # the values of a reduction share their sources
        for load, facts in guarded_loads(body):
            checker.check(load, facts)
    if is_ragged(op):
        checker.check_ranges()
    keep = KEPT.get(accesses)
    loads = {} if keep is None else {load: partial(_inside, dims, keep) for load, dims in checker.clamps.items()}
    return Checked(tuple(mended(body, loads, checker.lazy) for body in op.body),
                   tuple(checker.requirements.values()), tuple(checker.clamps))


class _Checker:
    def __init__(self, op: ComputeOp, at_run_time: bool) -> None:
        self.op, self.at_run_time = op, at_run_time
        self.axes: dict[Var, IterVar] = {axis.var: axis for axis in (*op.axis, *op.reduce_axis)}
        self.clamps: dict[ProducerLoad, dict[int, None]] = {}
        self.lazy: dict[Eager, None] = {}
        self.reading: dict[Expr, bool] = {}
        self.answers: dict[tuple[Expr, ...], bool] = {}  # of `proved`
        self.nonempty = ExitStack()  # never closed: these hold wherever a read is evaluated
        self.requirements: dict[tuple[object, ...], Requirement] = {}  # by text and variables: two may have one name

    @cached_property
    def analyzer(self) -> Analyzer:
        """An analyzer that knows the ranges of the axes, that none is empty, and that symbols of shapes are not negative."""
        analyzer = Analyzer()
        extents = [extent_of(axis) for axis in self.op.axis]
        dims = dict.fromkeys([*(dim for tensor in self.op.input_tensors for dim in tensor.shape), *extents])
        analyzer.bind_sizes(dims, at_least=0)
        factors = [factor for extent in extents for factor in _factors(extent)]
        analyzer.bind_sizes((f for f in factors if f in dims or isinstance(f, SizeVar)), at_least=1)
        for extent in extents:
            if not isinstance(extent, (Var, IntImm)):
                self.nonempty.enter_context(analyzer.constraint_scope(build.greater_equal(extent, 1)))
        for axis in self.axes.values():
            assert axis.dom is not None
            analyzer.bind(axis.var, axis.dom)
        return analyzer

    def check(self, load: ProducerLoad, facts: Facts | None) -> None:
        for dim, (index, extent) in enumerate(zip(load.indices, load.producer.shape)):
            if self.is_plain(index, extent) or self.proved(index, extent, ()):
                continue
            if self.proved_where(index, extent, facts):
                self.needs(facts)
            else:
                self.unproved(load, dim, facts)

    def proved_where(self, index: Expr, extent: Expr, facts: Facts | None) -> bool:
        """Whether `index` is proved to be in range under the innermost of `facts`, or under the innermost MAX_FACTS of them."""
        for count in (2, MAX_FACTS):
            conditions = tuple(islice((fact for fact in facts or () if not self.reads(fact)), count))
            if conditions and self.proved(index, extent, conditions):
                return True
            if len(conditions) < count:
                return False
        return False

    def reads(self, condition: Expr) -> bool:
        """Whether `condition` depends on the elements of a tensor."""
        if condition not in self.reading:
            self.reading[condition] = has_load(condition)
        return self.reading[condition]

    def check_ranges(self) -> None:
        """Checks the reads that give reductions their ranges. They stand outside of the body and cannot be clamped."""
        ends = [end for axis in self.op.reduce_axis if axis.dom is not None for end in (axis.dom.min, extent_of(axis))]
        for load, facts in (guarded for end in ends for guarded in guarded_loads(end)):
            self.check(load, None if next(facts.choices() if facts else iter(()), None) is not None else facts)
            if load in self.clamps:
                raise LoweringError(f"{self.op.name} reduces over a range that is read as {shown(load)}, and that index cannot "
                                    f"be proved to lie inside of {load.producer.name}",
                                    hint="index with the axes of the formula and constants only")

    def is_plain(self, index: Expr, extent: Expr) -> bool:
        """Whether `index` is an axis whose range is exactly 0 .. extent - 1. A fast path: nearly every index of a program is
        one.
        """
        if not isinstance(index, Var) or index not in self.axes:
            return False
        dom = self.axes[index].dom
        assert dom is not None and dom.extent is not None
        if build.as_int(dom.min) != 0:
            return False
        mine, its = build.as_int(dom.extent), build.as_int(extent)
        return dom.extent is extent or (mine is not None and its is not None and mine <= its)

    def proved(self, index: Expr, extent: Expr, conditions: Sequence[Expr]) -> bool:
        """Whether `index` is proved to be in range where `conditions` hold. Each question is answered once and remembered."""
        key = (index, extent, *conditions)
        if key not in self.answers:
            self.answers[key] = self.prove(index, extent, conditions)
        return self.answers[key]

    def prove(self, index: Expr, extent: Expr, conditions: Sequence[Expr]) -> bool:
        low, high = self.analyzer.bounds(index)
        limit = build.as_int(extent)
        if low is not None and low >= 0 and high is not None and limit is not None and high < limit:
            return True
        if index.dtype.is_bool:
            return False
        with ExitStack() as scopes:
            for condition in conditions:
                scopes.enter_context(self.analyzer.constraint_scope(condition))
            zero = build.const(0, index.dtype)
            return ((low is not None and low >= 0) or self.analyzer.can_prove(build.greater_equal(index, zero))) \
                and self.analyzer.can_prove(build.less(index, extent))

    def needs(self, facts: Facts | None) -> None:
        """Records that a read is in range only where `facts` hold, so that it must not be evaluated elsewhere."""
        self.lazy.update(dict.fromkeys(facts.choices() if facts is not None else ()))

    def unproved(self, load: ProducerLoad, dim: int, facts: Facts | None) -> None:
        """Handles an index that is not proved to be in range: refuses it, requires it of the call, or clamps it."""
        index, extent = load.indices[dim], load.producer.shape[dim]
        conditions = [fact for fact in facts or () if not self.reads(fact)]
        decidable = not is_ragged(self.op) and not has_load(index) and len(conditions) == len(list(facts or ()))
        around = self.around(index, conditions)
        if decidable and not free_symbols(around, index, extent):
            search = find_outside(index, ZERO, extent, around)
            if search.at is not None and not self.at_run_time:
                raise self.refusal(load, dim, search)
            if search.at is None and search.complete:
                self.needs(facts)
                return
        if self.proved_with_elements(load, dim, facts) or (
                decidable and not conditions and takes_its_ends(index, self.axes) and self.required(load, dim)):
            return
        self.clamps.setdefault(load, {})[dim] = None
        self.require_elements(load, dim, facts)

    def proved_with_elements(self, load: ProducerLoad, dim: int, facts: Facts | None) -> bool:
        """Whether the index is in range provided that the extent is at least 1, as i % n is; the call is then required to
        satisfy that.
        """
        index, extent = load.indices[dim], load.producer.shape[dim]
        if isinstance(extent, IntImm) or facts is not None or is_ragged(self.op):
            return False
        with self.analyzer.constraint_scope(build.greater_equal(extent, 1)):
            if not self.prove(index, extent, ()):
                return False
        self.require_elements(load, dim, facts)
        return True

    def around(self, index: Expr, conditions: Sequence[Expr]) -> list[Scope]:
        """The loops over the axes that occur in the index and the conditions, and the conditions inside them."""
        used = {v for e in (index, *conditions) for v in variables(e)}
        return [*(Loop(var, axis.dom.min, extent_of(axis)) for var, axis in self.axes.items()
                  if var in used and axis.dom is not None), *conditions]

    def required(self, load: ProducerLoad, dim: int) -> bool:
        """Turns the range of the index into a condition on the shapes, checked at the call; returns False if that range is
        unknown.

        Refuses to run what no call can satisfy: such loops are only read.
        """
        index, extent = load.indices[dim], load.producer.shape[dim]
        low, high = index_range(index, self.axes.values(), self.analyzer)
        if low is None or high is None or any(v in self.axes for end in (low, high) for v in variables(end)):
            return False
        bottom, top = build.greater_equal(low, build.const(0, low.dtype)), build.less(high, extent)
        if self.analyzer.can_prove(build.logical_not(bottom)) or self.analyzer.can_prove(build.greater_equal(high, extent)):
            if self.at_run_time:
                return False
            search = find_outside(index, ZERO, extent, self.around(index, ()))
            refuse_to_run(self.refusal(load, dim, search, reached=f"{shown(low)} to {shown(high)}"))
            return True
        for condition in (bottom, top):
            if not self.analyzer.can_prove(condition):
                self.require(condition, f"{self.op.name} reads {shown(load)}: dimension {dim} of {load.producer.name} has "
                                        f"extent {shown(extent)} and the index goes from {shown(low)} to {shown(high)}",
                             (load.producer, dim))
        return True

    def require(self, condition: Expr, message: str, read: tuple[Tensor, int] | None = None) -> None:
        """Require `condition` of every call in which the formula has any iteration."""
        wanted = condition
        for axis in self.axes.values():
            extent = extent_of(axis)
            if isinstance(extent, IntImm) or (isinstance(extent, Var) and self.analyzer.can_prove(
                    substitute(condition, {extent: build.const(0, extent.dtype)}))):
                continue
            wanted = build.logical_or(build.less_equal(extent, 0), wanted)
        self.requirements.setdefault((key_text(wanted), *variables(wanted)), Requirement(wanted, message, read))

    def require_elements(self, load: ProducerLoad, dim: int, facts: Facts | None) -> None:
        """Requires at least one element in the dimension of a clamped index. Under a condition, and in a reduction whose range
        depends on data, a valid call may have no read at all: nothing is required.
        """
        extent = load.producer.shape[dim]
        if facts is not None or is_ragged(self.op) or self.analyzer.can_prove(build.greater_equal(extent, 1)):
            return
        message = f"{self.op.name} reads {shown(load)}: dimension {dim} of {load.producer.name} has extent " \
                  f"{shown(extent)}: no elements"
        if isinstance(extent, IntImm) and all(isinstance(extent_of(axis), IntImm) for axis in self.axes.values()):
            if all(build.as_int(extent_of(axis)) for axis in self.axes.values()):
                raise LoweringError(message + self.place,
                                    hint=f"give {load.producer.name} a dimension of at least 1, or do not read it")
            return
        self.require(build.greater_equal(extent, 1), message)

    @property
    def place(self) -> str:
        """The source line of the formula, as the last line of an error; "" if it is not known."""
        return f"\n  in stage {self.op.name} ({self.op.source})" if self.op.source is not None else ""

    def refusal(self, load: ProducerLoad, dim: int, search: SearchResult, reached: str = "") -> LoweringError:
        name, extent = load.producer.name, load.producer.shape[dim]
        if not reached:
            low, high = self.analyzer.bounds(load.indices[dim])
            reached = f"{'?' if low is None else low} to {'?' if high is None else high}"
        return LoweringError(
            f"{self.op.name} reads {shown(load)} outside of {name}: dimension {dim} of {name} has extent {shown(extent)} and "
            f"the index {shown(load.indices[dim])} goes from {reached}{search.beside(load.indices[dim])}{self.place}",
            hint=f"make the shape of {self.op.name} smaller, pad {name}, or read under a condition: "
                 f"te.if_then_else(te.all(...), {shown(load)}, 0)")


def _factors(extent: Expr) -> list[Expr]:
    """The factors of a product of extents: none is negative, and each is at least 1 if the product is."""
    factors, pending = [], [extent]
    while pending:
        part = pending.pop()
        if isinstance(part, Mul):
            pending += [part.b, part.a]
        else:
            factors.append(part)
    return factors


def index_range(index: Expr, axes: Iterable[IterVar], analyzer: Analyzer) -> tuple[Expr | None, Expr | None]:
    """The lowest and highest value of `index` over the axes, as expressions of the symbols; None where not known."""
    ends = {}
    for axis in axes:
        assert axis.dom is not None
        last = build.sub(build.add(axis.dom.min, extent_of(axis)), 1)
        ends[axis.var] = (axis.dom.min, last)
    return relax(index, ends, analyzer)


def _inside(dims: Collection[int], keep: Keep, load: ProducerLoad) -> Expr:
    """`load` with its indices number `dims` replaced by `keep(index, extent)`."""
    return ProducerLoad(load.producer, tuple(keep(index, extent) if dim in dims else index
                                             for dim, (index, extent) in enumerate(zip(load.indices, load.producer.shape))))


def clamp(index: Expr, extent: Expr) -> Expr:
    """`index` clamped to 0 .. extent - 1; `extent` is at least 1."""
    last = build.sub(extent, 1)
    if index.dtype.bits < 32:
        index = build.cast("int32", index)
    elif index.dtype == "uint32":
        index = build.cast("int64", index)
    elif index.dtype == "uint64":
        index = build.cast("int64", build.minimum(index, build.cast("uint64", last)))
    return build.maximum(build.minimum(index, last), 0)


def marked(index: Expr, extent: Expr) -> Expr:
    """`index`, marked for a bounds check at run time."""
    return build.call(DATA_INDEX, index)


# What becomes of an index that data decides, by the mode; in those that are not listed it stays as it is.
Keep = Callable[[Expr, Expr], Expr]
KEPT: dict[Accesses, Keep] = {Accesses.PROVED: clamp, Accesses.DATA_AT_RUN_TIME: marked}
