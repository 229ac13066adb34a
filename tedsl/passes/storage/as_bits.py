"""Memory that values of several dtypes of one width use one after the other: it holds their bits, as unsigned integers.

before:  allocate(S: float32, [64]) { allocate(T: int32, [64]) { S[i] = x;  ... = S[i];  T[i] = k;  ... = T[i] } }
after:   allocate(S: uint32, [64]) { S[i] = reinterpret(uint32, x);  ... = reinterpret(float32, S[i]);
           S[i] = reinterpret(uint32, k);  ... = reinterpret(int32, S[i]) }
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Call, Load, Var
from tedsl.ir.ops import REINTERPRET
from tedsl.ir.stmt import Allocate, AttrStmt, Stmt, Store
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order


def bits_of(of: DType) -> DType:
    """Returns the unsigned integers of the width of `of`."""
    return dtype(f"uint{of.bits}").with_lanes(of.lanes)


def have_bits_alike(a: DType, b: DType) -> bool:
    """Tells whether values of both can be kept as the same unsigned integers."""
    return a is b or (a.bits == b.bits and a.lanes == b.lanes == 1 and not any(d.is_bool or d.is_handle for d in (a, b)))


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
                bits = node.replace(buffer_var=self.memory[var], dtype=bits_of(node.dtype))
                return bits if bits.dtype is node.dtype else Call(node.dtype, REINTERPRET, (bits,))
            case Store(buffer_var=var, value=value) if var in self.memory:
                of = bits_of(value.dtype)
                kept = value if of is value.dtype else Call(of, REINTERPRET, (value,))
                return node.replace(buffer_var=self.memory[var], value=kept)
            case Allocate(buffer_var=var) if var in self.memory:
                return node.replace(buffer_var=self.memory[var], dtype=bits_of(node.dtype))
            case _:
                return node
