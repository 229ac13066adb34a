"""pad_sum: a sum runs over more terms, which are zeros in copies of what it reads."""

from __future__ import annotations

import math
from typing import Any

from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.expr import Add, Cast, Expr, FloatImm, IntImm, Mul, ProducerLoad, Reduce, Sub, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import shown
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import ComputeOp, extent_of, note_axis
from tedsl.lang.reads import is_ragged, loads_of
from tedsl.lang.tensor import Tensor, load
from tedsl.lang.zeros.borders import conditions_of
from tedsl.lang.zeros.terms import is_sum
from tedsl.schedule.group import join_group
from tedsl.schedule.primitives.marks import drop_marks
from tedsl.schedule.primitives.reductions.checks import must_be_rewritable, must_be_tensor
from tedsl.schedule.primitives.split import positive_count
from tedsl.schedule.state import StageState, describe, show

Places = dict[Tensor, int]  # the dimension of each tensor along which it is summed


def pad_sum(stage: StageState, tensor: Any, loop: Any, multiple: Any) -> list[Tensor]:
    """Rounds the extent of a reduction axis of a sum up to a multiple. Returns the copies that have zeros there.

        C[i] = sum(A[i, k] * W[k], k < 6)   → pad_sum(C, k, 4) →
        A.padded[i, k] = A[i, k] if k < 6 else 0;  W.padded[k] = W[k] if k < 6 else 0
        C[i] = sum(A.padded[i, k] * W.padded[k], k < 8)

    Loops that axes were split or fused into are given up: the stage begins with the axes of its formula.
    """
    directive = f"pad_sum({show(tensor)}, {show(loop)}, {show(multiple)})"
    op, whole = _check(stage, tensor, loop, directive)
    places = _places(stage, op, whole, loop, directive)
    extent, count = extent_of(loop), _known_count(stage, multiple, loop, directive)
    rounded = build.mul(build.floordiv(build.add(extent, count - 1), count), count)
    if structural_equal(rounded, extent):
        raise stage.refuse(directive, f"{loop.name} has {shown(extent)} iterations, a multiple of {count} already",
                           hint="leave pad_sum out")
    copies = {one: _copy_of(stage, one, at, rounded) for one, at in places.items()}
    own = note_axis(IterVar(Range.from_min_extent(build.const(0, extent.dtype), rounded), copy_var(loop.var),
                            IterType.COMM_REDUCE))
    axes = tuple([own if axis is loop else axis for axis in op.reduce_axis])
    body = op.reading({old: new.output(0) for old, new in copies.items()}).body[0]
    assert isinstance(body, Reduce)
    inside = body.replace(source=tuple([substitute(value, {loop.var: own.var}) for value in body.source]), axis=axes,
                          condition=substitute(body.condition, {loop.var: own.var}))
    drop_marks(stage, stage.leaf_iter_vars, directive)
    final = op.replace(body=(inside,), reduce_axis=axes)
    stage.schedule.rewire(stage.schedule.rewired({stage: final}))
    for old, copy in copies.items():
        source = stage.schedule.stage_map[old.op]
        join_group(stage.schedule.add_stage(copy, stage.schedule.position(source) + 1), source)
    gone = [one for one in stage.all_iter_vars if one not in (*op.axis, *axes)]
    stage.restart(final)
    for one in gone:
        stage.retire(one, "belongs to the old operation, which pad_sum replaced")
    return [copy.output(0) for copy in copies.values()]


def _known_count(stage: StageState, multiple: Any, loop: IterVar, directive: str) -> int:
    """The multiple as a number, with which the extent of `loop` still fits its dtype."""
    known = build.as_int(positive_count(stage, directive, "multiple", multiple, loop))
    if known is None:
        raise stage.refuse(directive, f"the multiple is a number, got {describe(multiple)}", hint="for example multiple=4")
    extent, most = build.as_int(extent_of(loop)), loop.dtype.max_value
    if extent is not None and most is not None and -(-extent // known) * known > most:
        raise stage.refuse(directive, f"the multiple of {known} above {extent} does not fit the dtype {loop.dtype} of "
                           f"{loop.name}", hint="use a smaller number, or an int64 shape")
    return known


def _check(stage: StageState, tensor: Any, loop: Any, directive: str) -> tuple[ComputeOp, Reduce]:
    must_be_tensor(stage, tensor, directive)
    op = stage.op
    whole = op.reduction if type(op) is ComputeOp else None
    if type(op) is not ComputeOp or whole is None or not is_sum(whole):
        raise stage.refuse(directive, f"{stage.name} is not a sum", hint="use it on a stage made by te.sum")
    if any(loop is axis and loop.var in variables(whole.condition) for axis in op.reduce_axis):
        raise stage.refuse(directive, f"the where= of the sum reads {loop.name}", hint="use te.if_then_else in what is added")
    if not any(axis is loop for axis in op.reduce_axis):
        names = ", ".join(axis.name for axis in op.reduce_axis)
        raise stage.refuse(directive, f"{loop.name if isinstance(loop, IterVar) else describe(loop)} is no axis that the "
                           f"formula of {stage.name} sums over", hint=f"choose one of {names}, and split it afterwards")
    if is_ragged(op):
        raise stage.refuse(directive, f"the sum of {stage.name} has extents that differ from element to element",
                           hint="leave pad_sum out")
    must_be_rewritable(stage, directive, "call pad_sum first, then annotate the loops")
    return op, whole


def _places(stage: StageState, op: ComputeOp, whole: Reduce, loop: IterVar, directive: str) -> Places:
    """Where each tensor is summed along `loop`: refuses sums of terms that zeros beyond its end would not make zero."""
    places: Places = {}
    extent = extent_of(loop)
    for one in loads_of(whole.source):
        at = [number for number, index in enumerate(one.indices) if loop.var in variables(index)]
        if not at:
            continue
        first = at[0]
        plain = len(at) == 1 and one.indices[first] is loop.var and places.setdefault(one.producer, first) == first
        if build.as_int(_start(loop)) != 0:
            raise stage.refuse(directive, f"{loop.name} begins at {shown(_start(loop))}", hint="pad an axis that begins at 0")
        if not plain or not structural_equal(one.producer.shape[first], extent):
            raise stage.refuse(directive, f"{stage.name} reads {shown(one)}: {loop.name} is not the index of a dimension that "
                               "ends where it does", hint="pad an axis over a whole dimension of all that is read with it")
    others = [one for one in loads_of(whole.source) if one.producer not in places]
    inside = build.less(loop.var, extent)
    if whole.source[0].dtype.is_float:
        zero = _vanishes(whole.source[0], places)
    else:
        zero = any(structural_equal(one, inside) for one in conditions_of(_Padded(places, inside).rewritten(whole.source[0])))
    if not zero:
        what = shown(others[0]) if others else shown(whole.source[0])
        raise stage.refuse(directive, f"what {stage.name} adds is not known to be zero where all that is read along "
                           f"{loop.name} is, because of {what}", hint="it takes sums of products of finite numbers and of "
                           f"tensors that are read along {loop.name}")
    return places


def _vanishes(value: Expr, places: Places) -> bool:
    """Whether a float is zero where the elements of `places` are: no factor is infinite there, which times zero is NaN."""
    match value:
        case Mul(a, b):
            zero = [_vanishes(one, places) for one in (a, b)]
            return all(zero) or (any(zero) and any(_is_finite(one) for one in (a, b)))
        case Add(a, b) | Sub(a, b):
            return _vanishes(a, places) and _vanishes(b, places)
        case Cast():
            return _vanishes(value.value, places)
    return isinstance(value, ProducerLoad) and value.producer in places


def _is_finite(value: Expr) -> bool:
    return isinstance(value, IntImm) or (isinstance(value, FloatImm) and math.isfinite(value.value))


def _start(axis: IterVar) -> Expr:
    assert axis.dom is not None
    return axis.dom.min


class _Padded(Rewriter):
    """Writes loads as zeros beyond the end of a loop."""

    def __init__(self, places: Places, inside: Expr) -> None:
        super().__init__()
        self.places, self.inside = places, inside

    def rewritten(self, value: Expr) -> Expr:
        result: Expr = self(value)
        return result

    def rewrite(self, node: Any) -> Any:
        if type(node) is ProducerLoad and node.producer in self.places:
            return build.if_then_else(self.inside, node, build.const(0, node.dtype))
        return node


def _copy_of(stage: StageState, tensor: Tensor, at: int, rounded: Expr) -> ComputeOp:
    """The operation that copies `tensor`, with zeros up to the extent `rounded` of its dimension number `at`."""
    shape = [rounded if number == at else extent for number, extent in enumerate(tensor.shape)]
    axes = Array([note_axis(IterVar(Range.from_min_extent(build.const(0, n.dtype), n), Var(f"ax{number}", n.dtype)))
                  for number, n in enumerate(shape)])
    inside = build.less(axes[at].var, tensor.shape[at])
    name = stage.schedule.stage_map[tensor.op].origin_op.output(tensor.value_index).name
    value = build.if_then_else(inside, load(tensor, axes), build.const(0, tensor.dtype))
    return ComputeOp(f"{name}.padded", "", FrozenDict(), axes, (), (value,))
