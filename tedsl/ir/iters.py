"""Ranges and iteration variables: the axes of formulas and the loops of schedules."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

from tedsl.display.facts import facts_page
from tedsl.ir import build
from tedsl.ir.dtype import INT32, DType
from tedsl.ir.expr import Expr, Var
from tedsl.ir.node import Node, node, set_field
from tedsl.ir.operators import ExprOperators


@node
class Range(Node):
    """The integers min, ..., min + extent - 1. Users write `Range(begin, end)` or `Range(extent)`; the compiler uses
    `Range.from_min_extent`."""

    min: Expr
    extent: Expr | None = None
    children: ClassVar[tuple[str, ...]] = ("min", "extent")

    def __post_init__(self) -> None:
        begin, end = build.as_expr(self.min), self.extent
        if end is None:
            set_field(self, "min", build.const(0, begin.dtype))
            set_field(self, "extent", begin)
        else:
            set_field(self, "min", begin)
            set_field(self, "extent", build.sub(end, begin))

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any) -> Range:
        """The range of `extent` integers that starts at `min_value`."""
        span = object.__new__(Range)
        set_field(span, "min", build.as_expr(min_value))
        set_field(span, "extent", build.as_expr(extent))
        span.note_contents()
        return span

    def replace(self, **changed: Any) -> Range:
        return Range.from_min_extent(changed.get("min", self.min), changed.get("extent", self.extent))


class IterType(IntEnum):
    """The kind of an axis (data parallel, reduction, thread, ...), with TVM's numbers."""

    DATA_PAR = 0
    THREAD_INDEX = 1
    COMM_REDUCE = 2
    ORDERED = 3
    DIM_INFO = 4  # called Opaque in TVM
    UNROLLED = 5
    VECTORIZED = 6
    PARALLELIZED = 7
    TENSORIZED = 8


@node
class IterVar(ExprOperators, Node):
    """An axis: a variable, its range (None: not known yet) and its kind. Usable as an expression, the variable."""

    dom: Range | None
    var: Var
    iter_type: IterType = IterType.DATA_PAR
    thread_tag: str = ""
    children: ClassVar[tuple[str, ...]] = ("dom",)
    binders: ClassVar[tuple[str, ...]] = ("var",)

    DataPar: ClassVar[int] = 0
    ThreadIndex: ClassVar[int] = 1
    CommReduce: ClassVar[int] = 2
    Ordered: ClassVar[int] = 3
    DimInfo: ClassVar[int] = 4
    Unrolled: ClassVar[int] = 5
    Vectorized: ClassVar[int] = 6
    Parallelized: ClassVar[int] = 7
    Tensorized: ClassVar[int] = 8

    def adopt(self) -> None:
        """Make a Range of a pair (begin, end), and a variable of a name."""
        dom: Any = self.dom
        given: Any = self.var
        if isinstance(given, str):
            set_field(self, "var", Var(given, INT32))
        if isinstance(dom, (tuple, list)) and len(dom) == 2:
            set_field(self, "dom", Range(*dom))

    @property
    def name(self) -> str:
        return self.var.name

    @property
    def dtype(self) -> DType:
        return self.var.dtype

    def as_expr(self) -> Var:
        """The variable, which stands for the axis in expressions."""
        return self.var

    @property
    def is_reduction(self) -> bool:
        return self.iter_type == IterType.COMM_REDUCE

    def _repr_html_(self) -> str:
        dom = "" if self.dom is None else f"{self.dom.min!r} to {self.dom.min + self.dom.extent!r}, exclusive"
        return facts_page(f"Axis {self.name}", {"range": dom, "dtype": self.dtype, "thread": self.thread_tag,
                                                "kind": IterType(self.iter_type).name.lower().replace("_", " ")})
