"""What is known of each stage of a program: its time, operations, bytes by level, its hottest loops and their machine code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from tedsl.bottlenecks.assembly import InnerLoop, inner_loop
from tedsl.bottlenecks.clock import Times
from tedsl.bottlenecks.functions import seconds_of_element
from tedsl.bottlenecks.program import Program
from tedsl.bottlenecks.sites import OFTEN, Nest, Part, Site
from tedsl.graph.network.limits import Limits
from tedsl.ir.expr import Call
from tedsl.ir.ops import FMA
from tedsl.record import record
from tedsl.target.target import Target

LEVELS = ("L1", "L2", "L3", "RAM")
_OF_CALL = 20  # instructions of a function such as exp, which is a polynomial


@record
class Again:
    """A function, or arithmetic, whose values are computed `times` times each. what: in words, with the memory that it reads;
    seconds: for all of that, at least; counted: those that the limit of the stage counts for it, which takes all arithmetic for
    vectors. loops: in whose iterations the values are the same, outermost first; none where one
    iteration computes them for others.
    """

    what: str
    times: float
    seconds: float
    counted: float
    loops: tuple[str, ...]


@record(eq=False)
class Stage:
    """A stage. seconds: of a call; traffic: bytes that come from each level, most from the first; hot: the loops of most work;
    code: their innermost loop of machine code, None where it is not known; least: seconds that no kernel of so much work falls
    below here, and least_computing those for operations alone, functions such as exp computed in vectors; again: those whose
    values are computed more than once; busy: the share of the time of all threads in which the iterations of its parallel loop
    run, None without one.
    """

    name: str
    seconds: float
    nests: tuple[Nest, ...]
    hot: Nest
    code: InnerLoop | None
    operations: int
    traffic: dict[str, int]
    least: float
    least_computing: float
    again: tuple[Again, ...]
    wanted_lanes: int
    busy: float | None

    @cached_property
    def site(self) -> Site:
        """The site of the hot loops with most work."""
        return max(self.hot.sites, key=lambda site: site.work)

    @property
    def share(self) -> float:
        """The part of the limit of the machine that it reaches."""
        return min(1.0, self.least / self.seconds) if self.seconds else 1.0

    @property
    def lanes(self) -> int | None:
        """The elements of the widest vectors of the innermost loop; 1 for scalars, None if it is not known."""
        if self.code is None or not self.code.vector_bits:
            return None
        return max(1, self.code.vector_bits // max(8, self.site.write.dtype.bits))

    @property
    def guards(self) -> int:
        """Conditions in the innermost loop that depend on it, and masked accesses."""
        return sum(len(site.guards) + any(touch.masked for touch in site.touches) for site in self.hot.sites)


def stages_of(program: Program, nests: Sequence[Nest], times: Times, seconds: float, limits: Limits) -> list[Stage]:
    """Returns the stages of a program whose call takes `seconds`, in the order in which they begin."""
    groups: dict[str, list[Nest]] = defaultdict(list)
    for nest in nests:
        groups[nest.stage].append(nest)
    spent = _shared(groups, times, seconds)
    return [_stage(program, name, tuple(group), spent[name], times.busy.get(name), limits) for name, group in groups.items()]


def _shared(groups: dict[str, list[Nest]], times: Times, seconds: float) -> dict[str, float]:
    """The seconds of each stage. Where the clock did not tell apart the stages of one outermost loop, they share its time by
    their work.
    """
    roots: dict[str, set[object]] = {name: {nest.turns[0].by if nest.turns else nest for nest in group}
                                     for name, group in groups.items()}
    known = dict(times.stages) if times.stages else {}
    spent: dict[str, float] = {}
    for name in groups:
        family = [other for other in groups if roots[other] & roots[name]] if known else list(groups)
        if known and all(other in known for other in family):
            spent[name] = known[name]
            continue
        pool = sum(known.get(other, 0.0) for other in family) if known else seconds
        work = {other: sum(_executions(nest) for nest in groups[other]) for other in family}
        spent[name] = pool * work[name] / max(1, sum(work.values()))
    return spent


def _executions(nest: Nest) -> int:
    """About how many instructions the stores of a nest execute."""
    return nest.times * sum(1 + len(site.touches) + (site.operations + _OF_CALL * site.calls) // max(1, site.write.lanes)
                            for site in nest.sites)


def _stage(program: Program, name: str, nests: tuple[Nest, ...], seconds: float, busy: float | None, limits: Limits) -> Stage:
    machine = program.target.machine
    hot = max(nests, key=lambda nest: nest.work)
    lines, of_stage = [{program.loops.lines[site.store] for nest in some for site in nest.sites
                        if site.store in program.loops.lines} for some in ((hot,), nests)]
    code = inner_loop(program.listing, lines, of_stage) if program.target.architecture == "x86-64" else None
    item = hot.sites[0].write.dtype
    sizes = (0, machine.l1.size, machine.l2.size, machine.l3.size or machine.l2.size)
    brought = [_from_registers(nests)] + [sum(nest.brought(size, machine.line) for nest in nests) for size in sizes[1:]]
    traffic = dict(zip(LEVELS, [min(brought[:at + 1]) for at in range(len(brought))]))
    operations = sum(nest.operations for nest in nests)
    distinct = hot.footprint(0, machine.line)
    calls, of_functions = _functions(nests, program.target)
    operation = item.bits / 32 / limits.operations
    simple = (operations - calls) * operation
    computing = simple + of_functions
    least = max(computing, distinct / limits.rate(distinct))
    return Stage(name, seconds, nests, hot, code, operations, traffic, least, computing,
                 tuple(_again(hot, program.target, operation)), program.target.vector_lanes(item), busy)


def _functions(nests: Sequence[Nest], target: Target) -> tuple[int, float]:
    """The values of functions that nests compute, and the seconds for them, of those whose cost is known."""
    count, seconds = 0, 0.0
    for site in [site for nest in nests for site in nest.sites]:
        for one in site.called:
            each = _seconds_of_call(one, target)
            if each is not None:
                count += site.times * one.operations
                seconds += site.runs_of(one) * one.operations * each
    return count, seconds


def _again(nest: Nest, target: Target, operation: float) -> Iterator[Again]:
    """The functions, and the arithmetic, whose values a nest computes more than once. operation: the seconds of one."""
    for site in nest.sites:
        plain = [parts for parts, _ in site.arithmetic_again]
        for parts, times in (*site.called_again, *site.arithmetic_again):
            first = parts[0]
            each = operation if parts in plain else _seconds_of_call(first, target)
            if times > OFTEN and each is not None:
                still = tuple([turn.var.name for at, turn in enumerate(site.turns) if turn.times > 1 and at not in first.free
                               and not any(touch.steps[at] for touch in first.reads)])
                counted = len(parts) * site.runs_of(first) * first.operations * each
                scalar = target.vector_lanes(first.expr.dtype) if parts in plain and first.is_scalar else 1
                yield Again(_in_words(first), times, counted * scalar, counted, still)


def _seconds_of_call(part: Part, target: Target) -> float | None:
    return seconds_of_element(part.expr, target) if isinstance(part.expr, Call) else None


def _in_words(part: Part) -> str:
    """What a part of a value computes: erf(A), or how many operations on A."""
    read = ", ".join(dict.fromkeys(touch.name for touch in part.reads))
    if isinstance(part.expr, Call) and part.expr.op is not FMA:
        return f"{part.expr.op.name.removeprefix('tir.')}({read})"
    return f"{part.operations // (1 if part.is_scalar else part.expr.dtype.lanes)} operations on {read}"


def _from_registers(nests: Sequence[Nest]) -> int:
    """The bytes of all loads and stores of memory."""
    return sum(nest.times * max(1, touch.dtype.bits // 8) * (touch.lanes if touch.stride != 0 else 1)
               for nest in nests for touch in nest.touches)
