"""What a kernel computes of constants alone leaves it for a function of its own, which runs once.

before:  f(x, w, y) { realize packed { packed = w in another order; y = x * packed } }
after:   f_prepare(w, packed) { packed = w in another order }      f(x, y, packed) { y = x * packed }

The buffer becomes an argument of both. Its producer leaves the loops around it, of which the new function keeps those whose
variables it uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field

from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import BufferLoad, Call, IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import ACCESS_PTR, ADDRESS_OF, CALL_EXTERN, CALL_PACKED, CALL_PURE_EXTERN
from tedsl.ir.stmt import AttrStmt, BufferRealize, BufferStore, For, ForKind, SeqStmt, Stmt, no_op, seq
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import fresh_copy
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.dim_align import DIM_ALIGN
from tedsl.record import record

PREPARE, PREPARED = "_prepare_", "prepared_"  # in the names of the functions, and of the buffers
_MEMORY = (ACCESS_PTR, ADDRESS_OF, CALL_EXTERN, CALL_PACKED, CALL_PURE_EXTERN)  # calls that may read or write anything


@record(eq=False)
class _Producer:
    """The statement that fills `buffer`, the loops around it, and the realization of the buffer."""

    realize: BufferRealize
    stmt: Stmt
    loops: tuple[For, ...]
    reads: tuple[Buffer, ...] = field(default=())


def hoisted(func: PrimFunc, constants: Collection[Buffer]) -> tuple[PrimFunc, list[PrimFunc]]:
    """`func` without what it computes of `constants` alone, and the functions that compute that, number k into the buffer
    that `func` takes as prepared_k. `func` loses the constants that only these read; itself and none if there is nothing.
    """
    if any(isinstance(node, Call) and node.op in _MEMORY for node in post_order(func.body)):
        return func, []
    found = list(_producers(func, constants))
    if not found:
        return func, []
    body = _Removal(found)(func.body)
    used = {node.buffer for node in post_order(body) if isinstance(node, (BufferLoad, BufferStore))}
    params = [param for param in func.params if func.buffer_map.get(param) not in constants or func.buffer_map[param] in used]
    buffers = {param: func.buffer_map[param] for param in params if param in func.buffer_map}
    made = []
    for at, producer in enumerate(found):
        handle = Var(f"{PREPARED}{at}", HANDLE)
        params.append(handle)
        buffers[handle] = producer.realize.buffer
        made.append(_function(func, producer, handle, f"{func.name}{PREPARE}{at}"))
    return func.replace(params=tuple(params), buffer_map=buffers, body=body), made


def _function(func: PrimFunc, producer: _Producer, handle: Var, name: str) -> PrimFunc:
    """The function that fills the buffer of `handle`."""
    body, needed = producer.stmt, set(variables(producer.stmt))
    for loop in reversed(producer.loops):
        if loop.loop_var in needed:
            kind = loop.kind if loop.kind is ForKind.PARALLEL else ForKind.SERIAL
            body = For(loop.loop_var, loop.min, loop.extent, kind, body)
            needed |= {*variables(loop.min), *variables(loop.extent)}
    params = [param for param in func.params if func.buffer_map.get(param) in producer.reads]
    buffers = {param: func.buffer_map[param] for param in params} | {handle: producer.realize.buffer}
    return PrimFunc((*params, handle), fresh_copy(body), None, buffers, {**func.attrs, "global_symbol": name})


def _producers(func: PrimFunc, constants: Collection[Buffer]) -> Iterator[_Producer]:
    """The statements that fill a buffer from constants, where nothing else writes it."""
    stores: dict[Buffer, int] = {}
    for node in post_order(func.body):
        if isinstance(node, BufferStore):
            stores[node.buffer] = stores.get(node.buffer, 0) + 1
    for realize, stmt, loops in _places(func.body, (), ()):
        inside = list(post_order(stmt))
        written = {node.buffer for node in inside if isinstance(node, BufferStore)}
        reads = tuple(dict.fromkeys(node.buffer for node in inside if isinstance(node, BufferLoad)))
        target = next(iter(written)) if len(written) == 1 else None
        outer = next((one for one in realize if one.buffer is target), None)
        if outer is None or target is None or not reads or not all(buffer in constants for buffer in reads):
            continue
        whole = stores[target] == sum(isinstance(node, BufferStore) for node in inside)
        free = set(variables(stmt)) - {loop.loop_var for loop in inside if isinstance(loop, For)}
        outside = free - {loop.loop_var for loop in loops} - {buffer.data for buffer in (*reads, target)}
        constant = all(isinstance(extent, IntImm) for extent in target.shape) and not target.strides
        if whole and constant and target.scope() == "global" and not outside and \
                not any(isinstance(node, BufferRealize) for node in inside):
            yield _Producer(outer, stmt, loops, reads)


def _places(stmt: Stmt, realized: tuple[BufferRealize, ...], loops: tuple[For, ...]) \
        -> Iterator[tuple[tuple[BufferRealize, ...], Stmt, tuple[For, ...]]]:
    """The parts of sequences, with the realizations and loops around each; not those below conditions."""
    match stmt:
        case BufferRealize(body=body):
            yield from _places(body, (*realized, stmt), loops)
        case For(body=body, kind=ForKind.SERIAL | ForKind.PARALLEL):
            yield from _places(body, realized, (*loops, stmt))
        case AttrStmt(body=body):
            yield from _places(body, realized, loops)
        case SeqStmt(seq=parts):
            for part in parts:
                yield realized, part, loops
                yield from _places(part, realized, loops)


class _Removal(ScopedRewriter):
    """Removes producers, and the realizations of what they fill, with the strides that these ask for: arguments are compact."""

    def __init__(self, producers: Collection[_Producer]) -> None:
        self.realized = {producer.realize for producer in producers}
        self.buffers = {producer.realize.buffer for producer in producers}
        self.filled = {producer.stmt for producer in producers}

    def stmt(self, stmt: Stmt) -> Stmt:
        if stmt in self.filled:
            return no_op()
        if isinstance(stmt, BufferRealize) and stmt in self.realized:
            return self.stmt(stmt.body)
        if isinstance(stmt, AttrStmt) and stmt.attr_key == DIM_ALIGN and stmt.node in self.buffers:
            return self.stmt(stmt.body)
        if isinstance(stmt, SeqStmt):
            return seq(*[self.stmt(part) for part in stmt.seq if part not in self.filled])
        made: Stmt = self.descend(stmt)
        return made


def divided(func: PrimFunc, fixed: Collection[int]) -> list[PrimFunc]:
    """`func` and the functions that prepare what it computes of the parameters of these numbers."""
    whole, before = hoisted(func, [func.buffer_map[func.params[at]] for at in fixed])
    return [whole, *before]
