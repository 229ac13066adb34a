"""Kernels in statements: a launch of blocks of threads, and rows of a tensor by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tedsl import te, tir
from topi.extents import as_int, product
from topi.statements import TRUST as TRUST
from topi.statements import loops, rows_kind

Place = Callable[[Any], tuple[Any, ...]]  # from a position in a row to the indices of the element
Write = Callable[[Any, list[Any], list[Any], tuple[Any, ...]], None]  # ib, inputs, outputs, indices


@contextmanager
def launch(ib: Any, blocks: Any, threads: int) -> Iterator[tuple[Any, Any]]:
    """A kernel of `blocks` blocks of `threads` threads; passes the number of the block and that of the thread in it."""
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    with ib.new_scope():
        ib.scope_attr(block, "thread_extent", blocks)
        ib.scope_attr(thread, "thread_extent", threads)
        yield block.var, thread.var


@contextmanager
def each(ib: Any, count: Any, threads: int) -> Iterator[Any]:
    """A kernel with a thread for each of `count` numbers, which it passes."""
    known = as_int(count)
    size = threads if known is None else max(1, min(threads, known))
    with launch(ib, (count + size - 1) // size, size) as (block, thread):
        number = ib.let("number", block * size + thread)
        if known is not None and known % size == 0:
            yield number
        else:
            with ib.if_scope(number < count):
                yield number


def as_data(ib: Any, *values: Any) -> tuple[Any, ...]:
    """The values, read from memory of the thread: as indices they are data, which memory with the attribute TRUST takes as they
    are. Rows of symbolic extents are places in products of these, which no proof compares.
    """
    cell = ib.allocate("int32", (len(values),), name="cell", scope="local")
    for k, value in enumerate(values):
        cell[k] = value
    return tuple([cell[k] for k in range(len(values))])


def indices_of(number: Any, shape: Sequence[Any]) -> tuple[Any, ...]:
    """The indices of element `number` of a tensor of `shape`, in row-major order."""
    found: list[Any] = []
    for extent in reversed(shape[1:]):
        found.append(number % extent)
        number = number // extent
    return tuple(reversed([*found, *([number] if shape else [])]))


def row_place(shape: Sequence[Any], along: int, number: Any) -> Place:
    """The places of row `number` of a tensor of `shape`; rows run along dimension `along`."""
    other = indices_of(number, [*shape[:along], *shape[along + 1:]])
    return lambda t: (*other[:along], t, *other[along:])


def independently(shape: Sequence[Any], write: Write, work: Sequence[Any] = (), *, inside: bool = False) -> dict[str, Any]:
    """The statements of a te.extern whose work at each index of `shape` is independent of that at the others.

    write(ib, inputs, outputs, index) writes the work at an index. In loops, those over `shape` run in parallel if there is
    enough work: as many elements as `shape` and `work` together have; in a kernel each index has a thread.
    inside: indices of outputs that data decide are known to be in range.
    """
    def memory_of(ib: Any, ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tuple[list[Any], list[Any]]:
        inputs, outputs = [ib.buffer_ptr(one) for one in ins], [ib.buffer_ptr(one) for one in outs]
        for memory in outputs if inside else ():
            ib.scope_attr(memory, *TRUST)
        return inputs, outputs

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        memory = memory_of(ib, ins, outs)
        with loops(ib, shape, rows_kind((*shape, *work))) as index:
            write(ib, *memory, index)
        made: tir.Stmt = ib.get()
        return made

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        memory = memory_of(ib, ins, outs)
        with each(ib, product(shape), threads) as number:
            write(ib, *memory, indices_of(number, shape))
        made: tir.Stmt = ib.get()
        return made

    return {"fcompute": body, "by_threads": by_threads}
