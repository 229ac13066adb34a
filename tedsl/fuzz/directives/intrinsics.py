"""tensorize, and the intrinsics that it uses: copies and sums of a constant number of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tedsl import te
from tedsl.fuzz.directives.sites import constant_extents, operation
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.builder import IRBuilder
from tedsl.ir.expr import Add, ProducerLoad, Reduce
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.state import StageState

if TYPE_CHECKING:
    from tedsl.fuzz.schedules import Scheduler


def _strided(*tensors: Any) -> dict[Any, Any]:
    """Buffers for regions whose elements need not lie side by side."""
    return {t: decl_buffer(t.shape, t.dtype, t.name, strides=[te.var(f"{t.name}_stride")], offset_factor=1) for t in tensors}


def copy_of(count: int, dtype: str) -> Any:
    """b[i] = a[i]."""
    a = te.placeholder((count,), dtype, name="a")
    b = te.compute((count,), lambda i: a[i], name="b")

    def body(ins: Any, outs: Any) -> Any:
        ib = IRBuilder()
        with ib.for_range(0, count, name="i") as i:
            ib.emit(outs[0].vstore([i], ins[0].vload([i])))
        return ib.get()

    return te.decl_tensor_intrin(b.op, body, name="copy", binds=_strided(a, b))


def sum_of(count: int, dtype: str) -> Any:
    """b[0] = a[0] + a[1] + ..."""
    a = te.placeholder((count,), dtype, name="a")
    k = te.reduce_axis((0, count), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="b")

    def part(ins: Any, outs: Any, begin: bool, add: bool) -> Any:
        ib = IRBuilder()
        if begin:
            ib.emit(outs[0].vstore([0], te.const(0, dtype)))
        if add:
            with ib.for_range(0, count, name="i") as i:
                ib.emit(outs[0].vstore([0], outs[0].vload([0]) + ins[0].vload([i])))
        return ib.get()

    def body(ins: Any, outs: Any) -> Any:
        return part(ins, outs, True, True), part(ins, outs, True, False), part(ins, outs, False, True)

    return te.decl_tensor_intrin(b.op, body, name="sum", binds=_strided(a, b))


def tensorize(s: Scheduler) -> str | None:
    """The innermost loop of a stage that copies, or sums up, elements that lie side by side."""
    name = s.pick_stage(lambda stage: _fitting(stage) is not None)
    if name is None:
        return None
    stage = s.state(name)
    fitting = _fitting(stage)
    at = len(stage.leaf_iter_vars) - 1
    return f"s[{name}].tensorize(loop({name}, {at}), intrinsics.{fitting}({_count(stage)}, '{stage.op.dtype_of(0)}'))"


def _count(stage: StageState) -> int:
    return constant_extents(stage).get(stage.leaf_iter_vars[-1], 0) if stage.leaf_iter_vars else 0


def _fitting(stage: StageState) -> str | None:
    """The intrinsic that does what the innermost loop does."""
    op = operation(stage)
    if type(op) is not ComputeOp or not 1 < _count(stage) <= 16 or op.num_outputs != 1:
        return None
    if any(stage.attr_of(one).tensor_intrin is not None for one in stage.leaf_iter_vars):
        return None
    loop, body = stage.leaf_iter_vars[-1], op.body[0]
    if stage.annotation_of(loop) is not None or any(guest.attach_ivar is loop for guest in stage.guests()):
        return None
    if isinstance(body, ProducerLoad) and not loop.is_reduction:
        return "copy_of"
    simple = isinstance(body, Reduce) and not body.init and isinstance(body.combiner.result[0], Add) \
        and isinstance(body.source[0], ProducerLoad)
    return "sum_of" if simple and loop.is_reduction else None
