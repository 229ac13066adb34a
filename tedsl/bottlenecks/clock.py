"""The time of each part of a program, by a build that reads the processor's clock around them.

    C = ...; D = ...        ticks[0] -= clock(); C = ...; ticks[0] += clock(); ticks[1] -= clock(); D = ...; ...

Parts are the statements after one another, at the outermost level, in parallel loops, and further inside where each runs so
long that reading the clock is a small part of it. Times are shares of the time of the program as it is.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy

from tedsl.bottlenecks.program import Program
from tedsl.bottlenecks.sites import ACCUMULATORS
from tedsl.codegen.llvm.compiled import compiled
from tedsl.codegen.llvm.debug.lines import stage_of
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.dtype import HANDLE, dtype
from tedsl.ir.expr import Call, Expr, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import CALL_LLVM_INTRIN
from tedsl.ir.stmt import Allocate, AssertStmt, AttrStmt, For, ForKind, LetStmt, SeqStmt, Stmt, Store, seq
from tedsl.ir.walk.visitor import statements
from tedsl.lower.written.function import vouch_for
from tedsl.passes.config import PassConfig
from tedsl.passes.races.known_values import Values, value
from tedsl.record import record
from tedsl.runtime.parallel import get_num_threads

_LEAST = 1e-6  # seconds of a part, beside which some 30 ns of reading the clock are little
_CALLS = 3  # of which the fastest counts
_INT64 = dtype("int64")


@record(eq=False)
class Part:
    """Statements whose time is taken. outer: the number of the part around it, -1 for the whole program; first, slots: the
    range of its counters, one for each iteration of the parallel loop that it is in; iterations: of a parallel loop, all
    at once.
    """

    stage: str
    outer: int
    first: int
    slots: int
    iterations: bool = False


@record
class Times:
    """stages: seconds of each stage. busy: of each stage with a parallel loop, the share of the time of all threads in which
    its iterations run.
    """

    stages: dict[str, float]
    busy: dict[str, float]


def named_stage(body: Stmt) -> str:
    """The stage of statements: that of the last store."""
    return stage_of(body).removesuffix(ACCUMULATORS)


def stage_times(program: Program, seconds: float) -> Times:
    """Returns the times of the stages of a program whose call takes `seconds`."""
    if program.target.architecture != "x86-64":  # elsewhere programs may not read the clock of the processor
        return Times({}, {})
    clock = _Clock(program.known, max(1, int(seconds / _LEAST)))
    body = clock.part([program.func.body], -1)
    handle, ticks = Var("ticks", HANDLE), clock.memory
    buffer = decl_buffer((clock.slots,), "int64", name="ticks", data=ticks)
    func = PrimFunc((*program.func.params, handle), body, program.func.ret_type,
                    {**program.func.buffer_map, handle: buffer}, program.func.attrs).with_attr("global_symbol", "clocked")
    module, _ = compiled([vouch_for(func)], program.target, PassConfig(), False, "")
    counts = numpy.zeros(clock.slots, "int64")
    best = counts
    for _ in range(_CALLS):
        counts = numpy.zeros(clock.slots, "int64")
        module(*program.arrays, counts)
        best = counts if best is counts or not best.any() or counts[0] < best[0] else best
    return _times(clock.parts, best, seconds)


def _times(parts: Sequence[Part], counts: numpy.ndarray, seconds: float) -> Times:
    """The seconds of parts: shares of the part around, of which the whole program is the outermost."""
    ticks = [max(int(counts[part.first:part.first + part.slots].sum()), 0) for part in parts]
    spent: list[float] = []
    stages: dict[str, float] = defaultdict(float)
    busy: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for at, part in enumerate(parts):
        whole = ticks[part.outer] if part.outer >= 0 else ticks[at]
        if part.iterations:
            spent.append(spent[part.outer])
            busy[part.stage].append((ticks[at], whole * get_num_threads()))
        else:
            spent.append((spent[part.outer] if part.outer >= 0 else seconds) * min(1.0, ticks[at] / max(whole, 1)))
        stages[part.stage] += spent[at]
        if part.outer >= 0:
            stages[parts[part.outer].stage] -= spent[at]
    return Times({stage: max(time, 0.0) for stage, time in stages.items()},
                 {stage: min(1.0, math.fsum(b for b, _ in pairs) / max(1, math.fsum(w for _, w in pairs)))
                  for stage, pairs in busy.items()})


class _Clock:
    """Puts the clock around parts. most: how often a part may run beside which reading the clock is little."""

    def __init__(self, known: Values, most: int) -> None:
        self.known, self.most = known, most
        self.parts: list[Part] = []
        self.slots = 0
        self.memory = Var("ticks", HANDLE)
        self._parallel: For | None = None

    def part(self, body: Sequence[Stmt], outer: int, runs: int = 1, *, iterations: bool = False) -> Stmt:
        """`body` as a part, and what is inside of it."""
        number, whole = len(self.parts), seq(*body)
        slots = 1 if self._parallel is None else self._times(self._parallel)
        self.parts.append(Part(named_stage(whole), outer, self.slots, slots, iterations))
        at = build.const(self.slots, _INT64)
        if self._parallel is not None:
            start = build.sub(self._parallel.loop_var, self._parallel.min)
            at = build.add(at, build.cast(_INT64, start))
        self.slots += slots
        inside = self._inside(whole, number, runs)
        return seq(self._count(at, build.sub), inside, self._count(at, build.add))

    def _count(self, at: Expr, change: object) -> Stmt:
        now = Call(_INT64, CALL_LLVM_INTRIN, (StringImm("llvm.readcyclecounter"),))
        before = Load(_INT64, self.memory, at)
        return Store(self.memory, build.add(before, now) if change is build.add else build.sub(before, now), at)

    def _times(self, loop: For) -> int:
        return max(1, value(loop.extent, self.known) or 1)

    def _inside(self, stmt: Stmt, number: int, runs: int) -> Stmt:
        match stmt:
            case Allocate() | LetStmt() | AttrStmt() | AssertStmt():
                return replace(stmt, body=self._inside(stmt.body, number, runs))
            case SeqStmt(seq=children):
                groups = [list(group) for _, group in itertools.groupby(children, named_stage)]
                if len(groups) == 1 and len(children) > 1:
                    return stmt
                return seq(*[self.part(group, number, runs) for group in groups])
            case For() if runs * self._times(stmt) <= self.most:
                return self._loop(stmt, number, runs * self._times(stmt))
            case _:
                return stmt

    def _loop(self, loop: For, number: int, runs: int) -> Stmt:
        if loop.kind is ForKind.PARALLEL and self._parallel is None:
            self._parallel = loop
            inside = self.part([loop.body], number, runs, iterations=True)
            self._parallel = None
            return replace(loop, body=inside)
        stages = {store.buffer_var.name.removesuffix(ACCUMULATORS) for store in statements(loop.body)
                  if isinstance(store, Store)}
        parallel = any(isinstance(inner, For) and inner.kind is ForKind.PARALLEL for inner in statements(loop.body))
        return replace(loop, body=self._inside(loop.body, number, runs)) if len(stages) > 1 or parallel else loop
