"""Lowering of te.extern: its statements over the real memory of the tensors that it reads and writes.

    B = te.extern((n,), [A], ...)        reads the whole of A, computes the whole of B, wherever it stands
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Expr, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.stmt import EXTERN_SCOPE, AttrStmt, BufferStore, Stmt
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.substitute import Substitution, bind_once, fresh_copy, only_read
from tedsl.lang.extern import ExternOp
from tedsl.lang.inline import Inliner
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.checks import Requirement
from tedsl.lower.plan import Computation, Read
from tedsl.lower.site import Site
from tedsl.lower.threads.written_memory import check_launches
from tedsl.lower.written.function import checked_accesses
from tedsl.schedule.causes import said as said_of
from tedsl.schedule.state import AttachType, StageState


def extern_computation(stage: StageState, inliner: Inliner | None, domains: Mapping[IterVar, Range], accesses: Accesses) \
        -> tuple[Computation, tuple[Requirement, ...]]:
    """Returns the computation of a te.extern, which reads its inputs whole, and no requirements."""
    op = stage.op
    assert isinstance(op, ExternOp)
    for tensor, placeholder in zip(op.inputs, op.input_placeholders):
        _must_be_plain(op, placeholder, stage.schedule.stage_map[tensor.op])
    for tensor in op.stored_inputs:
        _must_be_alone(op, tensor, stage)
    reads = tuple(Read(tensor, (None,) * tensor.ndim) for tensor in op.input_tensors)
    return Computation(op, (), reads, accesses=accesses), ()


def _must_be_plain(op: ExternOp, placeholder: Buffer, stage: StageState) -> None:
    """Refuses inputs with storage_align or rolling_buffer: the statements were written before these change the strides."""
    said = stage.storage
    if said.alignments or said.rolling:
        what = "has storage_align" if said.alignments else "is in a rolling buffer"
        how = f"its statements address {stage.name} as compact memory" if not placeholder.strides else \
            f"its buffer {placeholder.name} takes the strides of arguments, not those of stages"
        raise LoweringError(f"{op.name} is made by te.extern: {how}, and {stage.name} {what}",
                            hint=f"have {op.name} use a copy: s.cache_read({stage.tensor_written}, 'global', [{op.name}])",
                            about=said_of(stage, "storage"))


def _must_be_alone(op: ExternOp, tensor: Tensor, stage: StageState) -> None:
    """Refuses statements that change `tensor`, an input, if others could see it before or after the change."""
    what = f"the statements of {op.name} store to the input {tensor.name}"
    readers = [other.name for other in stage.schedule.stages if other.op is not op and tensor in other.op.input_tensors]
    if not isinstance(tensor.op, PlaceholderOp):
        raise LoweringError(f"{what}, which is computed here", hint="an argument of the function may be changed: give it to "
                            f"{op.name} itself, or store to an output")
    if readers:
        raise LoweringError(f"{what}, and {', '.join(readers)} read{'s' * (len(readers) == 1)} it too",
                            hint="store to an output: copy the input there first, or let `shape` name one more output")
    if stage.attach_type != AttachType.ROOT:
        raise LoweringError(f"{what}, and are computed inside loops, again in each iteration",
                            hint=f"compute them once: {stage.written}.compute_root()")


def extern_statements(site: Site) -> Stmt:
    """The statements over the real buffers. Their loads and stores are bounds-checked as those of any handwritten function;
    accesses that calls make through pointers are not.
    """
    plan, op, buffers = site.plan, site.plan.op, site.buffers
    assert isinstance(op, ExternOp)
    inputs = [site.buffer_of(tensor) for tensor in op.inputs]
    statements = op.body if plan.stage.statements is None else plan.stage.statements
    check_launches(plan, statements, buffers)
    binding = _Binding(op.name)
    for (_, placeholder), buffer in zip(op.bindings(), (*inputs, *buffers)):
        binding.bind(placeholder, buffer)
    body = fresh_copy(bind_once(binding.applied(statements)))  # several operations may share statements
    changed = op.stored_inputs
    body = only_read(body, {buffer.data for tensor, buffer in zip(op.inputs, inputs) if tensor not in changed})
    body = checked_accesses(body, (*dict.fromkeys((*inputs, *buffers)),), accesses=plan.accesses)
    return AttrStmt(build.const(0, "int32"), EXTERN_SCOPE, build.const(0, "int32"), body)


class _Binding:
    """Maps the variables in the declarations of placeholder buffers to their values in the real buffers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[Var, Expr] = {}
        self.buffers: dict[Buffer, Buffer] = {}

    def bind(self, placeholder: Buffer, actual: Buffer) -> None:
        """Bind `placeholder` to `actual`, of the same shape: pointer, shape, strides and offset."""
        self.buffers[placeholder] = actual
        self.value(placeholder, "data", placeholder.data, actual.data)
        for dim, (declared, real) in enumerate(zip(placeholder.shape, actual.shape)):
            self.value(placeholder, f"dimension {dim}", declared, real)
        self.value(placeholder, "elem_offset", placeholder.elem_offset, actual.elem_offset)
        if placeholder.strides:
            for dim, (declared, real) in enumerate(zip(placeholder.strides, strides_of(actual))):
                self.value(placeholder, f"stride {dim}", declared, real)
        elif not is_compact(actual):
            raise LoweringError(f"{self.name} uses {placeholder.name} as compact memory, and the buffer {actual.name} has the "
                                f"strides {list(actual.strides)}",
                                hint="declare strides: te.extern(..., in_buffers=[tir.decl_buffer(shape, dtype, "
                                     "strides=[te.var('s0'), ...])])")

    def value(self, placeholder: Buffer, what: str, declared: Expr, real: Expr) -> None:
        """Binds `declared` to `real` if it is a variable; LoweringError if it was bound to another value, or is another
        expression.
        """
        if isinstance(declared, Var) and declared is not real:
            known = self.values.setdefault(declared, real)
            if structural_equal(known, real, map_free_vars=False):
                return
            problem = f"is {shown(known)} in another buffer"
        elif structural_equal(declared, real, map_free_vars=False) or build.as_int(declared) == build.as_int(real) is not None:
            return
        else:
            problem = f"is declared as {shown(declared)}"
        raise LoweringError(f"{self.name}: {what} of the buffer {placeholder.name} {problem}, and the memory has {shown(real)}",
                            hint="declare it as a te.var, to get whatever the memory has")

    def applied(self, body: Stmt) -> Stmt:
        return _Bound(self.values, self.buffers)(body)  # type: ignore[no-any-return]


class _Bound(Substitution):
    """Replaces variables and buffers by those that they are bound to."""

    def __init__(self, values: dict[Var, Expr], buffers: dict[Buffer, Buffer]) -> None:
        super().__init__(values)
        self.buffers.update(buffers)

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer in self.buffers:
            return node.replace(buffer=self.buffers[node.buffer])
        return super().rewrite(node)


def strides_of(buffer: Buffer) -> tuple[Expr, ...]:
    """The strides of a buffer in elements; those of compact row-major memory if it has none."""
    if buffer.strides:
        return buffer.strides
    strides: list[Expr] = []
    step: Expr = build.const(1, "int32")
    for extent in reversed(buffer.shape):
        strides.append(step)
        step = build.product_of_extents(step, extent)
    return tuple(reversed(strides))


def is_compact(buffer: Buffer) -> bool:
    """Whether the elements are known to follow one another in row-major order."""
    compact = strides_of(Buffer(buffer.data, buffer.dtype, buffer.shape, (), buffer.elem_offset, buffer.name))
    return all(structural_equal(a, b, map_free_vars=False) or build.as_int(extent) == 1
               for a, b, extent in zip(strides_of(buffer), compact, buffer.shape))
