"""`te.scan`: a recurrence. Row t of a state is computed from rows before t.

    s_state = te.placeholder((m, n), name="s_state")
    s_init = te.compute((1, n), lambda _, i: X[0, i], name="s_init")                              the first rows
    s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i], name="s_update")      row t
    s_scan = te.scan(s_init, s_update, s_state, inputs=[X])                                       all rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentTypeError, DTypeError, ExpressionError, ShapeError, entry
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.source_line import SourceLine, user_line
from tedsl.lang.declare import opening
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp, as_attrs, note_axis
from tedsl.lang.scan.order import check_order, dependents
from tedsl.lang.scope import current_tag
from tedsl.lang.tensor import Tensor
from tedsl.record import record

if TYPE_CHECKING:
    from typing_extensions import Self

FORM = "te.scan(init, update, state_placeholder): one of each for every state"


@record(eq=False, repr=False)
class ScanOp(Operation):
    """States computed row by row: `init` gives the first rows, `update` row t for each t of `scan_axis`, from the earlier rows
    that it reads through `state_placeholder`. Output number k is the whole of state k.

    inputs: other tensors that the steps read; operations between them and the updates are computed step by step.
    spatial_axis_: the dimensions of the states after the first, without loops of their own: the loops are those of the updates.
    """

    name: str
    tag: str
    attrs: Mapping[str, Any]
    scan_axis: IterVar
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state_placeholder: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    spatial_axis_: tuple[IterVar, ...]
    source: SourceLine | None = None

    @property
    def num_outputs(self) -> int:
        return len(self.update)

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(dict.fromkeys((*self.init, *self.update)))

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        return self.state_placeholder[index].shape

    def dtype_of(self, index: int) -> DType:
        return self.state_placeholder[index].dtype

    def reading(self, mapping: Mapping[Tensor, Tensor]) -> Self:
        """This operation with other tensors for its initial rows, its updates and its inputs; the states stay."""
        changed = {name: tuple([mapping.get(tensor, tensor) for tensor in getattr(self, name)])
                   for name in ("init", "update", "inputs")}
        return self.replace(**changed)

    def __repr__(self) -> str:
        named = ", ".join(f"{name}=[{', '.join(tensor.name for tensor in getattr(self, name))}]"
                          for name in ("init", "update", "state_placeholder"))
        return f"scan({self.name}, {named})"


@overload
def scan(init: Tensor, update: Tensor, state_placeholder: Tensor, inputs: Any = None, name: str = "scan", tag: str = "",
         attrs: Mapping[str, Any] | None = None) -> Tensor[ScanOp]: ...
@overload
def scan(init: Any, update: Any, state_placeholder: Any, inputs: Any = None, name: str = "scan", tag: str = "",
         attrs: Mapping[str, Any] | None = None) -> Any: ...
@entry
def scan(init: Any, update: Any, state_placeholder: Any, inputs: Any = None, name: str = "scan", tag: str = "",
         attrs: Mapping[str, Any] | None = None) -> Any:
    """The tensor whose first rows are `init` and whose row t is `update[t, ...]`, a te.compute that reads earlier rows as
    `state_placeholder[t - 1, ...]`. Lists of the three make several states that read one another; a list is returned.

    init: (k, ...), k first rows; update, state_placeholder: (m, ...), the shape of the result. inputs: other tensors that the
    steps read; operations between them and the update are computed step by step too.
    """
    where = opening("scan", name)
    tag = current_tag(tag, where)
    first, step, states = (_tensors(given, what, where) for given, what in (
        (init, "init"), (update, "update"), (state_placeholder, "state_placeholder")))
    others = _tensors([] if inputs is None else inputs, "inputs", where)
    if not (len(first) == len(step) == len(states)) or not first:
        raise ArgumentTypeError(f"{where}: {len(first)} init, {len(step)} update and {len(states)} state_placeholder",
                                hint=FORM)
    _check_roles(first, step, states, where)
    for tensors in zip(first, step, states):
        _check_types(*tensors, where)
    _check_rows(first, states, where)
    begin, end = build.match_operands(first[0].shape[0], states[0].shape[0])
    axis = note_axis(IterVar(Range(begin, end), Var(f"{name}.idx", end.dtype), IterType.ORDERED))
    op = ScanOp(name, tag, as_attrs(attrs), axis, first, step, states, others, _spatial_axes(name, states), user_line())
    check_order(axis, step, states, where)
    outputs = [Tensor(op, index) for index in range(op.num_outputs)]
    return outputs[0] if len(outputs) == 1 else outputs


def body_of(scan: ScanOp) -> tuple[Operation, ...]:
    """The operations that are computed step by step, producers first: TVM's ScanGetBody."""
    if not isinstance(scan, ScanOp):
        raise ArgumentTypeError(f"ScanGetBody takes the operation of a te.scan, got {shown(scan)}", hint="s_scan.op")
    return tuple(dependents(producers_first([tensor.op for tensor in scan.update]), scan.state_placeholder))


def _tensors(given: Any, what: str, where: str) -> tuple[Tensor, ...]:
    listed = [given] if isinstance(given, Tensor) else given
    if not isinstance(listed, (list, tuple)) or not all(isinstance(tensor, Tensor) for tensor in listed):
        raise ArgumentTypeError(f"{where}: {what} is {shown(given)}, not a tensor or a list of tensors", hint=FORM)
    return tuple(listed)


def _spatial_axes(name: str, states: Sequence[Tensor]) -> tuple[IterVar, ...]:
    return tuple([IterVar(Range.from_min_extent(build.const(0, extent.dtype), extent),
                          Var(f"{name}.out{number}.i{dim}", extent.dtype), IterType.DIM_INFO)
                  for number, state in enumerate(states) for dim, extent in enumerate(state.shape) if dim])


# --- checks -----------------------------------------------------------------------------------------------------------

def _check_roles(init: Sequence[Tensor], update: Sequence[Tensor], states: Sequence[Tensor], where: str) -> None:
    """Raise unless states are distinct placeholders, updates are computes, and initial rows do not depend on the states."""
    for state in states:
        if not isinstance(state.op, PlaceholderOp):
            raise ArgumentTypeError(f"{where}: the state {state.name} is not a placeholder",
                                    hint="declare it by te.placeholder(shape), of the shape of the result, and read it in the "
                                         "update; the order of the arguments is init, update, state_placeholder")
    for step in update:
        if not isinstance(step.op, ComputeOp):
            raise ArgumentTypeError(f"{where}: the update {step.name} is not made by te.compute",
                                    hint="write it as te.compute((m, ...), lambda t, ...: ...), which gives row t")
    for what, tensors in (("state_placeholder", states), ("update", update)):
        twice = [tensor for at, tensor in enumerate(tensors) if tensor in tensors[:at]]
        if twice:
            raise ArgumentTypeError(f"{where}: {twice[0].name} is given twice as {what}",
                                    hint="each state has a placeholder and an update of its own")
    below: set[Operation] = set(producers_first([tensor.op for tensor in init]))
    for state in states:
        if state.op in below:
            raise ExpressionError(f"{where}: the initial rows depend on the state {state.name}, which begins with them",
                                  hint="init is computed from other tensors, before the first step")


def _check_types(init: Tensor, update: Tensor, state: Tensor, where: str) -> None:
    """Raise unless the three tensors of one state agree in dtype and shape, except for the number of rows of `init`."""
    for tensor, what in ((init, "init"), (update, "update")):
        if tensor.dtype != state.dtype:
            raise DTypeError(f"{where}: {what} {tensor.name} is {tensor.dtype}, and the state {state.name} is {state.dtype}",
                             hint=f"cast the value: .astype({str(state.dtype)!r})")
        if tensor.ndim != state.ndim or not state.ndim:
            raise ShapeError(f"{where}: {what} {tensor.name} has {tensor.ndim} dimensions, "
                             f"the state {state.name} has {state.ndim}",
                             hint="all three have the rows as their first dimension: (k, ...), (m, ...) and (m, ...)")
        for dim, (mine, its) in enumerate(zip(tensor.shape, state.shape)):
            if not (tensor is init and dim == 0) and not _same(mine, its):
                raise ShapeError(f"{where}: dimension {dim} of {what} {tensor.name} is {shown(mine)}, and of the state "
                                 f"{state.name} {shown(its)}", hint="update has the shape of the state; init only fewer rows")


def _check_rows(init: Sequence[Tensor], states: Sequence[Tensor], where: str) -> None:
    """Raise unless all states have the same number of rows and the same number of initial rows, at least 1."""
    for tensors, what in ((init, "init"), (states, "state_placeholder")):
        for other in tensors[1:]:
            if not _same(other.shape[0], tensors[0].shape[0]):
                raise ShapeError(f"{where}: {tensors[0].name} has {shown(tensors[0].shape[0])} rows and {other.name} has "
                                 f"{shown(other.shape[0])}, both {what}", hint="all states go through the same steps")
    first, rows = build.as_int(init[0].shape[0]), build.as_int(states[0].shape[0])
    if first is not None and first < 1:
        raise ShapeError(f"{where}: init {init[0].name} has no rows", hint="give at least the first row: shape (1, ...)")
    if first is not None and rows is not None and rows < first:
        raise ShapeError(f"{where}: init {init[0].name} has {first} rows, and all of the state {states[0].name} only {rows}")


def _same(a: Expr, b: Expr) -> bool:
    """Whether two dimensions are proved equal."""
    return a is b or (build.as_int(a) is not None and build.as_int(a) == build.as_int(b)) \
        or Analyzer().can_prove(build.equal(a, b))
