"""Give everything of one dtype another of as many bits: memory, variables, parameters, values.

before:  C[i] = reinterpret(bfloat16, (reinterpret(uint16, A[i]) + 1))      A and C of bfloat16
after:   C[i] = A[i] + 1                                                     A and C of uint16

A `tir.reinterpret` between the two dtypes is then its operand. No operation may be left that means another thing on the new
dtype: those that `tir.reinterpret` does not mark keep their operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr, FloatImm, Let, Load, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import FrozenDict
from tedsl.ir.ops import REINTERPRET
from tedsl.ir.stmt import Allocate, BufferRealize, BufferStore, LetStmt
from tedsl.ir.types import PointerType
from tedsl.ir.walk.substitute import Substitution
from tedsl.ir.walk.visitor import post_order, variables

New = Callable[[DType], DType | None]  # of the dtype of an element: the one that takes its place, None for those that stay


def retyped(func: PrimFunc, new: New, constant: Callable[[FloatImm], Expr]) -> PrimFunc:
    """Returns `func` with the dtypes that `new` gives; `constant` makes the value of a constant."""
    retype = _Retyping(_replaced(func, new), new, constant)
    body = retype(func.body)
    buffers = {param: retype.buffer(buffer) for param, buffer in func.buffer_map.items()}
    params = tuple(retype.mapped(param) for param in func.params)
    if body is func.body and params == func.params and all(buffers[p] is func.buffer_map[p] for p in buffers):
        return func
    return func.replace(params=params, body=body, buffer_map=FrozenDict(buffers))


def _replaced(func: PrimFunc, new: New) -> dict[Var, Var]:
    """Returns the variables of `func` that have a new dtype or point to memory of one, with those that replace them."""
    found = dict.fromkeys((*func.params, *(buffer.data for buffer in func.buffers), *variables(func.body)))
    for node in post_order(func.body):
        match node:
            case LetStmt(var=var) | Let(var=var) | Allocate(buffer_var=var) | BufferRealize(buffer=Buffer(data=var)):
                found.setdefault(var)
    return {var: made for var in found if (made := _variable(var, new)) is not None}


def _variable(var: Var, new: New) -> Var | None:
    annotation = var.type_annotation
    if not isinstance(annotation, PointerType):
        of = new(var.dtype.element)
        return None if of is None else Var(var.name, of.with_lanes(var.dtype.lanes))
    old = annotation.element_type.dtype
    of = new(old.element)
    return None if of is None else pointer_var(var.name, of.with_lanes(old.lanes), annotation.storage_scope)


class _Retyping(Substitution):
    """Changes dtypes; `mapping` has the variables."""

    def __init__(self, replaced: dict[Var, Var], new: New, constant: Callable[[FloatImm], Expr]) -> None:
        super().__init__(replaced)
        self.new, self.constant = new, constant

    def of(self, old: DType) -> DType:
        """The new dtype of values of dtype `old`, which it is where there is none."""
        made = self.new(old.element)
        return old if made is None else made.with_lanes(old.lanes)

    def mapped(self, var: Var) -> Var:
        replaced = self.mapping.get(var, var)
        assert isinstance(replaced, Var)
        return replaced

    def buffer(self, old: Buffer) -> Buffer:
        if old.data not in self.mapping:
            return super().buffer(old)
        if old not in self.buffers:
            self.buffers[old] = old.map_children(self).replace(data=self.mapped(old.data), dtype=self.of(old.dtype))
        return self.buffers[old]

    def rebuilt(self, node: Any) -> Any:
        if not isinstance(node, BufferStore) or self.buffer(node.buffer) is node.buffer:
            return super().rebuilt(node)
        done = self._done
        return node.replace(buffer=self.buffer(node.buffer), value=done[node.value],  # together: a store fits its buffer
                            indices=tuple(done[index] for index in node.indices))

    def rewrite(self, node: Any) -> Any:
        match node:
            case FloatImm() if self.of(node.dtype) is not node.dtype:
                return self.constant(node)
            case Call(op=op, args=(value, *_)) if op is REINTERPRET and self.of(node.dtype) is self.of(value.dtype):
                return value
            case Load() | Call() if self.of(node.dtype) is not node.dtype:
                return super().rewrite(node.replace(dtype=self.of(node.dtype)))
            case Allocate(buffer_var=var) if var in self.mapping:
                return node.replace(buffer_var=self.mapping[var], dtype=self.of(node.dtype))
            case LetStmt(var=var) | Let(var=var) if var in self.mapping:
                return node.replace(var=self.mapping[var])
            case _:
                return super().rewrite(node)
