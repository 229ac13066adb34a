"""`te.extern`: tensors computed by statements that the user writes, over buffers, instead of by a formula.

    def double(ins, outs):
        ib = tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, name="i") as i:
            b[i] = a[i] * 2.0
        return ib.get()

    B = te.extern((n,), [A], double, dtype="float32", name="B")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from tedsl.errors import ArgumentTypeError, DTypeError, ExpressionError, ShapeError, entry
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.source_line import SourceLine, user_line
from tedsl.ir.stmt import BufferStore, Evaluate, Stmt, Store
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.equal import structural_equal
from tedsl.lang.declare import check_shape, opening
from tedsl.lang.operation import Operation, as_attrs
from tedsl.lang.scope import current_tag
from tedsl.lang.tensor import Tensor
from tedsl.record import record

if TYPE_CHECKING:
    from typing_extensions import Self


class StatementsOp(Operation):
    """Base of operations whose elements are computed by statements over placeholder buffers."""

    inputs: tuple[Tensor, ...]
    input_placeholders: tuple[Buffer, ...]
    output_placeholders: tuple[Buffer, ...]

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(dict.fromkeys(self.inputs))

    def dtype_of(self, index: int) -> DType:
        return self.output_placeholders[index].dtype

    def bindings(self) -> list[tuple[Tensor, Buffer]]:
        """Each input and output with its placeholder."""
        outputs = [self.output(index) for index in range(self.num_outputs)]
        return list(zip((*self.inputs, *outputs), (*self.input_placeholders, *self.output_placeholders)))

    def reading(self, mapping: Mapping[Tensor, Tensor]) -> Self:
        """This operation with other inputs."""
        return self.replace(inputs=tuple([mapping.get(tensor, tensor) for tensor in self.inputs]))


@record(eq=False, repr=False)
class ExternOp(StatementsOp):
    """An operation whose `body` computes every output whole, from the whole of every input.

    input_placeholders, output_placeholders: the buffers that the body uses in place of the tensors. Lowering binds their data
    pointers, and variables in their shapes, strides and offsets, to the real memory.
    info: a typed record of the operator family that made it, as of ComputeOp.
    by_threads: returns other statements with the same results, which launch kernels, for blocks of at most so many threads and
    bytes of shared memory; the directive of that name chooses them.
    """

    name: str
    tag: str
    attrs: Mapping[str, Any]
    inputs: tuple[Tensor, ...]
    input_placeholders: tuple[Buffer, ...]
    output_placeholders: tuple[Buffer, ...]
    shapes: tuple[tuple[Expr, ...], ...]
    body: Stmt
    source: SourceLine | None = None
    info: Any = None
    by_threads: Callable[[int, int], Stmt] | None = None

    @property
    def num_outputs(self) -> int:
        return len(self.shapes)

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        return self.shapes[index]

    @property
    def stored_inputs(self) -> list[Tensor]:
        """The inputs that the statements store to: they change the arrays of the caller."""
        stored = {node.buffer.data if isinstance(node, BufferStore) else node.buffer_var
                  for node in of_kinds(self.body, BufferStore, Store) if isinstance(node, (BufferStore, Store))}
        return [tensor for tensor, buffer in zip(self.inputs, self.input_placeholders) if buffer.data in stored]

    def __repr__(self) -> str:
        return f"extern({self.name}, inputs=[{', '.join(tensor.name for tensor in self.inputs)}])"


@overload
def extern(shape: int | Expr | Sequence[int | Expr], inputs: Any, fcompute: Callable[..., Any], name: str = "extern",
           dtype: Any = None, in_buffers: Any = None, out_buffers: Any = None, tag: str = "",
           attrs: Mapping[str, Any] | None = None, *, info: Any = None, by_threads: Any = None) -> Tensor[ExternOp]: ...
@overload
def extern(shape: Any, inputs: Any, fcompute: Callable[..., Any], name: str = "extern", dtype: Any = None,
           in_buffers: Any = None, out_buffers: Any = None, tag: str = "", attrs: Mapping[str, Any] | None = None, *,
           info: Any = None, by_threads: Any = None) -> Any: ...
@entry
def extern(shape: Any, inputs: Any, fcompute: Callable[..., Any], name: str = "extern", dtype: Any = None,
           in_buffers: Any = None, out_buffers: Any = None, tag: str = "", attrs: Mapping[str, Any] | None = None, *,
           info: Any = None, by_threads: Any = None) -> Any:
    """Tensors computed by statements: `fcompute(ins, outs)` gets a buffer for each input and output and returns a Stmt, such as
    `ib.get()` of an ir_builder, or an expression to evaluate, such as tir.call_packed(...).

    shape: that of the output; a list of shapes makes several, returned as a list. dtype: one for all outputs, or a list;
    None takes the inputs' if they agree. in_buffers, out_buffers: buffers of the caller's making (tir.decl_buffer) to pass to
    `fcompute`, for strides and offsets; without them the buffers are compact and row-major.
    info (ours): a typed record of the operator family, `op.info`.
    by_threads (ours): `by_threads(ins, outs, threads, shared)` returns statements with the same results that launch kernels, of
    blocks of at most so many threads and bytes of shared memory; `s[B].by_threads(threads, shared)` uses them.
    """
    where = opening("extern", name)
    tag = current_tag(tag, where)
    tensors = _tensors(inputs, where)
    shapes = _shapes(shape, where)
    dtypes = _dtypes(dtype, tensors, len(shapes), where)
    ins = [decl_buffer(t.shape, t.dtype, t.op.name, offset_factor=1) for t in tensors]  # wherever the memory of t begins
    outs = [decl_buffer(dims, of, name, offset_factor=1) for dims, of in zip(shapes, dtypes)]
    ins = _given(in_buffers, ins, "in_buffers", where)
    outs = _given(out_buffers, outs, "out_buffers", where)
    body = _body(fcompute, ins, outs, where)
    launched = None if by_threads is None else _launched(by_threads, ins, outs, where)
    op = ExternOp(name, tag, as_attrs(attrs), tensors, tuple(ins), tuple(outs), shapes, body, user_line(), info, launched)
    outputs = [Tensor(op, index) for index in range(op.num_outputs)]
    return outputs[0] if len(outputs) == 1 else outputs


def _tensors(inputs: Any, where: str) -> tuple[Tensor, ...]:
    given = [inputs] if isinstance(inputs, Tensor) else inputs
    if not isinstance(given, (list, tuple)) or not all(isinstance(tensor, Tensor) for tensor in given):
        raise ArgumentTypeError(f"{where}: the inputs are {shown(inputs)}, not a list of tensors",
                                hint="write [A, B]; [] for none")
    return tuple(given)


def _shapes(shape: Any, where: str) -> tuple[tuple[Expr, ...], ...]:
    """The shape of each output. One shape is a dimension or a sequence of them; several are a sequence of sequences."""
    several = isinstance(shape, (list, tuple)) and len(shape) > 0 and all(_is_shape(part) for part in shape)
    return tuple([check_shape(part, where) for part in (shape if several else [shape])])


def _is_shape(value: Any) -> bool:
    return not isinstance(value, (Expr, IterVar, str)) and hasattr(value, "__iter__")


def _dtypes(dtype: Any, inputs: Sequence[Tensor], count: int, where: str) -> list[DType]:
    if dtype is None:
        dtypes = list(dict.fromkeys(tensor.dtype for tensor in inputs))
        if len(dtypes) != 1:
            have = f"the inputs have {', '.join(dtypes)}" if dtypes else "there are no inputs to take it from"
            raise DTypeError(f"{where}: the dtype of the output is not given, and {have}", hint="write dtype='float32'")
        return dtypes * count
    if not isinstance(dtype, (list, tuple)):
        return [as_dtype(dtype)] * count
    if len(dtype) != count:
        raise ArgumentTypeError(f"{where}: {len(dtype)} dtype{'s' * (len(dtype) != 1)} for {count} output{'s' * (count != 1)}",
                                hint="give one dtype for each shape, or a single one for all")
    return [as_dtype(of) for of in dtype]


def _given(buffers: Any, expected: list[Buffer], what: str, where: str) -> list[Buffer]:
    """The buffers that the caller declared, None for those to be created; refuses buffers that do not fit the tensors."""
    if buffers is None:
        return expected
    given = [buffers] if isinstance(buffers, Buffer) else list(buffers) if isinstance(buffers, (list, tuple)) else None
    if given is None or not all(isinstance(buffer, Buffer) for buffer in given):
        raise ArgumentTypeError(f"{where}: {what} is {shown(buffers)}, not a list of buffers",
                                hint="make them by tir.decl_buffer")
    if len(given) != len(expected):
        kind = "input" if what == "in_buffers" else "output"
        raise ArgumentTypeError(f"{where}: {len(given)} {what} for {len(expected)} {kind}{'s' * (len(expected) != 1)}",
                                hint=f"give one for each {kind}, in order")
    for buffer, wanted in zip(given, expected):
        fits = len(buffer.shape) == len(wanted.shape) and all(map(_may_be, buffer.shape, wanted.shape))
        if not fits:
            raise ShapeError(f"{where}: the buffer {buffer.name} of {what} has the shape {shown(list(buffer.shape))}, the "
                             f"tensor {wanted.name} has {shown(list(wanted.shape))}",
                             hint=f"tir.decl_buffer({wanted.name}.shape, ...)")
        if buffer.dtype != wanted.dtype:
            raise DTypeError(f"{where}: the buffer {buffer.name} of {what} holds {buffer.dtype}, the tensor {wanted.name} "
                             f"{wanted.dtype}", hint=f"tir.decl_buffer(..., {str(wanted.dtype)!r})")
    return given


def _may_be(declared: Expr, actual: Expr) -> bool:
    """Whether a declared dimension of a buffer fits that of its tensor: it is equal, or a variable, which is bound to it."""
    return isinstance(declared, Var) or build.as_int(declared) == build.as_int(actual) is not None \
        or structural_equal(declared, actual, map_free_vars=False)


def _body(fcompute: Any, ins: Sequence[Buffer], outs: Sequence[Buffer], where: str) -> Stmt:
    if not callable(fcompute):
        raise ArgumentTypeError(f"{where}: fcompute is {shown(fcompute)}, not a function",
                                hint="write a function of (ins, outs)")
    try:
        inspect.signature(fcompute).bind(ins, outs)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{where}: fcompute is called with the list of input buffers and that of output buffers, and "
                                f"cannot be: {error}", hint="write a function of (ins, outs)") from None
    body = fcompute(list(ins), list(outs))
    if isinstance(body, Expr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        hint = "does it end with `return ib.get()`?" if body is None else \
            "write `return ib.get()`" if hasattr(body, "get") else "return a statement, or an expression to evaluate"
        raise ExpressionError(f"{where}: the function returned {shown(body)} ({type(body).__name__}), not a statement",
                              hint=hint)
    return body


def _launched(by_threads: Any, ins: Sequence[Buffer], outs: Sequence[Buffer], where: str) -> Callable[[int, int], Stmt]:
    """The statements of `by_threads`, checked as those of `fcompute` when they are made."""
    if not callable(by_threads):
        raise ArgumentTypeError(f"{where}: by_threads is {shown(by_threads)}, not a function",
                                hint="write a function of (ins, outs, threads, shared)")

    def statements(threads: int, shared: int) -> Stmt:
        return _body(lambda ins, outs: by_threads(ins, outs, threads, shared), ins, outs, where)

    return statements
