"""The derivative of a read whose index is read from a tensor: a sum into the elements that were read.

    before:  B[i, j] = A[rows[i], j]          after:  A.grad = 0;  for i: for j: A.grad[rows[i], j] += head[i, j]

One statement after the other: equal indices add up without races. As where it is read, an index beyond the ends counts as the
nearest element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tedsl.autodiff.sweep import Path, Share, guarded
from tedsl.autodiff.terms import is_fixed
from tedsl.errors import TedslError
from tedsl.ir import build, builder
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, ProducerLoad, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import uses
from tedsl.lang.declare import define
from tedsl.lang.extern import extern
from tedsl.lang.operation import Operation, extent_of
from tedsl.lang.reads import has_load, loads_of
from tedsl.lang.tensor import Tensor, load
from tedsl.record import record


@record(eq=False)
class ScatterAddOp:
    """The record of sums into elements: out[p, *indices] += values[p, *loops], with `prefix` leading dimensions.

    loops: a variable for each dimension of `values` after those. indices: expressions of them, which may read tensors.
    """

    values: Tensor
    prefix: int
    loops: tuple[Var, ...]
    indices: tuple[Expr, ...]


def reads_its_index(share: Share) -> bool:
    """Whether an index of the read depends on data."""
    return any(map(has_load, share.load.indices))


def scattered(share: Share, prefix: Sequence[Var], extents: Sequence[Expr], loops: Sequence[IterVar], name: str) -> Tensor:
    """The tensor of `share` summed over `loops` into the elements that its load reads."""
    read = share.load.producer
    for axis in loops:
        if not is_fixed(axis, loops):
            raise TedslError(f"gradient: {name}: the range of {axis.name} depends on another axis, and the place that "
                             f"{shown(share.load)} reads on data", hint="write the range with constants, and a condition")
    values = _over(share.guarded, prefix, extents, loops, f"{name}.values")
    asked = tuple([branch for branch in share.path if not uses(branch.condition, prefix)])
    own = [Var(axis.name, axis.var.dtype) for axis in loops]
    indices = [_index(index, extent, asked, loops, own, f"{name}.place{d}")
               for d, (index, extent) in enumerate(zip(share.load.indices, read.shape))]
    return scatter_add(ScatterAddOp(values, len(prefix), tuple(own), tuple(indices)), read.shape, name)


def gathered(op: Operation, head: Tensor, inputs: Sequence[Tensor]) -> list[Tensor | None]:
    """The rule of a scatter-add: the derivative by its values, which is read where they were added."""
    info: ScatterAddOp = getattr(op, "info")  # noqa: B009 - an operation of any kind has none
    outer = head.ndim - op.output(0).ndim
    shape = (*head.shape[:outer], *info.values.shape)

    def element(*axes: Any) -> Expr:
        own = dict(zip(info.loops, axes[outer + info.prefix:]))
        return load(head, (*axes[:outer + info.prefix], *[substitute(index, own) for index in info.indices]))

    names = [*(f"p{d}" for d in range(outer + info.prefix)), *(var.name for var in info.loops)]
    derivative = Tensor(define(shape, element, names, f"{op.name}.gather"))
    return [derivative if tensor == info.values else None for tensor in inputs]


def _over(value: Expr, prefix: Sequence[Var], extents: Sequence[Expr], loops: Sequence[IterVar], name: str) -> Tensor:
    """The tensor of `value` for all values of `prefix` and of the loops."""
    def element(*axes: Any) -> Expr:
        return substitute(value, {**dict(zip(prefix, axes)), **_from_zero(loops, axes[len(prefix):])})

    names = [*(f"p{d}" for d in range(len(prefix))), *(axis.name for axis in loops)]
    return Tensor(define((*extents, *map(extent_of, loops)), element, names, name))


def _from_zero(loops: Sequence[IterVar], axes: Sequence[Var]) -> dict[Var, Expr]:
    """The axes of a formula by axes that begin at 0."""
    return {axis.var: build.add(axis.dom.min, var) if axis.dom is not None else var for axis, var in zip(loops, axes)}


def _index(index: Expr, extent: Expr, path: Path, loops: Sequence[IterVar], own: Sequence[Var], name: str) -> Expr:
    """An index as an expression of the loops `own`, kept inside of the dimension.

    What is read from a tensor under a condition becomes a tensor.
    """
    if not path and not has_load(index):
        return substitute(index, _from_zero(loops, own))
    if path and has_load(index):
        index = load(_over(guarded(path, index), (), (), loops, name), tuple(own))
    else:
        index = substitute(index, _from_zero(loops, own))
    return build.maximum(build.minimum(index, build.sub(build.cast(index.dtype, extent), 1)), 0)


def scatter_add(info: ScatterAddOp, shape: Sequence[Expr], name: str) -> Tensor:
    places = list(dict.fromkeys([read.producer for read in loads_of(info.indices)]))
    values, prefix = info.values, info.prefix

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = builder.create()
        source, *tables = [ib.buffer_ptr(buffer) for buffer in ins]
        target = ib.buffer_ptr(outs[0])
        with ExitStack() as nest:
            target[_nest(ib, nest, outs[0].shape, "c")] = build.const(0.0, values.dtype)
        with ExitStack() as nest:
            i = _nest(ib, nest, values.shape, "i")
            read = _FromBuffers(dict(zip(places, tables)))
            own = dict(zip(info.loops, i[prefix:]))
            at = (*i[:prefix], *[read(substitute(index, own)) for index in info.indices])
            target[at] = target[at] + source[i]
        return ib.get()

    made: Tensor = extern((*values.shape[:prefix], *shape), [values, *places], body, name=name, dtype=values.dtype,
                          tag="scatter_add", info=info)
    return made


def _nest(ib: builder.IRBuilder, nest: ExitStack, shape: Sequence[Expr], name: str) -> tuple[Var, ...]:
    return tuple([nest.enter_context(ib.for_range(0, extent, name=f"{name}{d}")) for d, extent in enumerate(shape)])


class _FromBuffers(Rewriter):
    """Replaces loads of tensors by loads of their buffers."""

    def __init__(self, tables: Mapping[Tensor, builder.BufferVar]) -> None:
        super().__init__()
        self.tables = tables

    def rewrite(self, node: Any) -> Any:
        return self.tables[node.producer][node.indices] if isinstance(node, ProducerLoad) else node
