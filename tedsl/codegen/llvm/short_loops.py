"""Short loops on vectors: how many iterations are written as one.

An iteration that does little is mostly its counter, its comparison and indices that fit no addressing mode. Written as several
they share these, and what indices have in common. LLVM's unroller would do so, too, but takes a tenth of the time of a small
build. It is there for loops in which it does more: those of few iterations, of which it leaves no loop, and goes on with the
loop around them, sums in registers, and those whose iterations no small number divides.
"""

from __future__ import annotations

from itertools import islice

from tedsl.ir.build import as_int
from tedsl.ir.expr import Broadcast, Call, Expr, IntImm, Load, Ramp
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import FMA
from tedsl.ir.stmt import AttrStmt, For, ForKind, SeqStmt, Store
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.visitor import post_order, statements

LONG = 80  # instructions of an iteration, of which LLVM's unroller makes few copies or none, and takes 1-2 ms to find that out
CALLED = 16  # the same of a call, of a mathematical function
_ENOUGH = 32  # instructions of iterations that are written as one: measured, LLVM's unroller gains nothing by more
_FEW = 128  # instructions of all iterations of a loop of which LLVM's unroller leaves none
_REGISTERS = 4  # that an iteration stores, beside which its counter is little
_WIDE = 512  # bits of a register, of which processors start few instructions a cycle: those of a counter run beside sums
_COUNTS = {1: (4, 5, 6, 3, 7, 2), 2: (2, 3), 3: (2, 3)}  # of iterations, best first, by the registers that one of them stores


def has_short_loops(func: PrimFunc, register: int) -> bool:
    """Tells whether there is a short loop that is left to LLVM's unroller.

    register: the bits of a vector register.
    """
    return any(isinstance(s, For) and together(s, register) is None for s in of_kinds(func.body, For))


def together(loop: For, register: int) -> int | None:
    """Returns how many iterations of `loop` are written as one: 1 if it is not short; None if LLVM's unroller is to see to it.

    register: the bits of a vector register.
    """
    if loop.kind is not ForKind.SERIAL or not isinstance(loop.extent, IntImm) or loop.extent.value < 4:
        return 1
    inside = list(islice(statements(loop.body), 5))
    if len(inside) == 5 or not all(isinstance(i, (SeqStmt, Store, AttrStmt)) for i in inside):
        return 1
    stores = [i for i in inside if isinstance(i, Store) and i.value.dtype.is_vector]
    vectors = [[n for n in post_order(s.value) if isinstance(n, Expr) and n.dtype.is_vector] for s in stores]
    work = sum(_instructions(store, of, register) for store, of in zip(stores, vectors))
    if not 0 < work < LONG:
        return 1
    is_sum = any(isinstance(n, Load) and n.buffer_var is stores[0].buffer_var for n in vectors[0])
    if len(stores) > 1 or (is_sum and register < _WIDE):
        return None
    extent, of = loop.extent.value, stores[0].value.dtype
    registers = -(-of.bits * of.lanes // register)
    work = max(work, registers * (1 + sum(not isinstance(n, (Broadcast, Ramp)) for n in vectors[0])))  # indices and masks, too
    if registers >= _REGISTERS and work <= _ENOUGH:
        return 1
    if is_sum or extent * work < _FEW:
        return None
    return next((n for n in _COUNTS.get(registers, ()) if extent % n == 0 and n * work <= _ENOUGH), None)


def _instructions(store: Store, vectors: list[Expr], register: int) -> int:
    """Estimates how many instructions on vectors `store` takes; LONG for a gather, or a copy of several registers: memory
    decides what these take.

    vectors: those in what it stores.
    """
    values = [n for n in vectors if not n.dtype.is_integer]
    registers = max(-(-n.dtype.bits * n.dtype.lanes // register) for n in (store.value, *values))
    if isinstance(store.value, Load) and registers > 1 and not contains(store.value.index, Load):
        return LONG
    if any(isinstance(n, (Load, Store)) and isinstance(n.index, Ramp) and as_int(n.index.stride) not in (0, 1)
           for n in (store, *values)):
        return LONG
    called = sum(isinstance(n, Call) and n.op is not FMA for n in values)
    return registers * (1 + called * (CALLED - 1) + sum(not isinstance(n, Broadcast) for n in values))
