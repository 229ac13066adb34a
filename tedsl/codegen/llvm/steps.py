"""Several steps of a register tile, or iterations of a short loop, in one iteration of a loop.

    for k in range(256):                                       for k in range(0, 256, 8):
        sums[0] += a[k] * b[16*k : 16*k + 8]                       sums[0] += a[k] * b[16*k : 16*k + 8]
        ...                                       →                ...
                                                                   sums[0] += a[k + 1] * b[16*k + 16 : 16*k + 24]
                                                                   ...

A step of 12 sums takes 20 instructions, beside which the counter, the comparison, and indices that fit no addressing mode took
five. With vectors of 512 bits sums take two cycles where others take one, so few steps are enough: more cost builds time, and
gain nothing. A loop that does little of the work has one, for the same reason.

Steps that have elements in common stay apart: LLVM would keep these in registers that the tile needs. A fence, which is no
instruction for one thread, keeps what a step reads behind the step before it: LLVM read the rows of three steps first, and
stored them on the stack where a tile of 28 sums leaves two registers. Multiply-adds still cross a fence. On x86 that, too, has
sums stored on the stack in two cases, where a step stays alone (`_crowds`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.forms import Index, Lanes, Ramp
from tedsl.codegen.llvm.short_loops import together
from tedsl.ir.build import as_int
from tedsl.ir.expr import Add, Broadcast, Cast, Expr, IntImm, Load, Mul, Sub, Var
from tedsl.ir.expr import Ramp as RampExpr
from tedsl.ir.stmt import For, ForKind, SeqStmt, Stmt, Store
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.index_arithmetic import widens, wraps
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.record import record

_LEAST = 5  # vectors of sums in a step: with fewer, iterations are short (short_loops.together)
_SUMS = 96  # of an iteration: eight steps of a tile of twelve vectors
_ENOUGH = 32  # sums with which an iteration on vectors of 512 bits ends: 16 cycles, in which processors start 80 instructions
_MOST_WIDE = 88  # sums of an iteration on such vectors: 90, five steps of a tile of 3 x 6, take 1.3 times as long as one by one
_MOST = 8
_REGISTERS = 16  # of x86 but for AVX-512
_SPARE = 9  # registers beside the sums, where each element of the rows is read for one sum


@record
class Element:
    """What a step reads: memory, how many lanes, where in the step 0, and how far apart it is in two steps."""

    memory: Var
    lanes: int
    index: Index | Ramp
    apart: int

    def in_step(self, step: Index) -> Index | Ramp:
        """Returns the index in a step."""
        moved = ix.scale(step, self.apart)
        if isinstance(self.index, Ramp):
            return Ramp(ix.add(self.index.base, moved), self.index.stride, self.index.lanes)
        return ix.add(self.index, moved)


@record
class Steps:
    """The number of steps in an iteration, and what one of them reads, by the expressions of the indices.

    fenced: what a step reads stays behind the step before it.
    """

    count: int = 1
    elements: tuple[tuple[Expr, Element], ...] = ()
    fenced: bool = True

    def places(self, out: Emitter, first: Index) -> Iterator[Index]:
        """Yields the places of the steps; `first` is that of the first one. The indices of each are known meanwhile."""
        for at in range(self.count):
            if at and self.fenced:
                out.line('fence syncscope("singlethread") acq_rel')
            step = ix.add(first, ix.constant(at))
            out.given = {expr: element.in_step(step) for expr, element in self.elements}
            yield step
        out.given = {}


def steps_of(out: Emitter, loop: For) -> Steps:
    """Returns the steps of an iteration of `loop`; one if it is neither a loop of a tile nor short."""
    extent = as_int(loop.extent)
    if loop.kind is not ForKind.SERIAL or extent is None or "cpu" not in out.target.keys or loop in out.function.rare:
        return Steps()
    count = together(loop, out.target.vector_bits)
    if count is not None and count > 1:
        return Steps(count, fenced=False)
    sums = _sums(loop.body)
    vectors = sum(-(-s.value.dtype.bits * s.value.dtype.lanes // out.target.vector_bits) for s in sums)
    wide = out.target.vector_bits >= 512
    most = _MOST_WIDE if wide else _SUMS
    counts = [count for count in range(2, min(_MOST, most // max(vectors, 1)) + 1) if extent % count == 0]
    if vectors < _LEAST or not counts or _crowds(out, sums) or any(_apart(s.index, loop.loop_var) != 0 for s in sums):
        return Steps()
    elements = _elements(out, loop, sums)
    apart = [count for count in counts if elements and not _share(list(elements.values()), count)]
    enough = _ENOUGH if wide else _SUMS
    count = next((count for count in apart if count * vectors >= enough), max(apart, default=1))
    return Steps(count, tuple(elements.items())) if elements and count > 1 else Steps()


def _sums(body: Stmt) -> list[Store]:
    """Returns the stores of `body`; none if there is anything else in it, or they store scalars."""
    parts = [part for part in statements(body) if not isinstance(part, SeqStmt)]
    sums = [part for part in parts if isinstance(part, Store) and part.value.dtype.is_vector]
    return sums if len(sums) == len(parts) else []


def _crowds(out: Emitter, sums: list[Store]) -> bool:
    """Tells whether several steps would have LLVM store sums on the stack. On x86 a multiply-add overwrites one of its
    operands: where vectors of two widths take one element, LLVM has the narrower one overwrite the element, and moves sums
    about. Where an element is read for one sum, and is no operand in memory, as with 512 bits, it reads many of them ahead.
    """
    target = out.target
    if target.architecture != "x86-64":
        return False
    bits = [s.value.dtype.bits * s.value.dtype.lanes for s in sums]
    if min(bits) <= target.vector_bits // 2 < max(bits):
        return True
    vectors = sum(-(-each // target.vector_bits) for each in bits)
    if target.vector_bits == 512 or vectors + _SPARE <= _REGISTERS:
        return False
    elements = {node for s in sums for node in post_order(s.value) if isinstance(node, Load) and node.dtype.lanes == 1}
    return len(elements) == vectors


def _elements(out: Emitter, loop: For, sums: list[Store]) -> dict[Expr, Element] | None:
    """Returns what a step reads and the next one does not, by the expressions of the indices; None if that is not known."""
    found: dict[Expr, Element] = {}
    out.scope.index[loop.loop_var] = ix.ZERO
    for load in {node: None for s in sums for node in of_kinds(s.value, Load) if isinstance(node, Load)}:
        apart = _apart(load.index, loop.loop_var)
        index = out.index(load.index) if apart else None
        if apart is None or isinstance(index, Lanes):
            return None
        if index is not None:
            found[load.index] = Element(load.buffer_var, load.dtype.lanes, index, apart)
    return found


def _share(elements: list[Element], count: int) -> bool:
    """Tells whether two of `count` steps read the same element."""
    offsets: dict[tuple[object, ...], set[int]] = {}
    listed = []
    for element in elements:
        base = element.index.base if isinstance(element.index, Ramp) else element.index
        near = offsets.setdefault((element.memory, element.lanes, frozenset(base.terms.items())), set())
        near.add(base.const)
        listed.append((near, base.const, element.apart))
    return any(offset + step * apart in near for near, offset, apart in listed for step in range(1, count))


def _apart(index: Expr, var: Var) -> int | None:
    """Returns by how much `index` grows with `var`; None if that is not always the same, or memory is read for it."""
    kind = type(index)
    if kind is IntImm:
        return 0
    if kind is Var:
        return int(index is var)
    match index:
        case Var():
            return int(index is var)
        case _ if wraps(index) or (isinstance(index, Cast) and not widens(index.value.dtype, index.dtype)):
            pass  # it may come round to where it was
        case Add(a=a, b=b) | Sub(a=a, b=b):
            one, other = _apart(a, var), _apart(b, var)
            sign = 1 if isinstance(index, Add) else -1
            return None if one is None or other is None else one + sign * other
        case Mul(a=a, b=IntImm(value=times)):
            one = _apart(a, var)
            return None if one is None else one * times
        case RampExpr(base=base):
            return _apart(base, var)
        case Broadcast(value=value) | Cast(value=value):
            return _apart(value, var)
    return None if any(node is var or isinstance(node, Load) for node in post_order(index)) else 0
