"""The adjoint of maxima in windows over the last dimensions, plane by plane, row of windows by row: all that a row needs is in
the nearest cache.

    for each plane, for each row of windows:
        the rows of data that it is the first to reach, with their border
        the heads of the windows, and the number of the winning tap of each
        each element whose windows are all there gets the heads of those whose winning tap it is

With stride s and a border of b the element q * s + c is tap c + b - a * s of window q + a. The elements of one c are a vector
of neighbouring q; the vectors of all c are shuffled into a row. All sums are in vectors, and no two stores meet.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from tedsl.target import Target
from topi.adjoints.pooled_maxima_threads import by_threads
from topi.extents import as_int, product, row_major
from topi.kinds import PoolOp, TogetherOp
from topi.nn.pool.layout import lowest
from topi.statements import first_of, loops, places, prefetch, rows_kind, store

_TAPS = 32  # of a window, each of which is written out
_STEPS = 4  # elements from window to window along rows, up to which vectors are shuffled
_TASKS = 8  # chunks of planes for each core, so that cores that are late do not hold up the others
_MOST = 1 << 31  # elements, whose numbers are int32
_NONE = -1  # the number of no tap


def fits(pool: PoolOp, head: te.Tensor, places: Sequence[int]) -> bool:
    """Whether `from_planes` computes the adjoint: maxima of floats that are not narrow in small windows over the last
    dimensions, known extents, and a processor to compile for.
    """
    target, data = Target.current() or Target("llvm"), pool.data
    return ("cpu" in target.kind.keys and list(places) == list(range(places[0], data.ndim)) and data.dtype.is_float
            and data.dtype.bits >= 32 and head.dtype == data.dtype and max(pool.dilation) == 1
            and product(pool.kernel) <= _TAPS and pool.strides[-1] <= _STEPS
            and all((as_int(extent) or 0) > 0 for extent in (*data.shape, *head.shape))
            and (as_int(product(data.shape)) or 0) < _MOST)


def from_planes(pool: PoolOp, head: te.Tensor, formula: te.Tensor) -> te.Tensor:
    """The adjoint of the data. formula: the same in operators, which is differentiated in place of the statements."""
    data, rank = pool.data, len(pool.kernel)
    target = Target.current() or Target("llvm")
    space = [Along(*[as_int(n) or 0 for n in numbers]) for numbers in zip(
        data.shape[-rank:], head.shape[-rank:], pool.kernel, pool.strides, pool.before)]
    space = [Along(1, 1, 1, 1, 0), *space] if rank == 1 else space
    count = as_int(product(data.shape[:-rank])) or 1
    part = -(-count // (target.machine.cores * _TASKS))

    def accesses(ib: Any, ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> list[Any]:
        within = [a.data for a in space]
        return [ib.buffer_ptr(buffer, shape=(count, *extents)) for buffer, extents in zip(
            (*ins, *outs), (within, [a.results for a in space], within))]

    def threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, h, result = accesses(ib, ins, outs)
        by_threads(ib, x, h, result, space, threads)
        return ib.get()

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, h, result = accesses(ib, ins, outs)
        with ib.for_range(0, -(-count // part), name="chunk", kind=rows_kind(data.shape)) as chunk:
            plane = _Plane(ib, space, data.dtype, target)
            with ib.for_range(0, part, name="plane") as within:
                number = chunk * part + within
                with ib.if_scope(number < count):
                    plane.compute(x, h, result, number)
        return ib.get()

    made: te.Tensor = te.extern(data.shape, [data, head], body, name="pooled_maxima_adjoint", dtype=data.dtype,
                                tag="pooled_maxima_adjoint", by_threads=threads,
                                info=TogetherOp("pooled_maxima_adjoint", (formula,)))
    return made


@record
class Along:
    """A dimension of the windows: extents of the data and of the results, and what lies between."""

    data: int
    results: int
    kernel: int
    stride: int
    before: int

    @property
    def padded(self) -> int:
        """The extent of the data with its border, as far as windows reach."""
        return max(self.before + self.data, (self.results - 1) * self.stride + self.kernel)

    @property
    def groups(self) -> int:
        """The number of q."""
        return -(-self.data // self.stride)

    @property
    def margin(self) -> int:
        """How many windows before number q elements of group q are looked for in."""
        return max([0, *[-a for c in range(self.stride) for a, _ in self.taps(c)]])

    def windows(self, groups: int) -> int:
        """The number of windows, margins included, in which elements of so many groups are looked for."""
        return self.margin + max(groups + self.ahead, self.results)

    @property
    def ahead(self) -> int:
        """How many windows behind number q elements of group q are looked for in."""
        return max([0, *[a for c in range(self.stride) for a, _ in self.taps(c)]])

    def taps(self, c: int) -> list[tuple[int, int]]:
        """Of the elements q * stride + c: pairs (a, tap) for the windows q + a around them."""
        place = c + self.before
        return [((place - tap) // self.stride, tap) for tap in range(self.kernel) if (place - tap) % self.stride == 0]


class _Plane:
    """The memory that the planes of a chunk use one after the other, and the steps of one plane."""

    def __init__(self, ib: Any, space: Sequence[Along], dtype: Any, target: Target) -> None:
        self.ib, self.space, self.last, self.dtype, lanes = ib, space, space[-1], dtype, target.vector_lanes(dtype)
        self.lanes, self.line, self.page = lanes, target.machine.line // dtype.bytes, target.machine.page // dtype.bytes
        self.vectors = -(-self.last.groups // lanes)
        across, width = [a.windows(a.groups) for a in space[:-1]], space[-1].windows(self.vectors * lanes)
        self.padded = self._filled("padded", dtype, [a.padded for a in space], lowest(dtype))
        self.heads = self._filled("heads", dtype, [*across, width], te.const(0, dtype))
        self.winners = self._filled("winners", "int32", [*across, width], te.const(_NONE, "int32"))

    def _filled(self, name: str, dtype: Any, shape: Sequence[int], value: Any) -> Any:
        memory = self.ib.allocate(dtype, tuple(shape), name=name)
        with loops(self.ib, shape[:-1]) as i:
            self.along(shape[-1], lambda at: store(memory, (*i, at), value))
        return memory

    def along(self, count: int, visit: Callable[[Any], None]) -> None:
        """Calls `visit` for the places of vectors of a row: full ones in a loop, then one for the rest."""
        full, rest = divmod(count, self.lanes)
        if full:
            with self.ib.for_range(0, full, name="v") as v:
                visit(places(v * self.lanes, self.lanes))
        if rest:
            visit(places(te.const(full * self.lanes, "int32"), rest))

    def compute(self, x: Any, h: Any, result: Any, number: Any) -> None:
        """Computes the plane `number` of `result` from those of the data and the heads. What a step stores is read a step
        later: vectors that overlap with several that were just stored have to wait for them.
        """
        first = self.space[0]
        late = first.ahead + 1
        with self.ib.for_range(0, first.kernel, name="p") as p:
            self._read(x, number, p)
        with self.ib.for_range(0, max(first.results, first.groups + late), name="step") as step:
            with self.ib.for_range(0, first.stride, name="p") as p:
                self._read(x, number, step * first.stride + first.kernel + p)
            with self.ib.if_scope(step < first.results):
                self._find_winners(h, number, step)
            with self.ib.if_scope(tir.all(step >= late, step - late < first.groups)):
                self._add_heads(result, number, step - late)

    def _read(self, x: Any, number: Any, place: Any) -> None:
        """Copies the rows of data at `place` of the first dimension into their border, if there are any."""
        first, *between = self.space[:-1]
        y = place - first.before
        with self.ib.if_scope(tir.all(y >= 0, y < first.data)), loops(self.ib, [a.data for a in between], name="y") as rest:
            own = [at + a.before for at, a in zip((y, *rest), self.space)]

            def visit(at: Any) -> None:
                self._ask(x, (number, y, *rest, at))
                store(self.padded, (*own, at + self.last.before), x[(number, y, *rest, at)])

            self.along(self.last.data, visit)

    def _ask(self, memory: Any, at: Sequence[Any], writes: bool = False) -> None:
        """Asks for the memory of the data or the result a page ahead of a vector: processors do so within a page, of which a
        plane has several. Of the result only in the same plane: what other threads write is not for this one to touch.
        """
        first = row_major([*at[:-1], first_of(at[-1])], memory.shape)
        for step in range(0, at[-1].dtype.lanes, self.line):
            last = (at[0] + 1) * product(memory.shape[1:]) - 1 if writes else product(memory.shape) - 1
            prefetch(self.ib, memory[te.min(first + (step + self.page), last)], writes)

    def _find_winners(self, h: Any, number: Any, row: Any) -> None:
        """Copies the heads of windows, and stores the number of the first largest tap of each; that of the first NaN if there
        is one.
        """
        with loops(self.ib, [a.results for a in self.space[1:-1]], name="w") as rest:
            w = (row, *rest)
            own = [at + a.margin for at, a in zip(w, self.space)]

            def visit(at: Any) -> None:
                mine = (*own, at + self.last.margin)
                store(self.heads, mine, h[(number, *w, at)])
                store(self.winners, mine, self._winner(w, at))

            self.along(self.last.results, visit)

    def _winner(self, w: Sequence[Any], at: Any) -> Any:
        lanes, kernel = at.dtype.lanes, [a.kernel for a in self.space]
        first = at.base if lanes > 1 else at
        best = winner = None
        for tap in reversed(list(itertools.product(*map(range, kernel)))):  # a first one is at least as large as later ones
            own = [index * a.stride + k for index, a, k in zip(w, self.space, tap)]
            value = self.ib.let("tap", self.padded[(*own, places(first * self.last.stride + tap[-1], lanes, self.last.stride))])
            number = spread(te.const(row_major(tap, kernel), "int32"), lanes)
            if best is None:
                best, winner = value, number
                continue
            better = te.any(value >= best, te.isnan(value))
            best = self.ib.let("best", te.select(better, value, best))
            winner = self.ib.let("winner", te.select(better, number, winner))
        return winner

    def _add_heads(self, result: Any, number: Any, group: Any) -> None:
        """Stores the sums of heads, a row of the data after the other."""
        outer = self.space[:-1]
        with loops(self.ib, [a.groups for a in outer[1:]], name="q") as rest:
            q = (group, *rest)
            for c in itertools.product(*[range(a.stride) for a in outer]):
                y = [at * a.stride + k for at, a, k in zip(q, outer, c)]
                inside = [at < a.data for at, a in zip(y, outer) if a.data % a.stride]
                with self.ib.if_scope(tir.all(*inside)) if inside else nullcontext():
                    self._row(q, c, result, (number, *y))

    def _row(self, q: Sequence[Any], c: Sequence[int], result: Any, row: Sequence[Any]) -> None:
        width = self.lanes * self.last.stride
        full, rest = divmod(self.last.data, width)
        with self.ib.for_range(0, full, name="v") as v:
            at = places(v * width, width)
            self._ask(result, (*row, at), writes=True)
            store(result, (*row, at), self._vector(q, c, v, width))
        if rest:
            store(result, (*row, places(te.const(full * width, "int32"), rest)),
                  self._vector(q, c, te.const(full, "int32"), rest))

    def _vector(self, q: Sequence[Any], c: Sequence[int], v: Any, count: int) -> Any:
        """`count` elements of a row: the sums of each c, shuffled."""
        step = self.last.stride
        sums = [self._sum(q, (*c, k), v) for k in range(step)]
        order = [te.const(n // step + n % step * self.lanes, "int32") for n in range(count)]
        return tir.Shuffle(tuple(sums), tuple(order))

    def _sum(self, q: Sequence[Any], c: Sequence[int], v: Any) -> Any:
        total: Any = None
        for around in itertools.product(*[a.taps(k) for a, k in zip(self.space, c)]):
            own = [at + (a.margin + ahead) for at, a, (ahead, _) in zip(q, self.space, around)]
            mine = (*own, places(v * self.lanes + (self.last.margin + around[-1][0]), self.lanes))
            tap = te.const(row_major([tap for _, tap in around], [a.kernel for a in self.space]), "int32")
            won = te.select(self.winners[mine].equal(spread(tap, self.lanes)), self.heads[mine], te.const(0, self.dtype))
            total = won if total is None else total + won
        return spread(te.const(0, self.dtype), self.lanes) if total is None else self.ib.let("sum", total)


def spread(value: Any, lanes: int) -> Any:
    """`value` in all lanes."""
    return tir.Broadcast(value, lanes) if lanes > 1 else value
