"""Memory that values of several dtypes use one after the other: it holds their bits, as unsigned integers.

before:  allocate(S: float32, [64]) { allocate(T: int32, [64]) { S[i] = x;  ... = S[i];  T[i] = k;  ... = T[i] } }
after:   allocate(S: uint32, [64]) { S[i] = reinterpret(uint32, x);  ... = reinterpret(float32, S[i]);
           S[i] = reinterpret(uint32, k);  ... = reinterpret(int32, S[i]) }

The integers have the width of the narrowest dtype. A wider value is several of them, a vector: with T of int8, S[i] = x becomes
S[ramp(i*4, 1, 4)] = reinterpret(uint8x4, x). So accesses must be to neighbouring elements, without a predicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.ir import build
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Call, Expr, IntImm, Load, Ramp, Var
from tedsl.ir.ops import REINTERPRET
from tedsl.ir.stmt import Allocate, AttrStmt, Stmt, Store
from tedsl.ir.types import PointerType
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order


def bits_of(width: int) -> DType:
    """Returns the unsigned integers of `width` bits."""
    return dtype(f"uint{width}")


def has_bits(of: DType) -> bool:
    """Tells whether values of a dtype can be kept as unsigned integers."""
    return of.lanes == 1 and of.bits in (8, 16, 32, 64) and not of.is_bool and not of.is_handle


def only_loaded_and_stored(root: Stmt) -> frozenset[Var]:
    """Returns the pointers to memory that `root` allocates and of which it does nothing but load and store elements."""
    made, elsewhere = set(), set()
    for node in post_order(root):
        match node:
            case Allocate(buffer_var=var):
                made.add(var)
            case Var() | AttrStmt(node=Var()):
                elsewhere.add(node if isinstance(node, Var) else node.node)
    return frozenset(made - elsewhere)


def accessed_side_by_side(root: Stmt) -> frozenset[Var]:
    """Returns the pointers to memory of which each access of `root` is to one element, or to neighbours without a predicate."""
    accessed, scattered = set(), set()
    for node in post_order(root):
        if isinstance(node, (Load, Store)):
            accessed.add(node.buffer_var)
            if node.predicate is not None or not _is_side_by_side(node.index):
                scattered.add(node.buffer_var)
    return frozenset(accessed - scattered)


def _is_side_by_side(index: Expr) -> bool:
    return index.dtype.lanes == 1 or (isinstance(index, Ramp) and build.as_int(index.stride) == 1)


def as_bits(root: Stmt, memory: Mapping[Var, Var]) -> Stmt:
    """Returns `root` with the accesses to each pointer of `memory` made those to the pointer to bits that it is mapped to."""
    made: Stmt = _AsBits(memory)(root)
    return made


class _AsBits(Rewriter):
    def __init__(self, memory: Mapping[Var, Var]) -> None:
        super().__init__()
        self.memory = memory

    def rewrite(self, node: Any) -> Any:
        match node:
            case Load(buffer_var=var) if var in self.memory:
                of, index = self.place(var, node.dtype, node.index)
                bits = node.replace(buffer_var=self.memory[var], dtype=of, index=index)
                return bits if of is node.dtype else Call(node.dtype, REINTERPRET, (bits,))
            case Store(buffer_var=var, value=value) if var in self.memory:
                of, index = self.place(var, value.dtype, node.index)
                kept = value if of is value.dtype else Call(of, REINTERPRET, (value,))
                return node.replace(buffer_var=self.memory[var], value=kept, index=index)
            case Allocate(buffer_var=var, dtype=of) if var in self.memory:
                element = element_of(self.memory[var])
                extents = (build.mul(node.extents[0], of.bits // element.bits), *node.extents[1:])
                return node.replace(buffer_var=self.memory[var], dtype=element, extents=extents)
            case _:
                return node

    def place(self, memory: Var, of: DType, index: Expr) -> tuple[DType, Expr]:
        """Returns the dtype and the index of the bits that stand for the elements of `of` at `index`."""
        bits = element_of(self.memory[memory])
        parts = of.bits // bits.bits
        if parts == 1:
            return bits.with_lanes(of.lanes), index
        first = index.base if isinstance(index, Ramp) else index
        lanes = of.lanes * parts
        return bits.with_lanes(lanes), Ramp(build.mul(first, parts), IntImm(first.dtype, 1), lanes)


def element_of(memory: Var) -> DType:
    """Returns the dtype of what a pointer points to."""
    annotation = memory.type_annotation
    assert isinstance(annotation, PointerType)
    return annotation.element_type.dtype
