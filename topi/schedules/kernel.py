"""One loop nest of a schedule: the operation that determines its loops, and the one whose result it stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tedsl import te
from tedsl.target import Target
from topi.schedules.formulas import Formula, constant, extent_of, formula_of, product, variables_in

Whole = Callable[[Any], Any]  # gives an operation with inlined ones written into it


def whole_of(s: te.Schedule) -> Whole:
    """Gives the operations of `s` with those written into them that are inlined now."""
    normal = s.normalize()
    return lambda op: normal[op].op


def as_it_is(op: Any) -> Any:
    """Gives the operations of a schedule in which none is inlined."""
    return op


class RowBlocks(NamedTuple):
    """How kernels share rows: `chunk` of them are one task, which goes through them `block` by block."""

    chunk: int
    block: int


@dataclass(eq=False)
class Kernel:
    """A loop nest: `anchor` determines its loops (a reduction, a convolution); `tail` is the last element-wise operation
    computed in them, whose result is stored, or `anchor` itself.

    The operations between the two are inlined already, and so are cheap inputs of the anchor. A function of the table places
    the loops of both, `s[kernel.tail]` and `s[kernel.anchor]`, and of the stages `inside`, producers first, which are computed
    once for each row: for each index of the first `kept` dimensions of the tail. The kernels `before` make the first operand
    of a product for a block of its rows, in the loops of this one; these have `within` set, and no parallel loops. Kernels that
    share the blocks of their rows have `blocks`; `over_blocks` is the stage, the loop over them, and the loop over the rows of
    one if each is computed by itself, once there are loops.
    """

    schedule: te.Schedule
    anchor: Any
    tail: Any
    target: Target
    inside: tuple[Any, ...] = ()
    kept: int = 0
    before: tuple[Kernel, ...] = ()
    within: bool = False
    blocks: RowBlocks | None = None
    over_blocks: tuple[Any, Any, Any] | None = None
    changed: Any = None  # the record, where a schedule has changed what the anchor reads
    whole: Whole | None = None  # what `inlined` gives, made once for all kernels of a schedule
    formulas: dict[Any, Formula] = field(default_factory=dict)  # what `formula` has found
    known_lanes: dict[Any, int] = field(default_factory=dict)  # what `lanes` has found

    @property
    def record(self) -> Any:
        """The typed record of the anchor; None of scans, which have none."""
        return getattr(self.anchor, "info", None) if self.changed is None else self.changed

    @property
    def inlined(self) -> Whole:
        """Gives operations with inlined stages written into them: their formulas are the whole ones."""
        self.whole = self.whole or whole_of(self.schedule)
        return self.whole

    def body(self, op: Any) -> tuple[Any, ...]:
        """The formulas of `op` after inlining."""
        bodies: tuple[Any, ...] = self.inlined(op).body
        return bodies

    def read(self, tensor: Any) -> Any:
        """`tensor` as formulas read it: of an operation with what is inlined into it."""
        return self.inlined(tensor.op).output(tensor.value_index)

    def formula(self, op: Any) -> Formula:
        """What `op` reads and costs, after inlining."""
        if op not in self.formulas:
            self.formulas[op] = formula_of(self.body(op))
        return self.formulas[op]

    @property
    def fused(self) -> bool:
        """Whether the anchor is computed in the loops of another stage."""
        return self.anchor is not self.tail

    def lanes(self, op: Any) -> int:
        """How many elements of the widest dtype that `op` computes with fill a vector of the target.

        What an element-wise operation reads once for a row, such as the 64-bit place of one_hot, is one element for all lanes:
        it does not count. But rows of a table beyond the second cache arrive faster in vectors of half a line than in lines.
        """
        if op not in self.known_lanes:
            self.known_lanes[op] = self._lanes(op)
        return self.known_lanes[op]

    def _lanes(self, op: Any) -> int:
        loads, machine = self.formula(op).loads, self.target.machine
        if not op.reduce_axis:
            last = next((axis.var for axis in reversed(op.axis) if extent_of(axis) != 1), None)
            along = [load for load in loads if last is None or any(last in variables_in(index) for index in load.indices)]
            sizes = [product([constant(extent) for extent in load.producer.shape]) for load in along]
            if 2 * self.target.vector_bits <= 8 * machine.line or all(
                    size is not None and size * load.producer.dtype.bytes <= machine.l2.size
                    for size, load in zip(sizes, along, strict=True)):
                loads = along
        dtypes = [op.output(v).dtype for v in range(op.num_outputs)] + [load.producer.dtype for load in loads]
        return min(self.target.vector_lanes(dtype) for dtype in dtypes)
