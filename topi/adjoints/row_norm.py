"""The adjoints of the normalization of rows by data, gamma and beta together: one walk over the rows, each of which stays in
the caches from its statistics to its results.

    for each chunk of rows, in parallel:  for each row:  mean, variance
                                                         both sums of the adjoint; what the row adds to the chunk's sums
                                                         the adjoint by data
    the adjoints by gamma and beta:       the sums of the chunks added up

A formula of te has results of one shape in one loop nest: as formulas, the statistics read the data twice, and the adjoints by
data and by gamma the data and the head once each. `topi.schedules.shared_rows` joins the loops of such formulas, block of rows
by block of rows, for all that programs write; normalizations are so frequent that the loops below, which look at a row as it
lies in the nearest cache and ask for the memory of the head meanwhile, are kept beside it: 1.13 to 1.31 times as fast
(benchmarks/NOTES.md, "Gradients"). Everything that `fits` refuses (devices, gradients by data or by gamma alone, narrow floats,
no gamma) goes by the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from tedsl import te, tir
from tedsl.target import Target
from topi.adjoints.row_norm_threads import by_threads
from topi.extents import as_int, indices_at, product
from topi.kinds import NormalizeOp, TogetherOp
from topi.reduction import sum as sum_of
from topi.statements import first_of, places, prefetch, rows_kind, store

_VECTORS = 2  # of partial sums: their additions overlap, and those of the other sums
_TASKS = 4  # chunks of rows for each core, so that cores that are late do not hold up the others
_ROWS = 32  # of a chunk at least: its sums are stored and added up once more, which costs as much as a row or two


Element = Callable[..., Any]  # from indices to an expression
Elements = Callable[[Any], Any]  # from the places of neighbouring elements of a row to what stands there, a vector


def fits(record: NormalizeOp, head: te.Tensor) -> bool:
    """Whether `in_one_walk` computes the adjoints of a normalization: floats of one dtype that are not narrow, rows of known
    extents in the last dimensions, and a processor to compile for.
    """
    target = Target.current() or Target("llvm")
    source, gamma = record.source, record.gamma
    kept = source.ndim - len(record.axes)
    return (gamma is not None and "cpu" in target.kind.keys and record.axes == tuple(range(kept, source.ndim))
            and all((as_int(extent) or 0) > 0 for extent in source.shape) and source.dtype.bits >= 32
            and {head.dtype, gamma.dtype, *([] if record.beta is None else [record.beta.dtype])} == {source.dtype})


def in_one_walk(record: NormalizeOp, head: te.Tensor, of_source: te.Tensor, terms: Sequence[Element]) -> list[te.Tensor]:
    """The adjoints by data, gamma and, if there is one, beta. of_source, terms: the first as a formula, and what each element
    adds to the others, which are differentiated in place of the statements.
    """
    source, gamma = record.source, record.gamma
    assert gamma is not None
    target = Target.current() or Target("llvm")
    kept = source.ndim - len(record.axes)
    rows, count = (as_int(product(extents)) or 1 for extents in (source.shape[:kept], source.shape[kept:]))
    part = rows_of_chunk(rows, target)
    chunks = -(-rows // part)

    def of_chunks(term: Element) -> te.Tensor:
        k = te.reduce_axis((0, part), name="k")

        def formula(chunk: Any, *own: Any) -> Any:
            row = chunk * part + k
            value = term(*indices_at(row, source.shape[:kept]), *own)
            return te.sum(te.if_then_else(row < rows, value, te.const(0, source.dtype)) if rows % part else value, axis=k)

        made: te.Tensor = te.compute((chunks, *gamma.shape), formula, name="sums_of_chunks")
        return made

    def accesses(ib: Any, ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tuple[Any, Any, Any, Any, list[Any]]:
        x, h = (ib.buffer_ptr(buffer, shape=(rows, count)) for buffer in ins[:2])
        result, *sums = (ib.buffer_ptr(buffer, shape=(n, count)) for buffer, n in zip(outs, (rows, chunks, chunks)))
        return x, h, ib.buffer_ptr(ins[2], shape=(count,)), result, sums

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, h, scales, result, sums = accesses(ib, ins, outs)
        with ib.for_range(0, chunks, name="chunk", kind=rows_kind((rows, count))) as chunk:
            walk = _Row(ib, count, source.dtype, target)
            walk.clear([(total, chunk) for total in sums])
            with ib.for_range(0, part, name="row") as within:
                row = chunk * part + within
                with ib.if_scope(row < rows) if rows % part else nullcontext():
                    walk.adjoints(lambda at: x[row, at], lambda at: h[row, at], lambda at: scales[at], record.epsilon,
                                  [(total, chunk) for total in sums], (result, row))
        return ib.get()

    def threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, h, scales, result, sums = accesses(ib, ins, outs)
        by_threads(ib, x, h, scales, record.epsilon, result, sums, part, threads)
        return ib.get()

    shapes = [source.shape, *[(chunks, *gamma.shape)] * len(terms)]
    made = te.extern(shapes, [source, head, gamma], body, name="normalization_adjoints", dtype=[source.dtype] * len(shapes),
                     tag="normalization_adjoints", by_threads=threads,
                     info=TogetherOp("normalization_adjoints", (of_source, *map(of_chunks, terms))))
    return [made[0], *[sum_of(total, 0) for total in made[1:]]]


def rows_of_chunk(rows: int, target: Target) -> int:
    """The number of rows of a chunk; it depends on the machine, not on the number of threads that run."""
    return -(-rows // max(1, min(target.machine.cores * _TASKS, rows // _ROWS)))


class _Row:
    """What is computed from a row of `count` elements, in vectors that fill several registers."""

    def __init__(self, ib: Any, count: int, dtype: Any, target: Target) -> None:
        self.ib, self.count, self.dtype, self.lanes = ib, count, dtype, target.vector_lanes(dtype)
        self.width, self.line = _VECTORS * self.lanes, max(1, target.machine.line // dtype.bytes)
        self.zero = te.const(0, dtype)
        self.partial = [ib.allocate(dtype, (self.width,), name=f"partial{n}") for n in range(2)]

    def each(self, visit: Callable[[Any], Any]) -> None:
        """Calls `visit` for the places of the vectors of a row: those that fill all registers in a loop, then the rest."""
        full = self.count // self.width
        if full:
            with self.ib.for_range(0, full, name="k") as k:
                visit(places(k * self.width, self.width))
        at = full * self.width
        while at < self.count:
            lanes = self.lanes if self.count - at >= self.lanes else self.count - at
            visit(places(te.const(at, "int32"), lanes))
            at += lanes

    def clear(self, rows: Sequence[tuple[Any, Any]]) -> None:
        """Stores zeros in rows of memory."""
        def visit(at: Any) -> None:
            for memory, row in rows:
                memory[row, at] = self.zero

        self.each(visit)

    def sums(self, *formulas: Elements, also: Callable[[Any], Any] = lambda at: None) -> list[Any]:
        """The sum of each of the formulas over the row; also: what else is done at the places of each vector."""
        kept = self.partial[:len(formulas)]
        for partial in kept:
            partial[places(te.const(0, "int32"), self.width)] = self.zero

        def visit(at: Any) -> None:
            mine = places(te.const(0, "int32"), at.dtype.lanes)
            for partial, formula in zip(kept, formulas):
                partial[mine] = partial[mine] + formula(at)
            also(at)

        self.each(visit)
        half = self.width // 2
        while half:
            low, high = places(te.const(0, "int32"), half), places(te.const(half, "int32"), half)
            for partial in kept:
                partial[low] = partial[low] + partial[high]
            half //= 2
        return [self.ib.let("total", partial[0]) for partial in kept]

    def prefetch(self, elements: Elements, at: Any) -> None:
        """Asks for the memory of a vector, a line at a time: reading then overlaps with a look at what is in the caches."""
        for step in range(0, at.dtype.lanes, self.line):
            prefetch(self.ib, elements(first_of(at) + step))

    def adjoints(self, x: Elements, head: Elements, gamma: Elements, epsilon: float, sums: Sequence[tuple[Any, Any]],
                 result: tuple[Any, Any]) -> None:
        """Stores the adjoint by data in a row of `result`, and adds to rows of `sums` what the row adds to those by gamma and
        beta. Formulas: those of `topi.adjoints.rows.of_normalization`.
        """
        count = te.const(self.count, self.dtype)
        mean = self.ib.let("mean", self.sums(x)[0] / count)
        (squares,) = self.sums(lambda at: (x(at) - mean) * (x(at) - mean), also=lambda at: self.prefetch(head, at))
        scale = self.ib.let("scale", te.const(1, self.dtype) / te.sqrt(squares / count + te.const(epsilon, self.dtype)))

        def add(at: Any) -> None:
            terms = [head(at) * ((x(at) - mean) * scale), head(at)]
            for (total, row), term in zip(sums, terms):
                total[row, at] = total[row, at] + term

        first, second = self.sums(lambda at: head(at) * gamma(at), lambda at: head(at) * gamma(at) * (x(at) - mean), also=add)
        share = self.ib.let("share", first / count)
        slope = self.ib.let("slope", second * scale / count * scale)
        target, row = result
        self.each(lambda at: store(
            target, (row, at), scale * (head(at) * gamma(at) - share - (x(at) - mean) * slope)))
