"""What the loops of a schedule do, statement by statement, as numbers that a model can learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tedsl.auto_scheduler.cost.footprint import span, touched
from tedsl.driver import schedule_to_module
from tedsl.ir.build import as_int
from tedsl.ir.expr import BufferLoad, Expr, Var
from tedsl.ir.stmt import BufferStore, For, ForKind
from tedsl.ir.walk.accesses import accesses
from tedsl.ir.walk.around import Around, Loop
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target

UNKNOWN = 16  # iterations of a loop whose extent is not constant


@dataclass
class Nest:
    """A statement with the loops around it, the outermost first.

    steps: how often it runs, as scalar iterations. issued: as instructions, vectors counted once. threads: iterations of the
    parallel loops. loops: iterations of loops that are neither unrolled nor vectors. guarded: iterations under a condition.
    gathers: vector accesses to places that do not follow each other. tile: vectors of results that are written out side by
    side. chain: results that depend on themselves. traffic: bytes that come from beyond L1, L2 and L3.
    """

    steps: float = 1.0
    issued: float = 1.0
    threads: float = 1.0
    loops: float = 1.0
    guarded: float = 0.0
    gathers: float = 0.0
    tile: float = 1.0
    chain: float = 0.0
    loads: float = 0.0
    work: float = 1.0
    traffic: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])


def nests_of(sch: Schedule, args: Sequence[Any], target: Target) -> list[Nest]:
    """The statements of a schedule. Raises TedslError where it has no loops."""
    module = schedule_to_module(sch, args)
    found: list[Nest] = []
    for function in module.functions.values():
        stores: dict[BufferStore, tuple[Around, list[Any]]] = {}
        for access in accesses(function.body):
            if isinstance(access.statement, BufferStore):
                around, nodes = stores.setdefault(access.statement, (access.around.of_statement(), []))
                if access.node is not access.statement:
                    nodes.append(access.node)
        found += [_nest(store, around, nodes, target) for store, (around, nodes) in stores.items()]
    return found


def _nest(store: BufferStore, around: Around, nodes: Sequence[Any], target: Target) -> Nest:
    loops = around.loops()
    nest = Nest()
    lanes = max(1, target.vector_bits // store.buffer.dtype.bits)
    extents = {loop.var: as_int(loop.extent) or UNKNOWN for loop in loops}
    vectors: dict[Var, int] = {}
    for loop in loops:
        extent = extents[loop.var]
        nest.steps *= extent
        kind = loop.by.kind if isinstance(loop.by, For) else ForKind.SERIAL
        if kind is ForKind.VECTORIZED:
            vectors[loop.var] = extent
            nest.issued *= -(-extent // lanes)
            nest.tile *= -(-extent // lanes)
            continue
        nest.issued *= extent
        if kind is ForKind.PARALLEL:
            nest.threads *= extent
        if kind is ForKind.UNROLLED:
            nest.tile *= extent
        else:
            nest.loops *= extent
    if around.conditions():
        nest.guarded = nest.issued
    loads = [node for node in nodes if isinstance(node, BufferLoad)]
    others = [load for load in loads if load.buffer is not store.buffer]
    nest.loads = nest.issued * len(others)
    nest.work = operations(store.value)
    if len(others) < len(loads):
        nest.chain = nest.issued / max(1.0, nest.tile)
    touching: list[Any] = [store, *others]
    for node in touching:
        if vectors and _apart(node.indices, vectors):
            nest.gathers += nest.steps
    _add_traffic(nest, loops, extents, touching, target)
    return nest


def operations(value: Expr) -> float:
    """The operations on elements in an expression, indices apart; one that is used in several places counts once."""
    count, stack, seen = 0, [value], set[Expr]()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if not isinstance(node, BufferLoad) and node.child_nodes():
            count += 1
            stack += [child for child in node.child_nodes() if isinstance(child, Expr)]
    return float(max(1, count))


def _apart(indices: tuple[Expr, ...], vectors: dict[Var, int]) -> bool:
    """Whether the elements of a vector lie apart."""
    spans = [span(index, vectors) for index in indices]
    if all(values == 1 for values, _ in spans):
        return False
    values, width = spans[-1]
    return width > values or any(count > 1 for count, _ in spans[:-1])


def _add_traffic(nest: Nest, loops: Sequence[Loop], extents: dict[Var, int], nodes: Sequence[Any], target: Target) -> None:
    """Adds the bytes that each cache does not have: what loops inside touch together stays, if it fits."""
    machine = target.machine
    inside: dict[Var, int] = {}
    levels: list[tuple[float, float]] = []  # from the innermost loop on: bytes touched inside, runs of what is inside
    runs = nest.steps
    for loop in (*reversed(loops), None):
        touches = 0.0
        for node in nodes:
            size = max(1, node.buffer.dtype.bits // 8)
            touches += touched(node.indices, inside, machine.line // size)[1] * float(machine.line)
        levels.append((touches, runs))
        if loop is not None:
            inside[loop.var] = extents[loop.var]
            runs /= extents[loop.var]
    for at, cache in enumerate((machine.l1, machine.l2, machine.l3)):
        fits = [(size, times) for size, times in levels if size <= cache.size]
        size, times = fits[-1] if fits else levels[0]
        nest.traffic[at] += size * times if len(fits) < len(levels) else size


NAMES = ("steps", "issued", "threads", "loops", "guarded", "gathers", "tile", "chain", "loads", "work", "beyond L1",
         "beyond L2", "beyond L3", "statements", "seconds")


def features_of(nests: Sequence[Nest], seconds: float) -> list[float]:
    """The numbers of a program, in the order of NAMES: sums over its statements; of threads, tile and work the mean."""
    total = sum(nest.issued for nest in nests) or 1.0
    sums = [sum(getattr(nest, name) for nest in nests) for name in ("steps", "issued")]
    threads = sum(nest.issued * nest.threads for nest in nests) / total
    more = [sum(getattr(nest, name) for nest in nests) for name in ("loops", "guarded", "gathers")]
    tile = sum(nest.issued * nest.tile for nest in nests) / total
    last = [sum(getattr(nest, name) for nest in nests) for name in ("chain", "loads")]
    work = sum(nest.issued * nest.work for nest in nests) / total
    traffic = [sum(nest.traffic[at] for nest in nests) for at in range(3)]
    numbers = [*sums, threads, *more, tile, *last, work, *traffic, float(len(nests)), seconds * 1e9]
    return [number if math.isfinite(number) else 0.0 for number in numbers]
