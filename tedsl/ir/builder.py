"""`ir_builder`: statements written in the order of their execution, with `with` blocks for loops and branches.

    ib = create()
    out = ib.buffer_ptr(buffer)
    with ib.for_range(0, n, name="i") as i:
        out[i] = out[i] + 1
    stmt = ib.get()

An access to a buffer with one index for each of its dimensions follows the strides of the buffer; every other access is
a flat Load or Store, in elements, legal before and after `flatten_storage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ExpressionError, ShapeError, with_entries
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, array_of, decl_buffer
from tedsl.ir.dtype import DType, wrap_integer
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import BufferLoad, Expr, Load, Ramp, StringImm, Var, pointer_var
from tedsl.ir.stmt import (
    THREADS,
    Allocate,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
    While,
    seq,
)
from tedsl.ir.types import check_scope

KINDS = {"serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorize": ForKind.VECTORIZED,
         "vectorized": ForKind.VECTORIZED, "unroll": ForKind.UNROLLED, "unrolled": ForKind.UNROLLED}
Wrap = Callable[[Stmt], Stmt]


def create() -> IRBuilder:
    """A new builder of statements."""
    return IRBuilder()


class BufferVar:
    """A pointer that is read and written with `[]`, in elements; with a shape also by several indices.

    `buffer`: the buffer that is indexed if there is one index for each of its dimensions. The last index may be a vector; a
    dtype with lanes makes every access a vector of consecutive elements.
    """

    def __init__(self, builder: IRBuilder, data: Var, content: DType, shape: tuple[Expr, ...] | None,
                 buffer: Buffer | None = None) -> None:
        self._builder = builder
        self._data = data
        self._content = content
        self._shape = shape
        self._buffer = buffer

    @property
    def dtype(self) -> DType:
        return self._content

    @property
    def shape(self) -> tuple[Expr, ...] | None:
        return self._shape

    def as_expr(self) -> Var:
        """The pointer itself: an argument of calls."""
        return self._data

    asobject = asnode = as_expr  # TVM 0.7 and 0.6

    def as_array(self) -> Expr:
        """The memory with its shape: an argument of `call_packed`."""
        if self._buffer is not None:
            return array_of(self._buffer)
        assert self._shape is not None
        return array_of(decl_buffer(self._shape, self._content, self._data.name, data=self._data))

    def __getitem__(self, index: Any) -> Expr:
        indices = _as_indices(index)
        if self._buffer is not None and self._by_dimension(indices):
            return BufferLoad(self._buffer, indices)
        flat = self._flat(indices)
        return Load(self._content.with_lanes(flat.dtype.lanes), self._data, flat)

    def __setitem__(self, index: Any, value: Any) -> None:
        indices = _as_indices(index)
        by_dimension = self._buffer is not None and self._by_dimension(indices)
        flat = indices[-1] if by_dimension and indices else self._flat(indices)
        wanted = self._content.with_lanes(flat.dtype.lanes)
        stored = self._stored(value, wanted)
        if by_dimension:
            assert self._buffer is not None
            self._builder.emit(BufferStore(self._buffer, stored, indices))
        else:
            self._builder.emit(Store(self._data, stored, flat))

    def _stored(self, value: Any, wanted: DType) -> Expr:
        """The value converted to the dtype and lanes `wanted`: numbers take the dtype, scalars are broadcast to vectors."""
        stored = build.as_expr(value, like=self._content.element) if isinstance(value, (bool, int, float)) \
            else build.as_expr(value)
        if stored.dtype.element is not wanted.element:
            raise DTypeError(f"{self._data.name} holds {self._content}, the value stored is {stored.dtype}",
                             hint=f"cast it: value.astype({str(self._content)!r})")
        if stored.dtype.lanes == 1 and wanted.lanes > 1:
            stored = build.cast(wanted, stored)
        if stored.dtype.lanes != wanted.lanes:
            raise DTypeError(f"{self._data.name} is stored to with an index of {wanted.lanes} lanes and a value of "
                             f"{stored.dtype.lanes}", hint="give both the same number of lanes: tir.Ramp(base, 1, lanes)")
        return stored

    def _by_dimension(self, indices: tuple[Expr, ...]) -> bool:
        """Whether `indices` has one index for each dimension of the buffer, rather than a flat position."""
        buffer = self._buffer
        assert buffer is not None
        plain = len(indices) == 1 and not buffer.strides and build.as_int(buffer.elem_offset) == 0
        return not plain and len(indices) == len(buffer.shape) and self._content.lanes == 1 \
            and all(i.dtype.lanes == 1 for i in indices[:-1])

    def _flat(self, indices: tuple[Expr, ...]) -> Expr:
        """The flat index, in elements, that `indices` stand for: a scalar, or a vector with one index per lane."""
        if not indices:
            return build.const(0, "int32")
        flat = indices[0]
        if len(indices) > 1 or self._shape is not None:
            if self._shape is None or (len(indices) != len(self._shape) and len(indices) > 1):
                known = "no shape" if self._shape is None else f"{len(self._shape)} dimensions"
                raise ShapeError(f"{self._data.name} has {known} and is accessed with {len(indices)} indices",
                                 hint="give its shape: ib.allocate(dtype, shape), ib.buffer_ptr(buffer, shape)")
            for dim, position in zip(self._shape[1:], indices[1:]):
                flat = build.add(build.mul(flat, dim), position)
        lanes = self._content.lanes
        if lanes == 1:
            return flat
        return Ramp(build.mul(flat, lanes), build.const(1, flat.dtype), lanes)


def _as_indices(index: Any) -> tuple[Expr, ...]:
    indices = tuple(build.as_expr(i) for i in (index if isinstance(index, (tuple, list)) else (index,)))
    for position in indices:
        if not position.dtype.is_integer:
            raise DTypeError(f"an index is an integer, {position!r} is {position.dtype}", hint="cast it: index.astype('int32')")
    return indices


@with_entries
class IRBuilder:
    """Collects statements. Statements emitted inside a `with` block of the builder become its body."""

    def __init__(self) -> None:
        self._blocks: list[list[Stmt | Wrap]] = [[]]
        self._given: Stmt | None = None

    # --- statements ---

    def emit(self, stmt: Stmt | Expr | Wrap) -> None:
        """Adds a statement. An expression is evaluated; a function is called with the rest of the block and returns the
        statement around it.
        """
        if not isinstance(stmt, (Expr, Stmt)) and not callable(stmt):
            raise ArgumentTypeError(f"emit takes a statement or an expression, not {stmt!r}",
                                    hint="stores are statements: ib.emit(buffer.vstore([i], value)), or C[i] = value")
        self._blocks[-1].append(Evaluate(stmt) if isinstance(stmt, Expr) else stmt)

    def get(self) -> Stmt:
        """The statement made of everything emitted since it was last called; the same again if there is nothing new."""
        if len(self._blocks) != 1:
            raise ExpressionError("get() is called inside a `with` block of the builder", hint="call it after all blocks")
        if self._blocks[0] or self._given is None:
            self._given = self._close()
        return self._given

    def _close(self) -> Stmt:
        result: Stmt | None = None
        block = self._blocks.pop()
        if not self._blocks:
            self._blocks.append([])
        for item in reversed(block):
            result = seq(item, result) if isinstance(item, Stmt) else item(seq(result))
        return seq(result)

    @contextmanager
    def _block(self, wrap: Wrap) -> Iterator[None]:
        self._blocks.append([])
        try:
            yield
        except BaseException:
            self._blocks.pop()  # the program that was being written is given up
            raise
        self.emit(wrap(self._close()))

    @contextmanager
    def for_range(self, begin: Any, end: Any, name: str = "i", dtype: object = None, kind: str = "serial", *,
                  for_type: str | None = None) -> Iterator[Var]:
        """`for name in begin .. end - 1`; kind: serial, parallel, vectorize, unroll; for_type: the same by its older name."""
        kind = kind if for_type is None else for_type
        if kind not in KINDS:
            raise ArgumentError(f"for_range: there is no kind {kind!r}", hint=f"choose one of {', '.join(KINDS)}")
        low, high = build.match_operands(begin, end)
        of = as_dtype(dtype) if dtype is not None else low.dtype
        for what, given in ((f"its range, from {begin!r} to {end!r},", low.dtype), ("its variable", of)):
            if not given.is_integer or given.lanes != 1:
                raise DTypeError(f"for_range: the loop {name} counts in integers, and {what} is {given}",
                                 hint="cast the begin and the end: end.astype('int32')")
        for end in (low, high):
            number = build.as_int(end)
            if wrap_integer(number, of) != number if number is not None else of.bits < min(end.dtype.bits, 32):
                raise DTypeError(f"for_range: the variable {name} of the loop is {of}, and {end!r}, where its range begins or "
                                 f"ends, {'is' if number is not None else 'may be'} beyond that",
                                 hint=f"leave dtype out, and convert the variable where it is used: {name}.astype({str(of)!r})")
        low, high = build.cast(of, low), build.cast(of, high)
        var = Var(name, of)
        with self._block(lambda body: For(var, low, build.sub(high, low), KINDS[kind], body)):
            yield var

    @contextmanager
    def while_loop(self, condition: Any) -> Iterator[None]:
        """A `with` block that repeats as long as `condition` holds."""
        test = build.as_expr(condition)
        with self._block(lambda body: While(test, body)):
            yield

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """A `with` block that runs if `cond` holds."""
        test = build.as_expr(cond)
        with self._block(lambda body: IfThenElse(test, body)):
            yield

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """A `with` block that runs where the condition of the `if_scope` just before does not hold."""
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(last, IfThenElse) or last.else_case is not None:
            raise ExpressionError("else_scope must follow an if_scope", hint="put it directly behind its `with` block")

        def close(body: Stmt) -> Stmt:
            taken = self._blocks[-1].pop()
            assert taken is last
            return last.replace(else_case=body)

        with self._block(close):
            yield

    @contextmanager
    def new_scope(self) -> Iterator[None]:
        """A `with` block: allocations and attributes inside it end with it."""
        with self._block(lambda body: body):
            yield

    # --- what holds for the rest of the block ---

    def allocate(self, dtype: object, shape: Any, name: str = "buf", scope: str = "") -> BufferVar:
        """A pointer to new memory of `shape` elements of `dtype`, which lives for the rest of the block."""
        check_scope(scope, f"allocate {name}")
        dims = build.as_shape(shape, f"allocate {name}")
        content = as_dtype(dtype)
        data = pointer_var(name, content.element, scope or "global")
        self.emit(lambda body: Allocate(data, content, dims, build.true(), body))
        return BufferVar(self, data, content, dims)

    def let(self, var_name: Any, value: Any) -> Var:
        """A variable bound to `value` for the rest of the block; `var_name`: its name, or a Var."""
        bound = build.as_expr(value)
        var = var_name if isinstance(var_name, Var) else Var(var_name, bound.dtype)
        self.emit(lambda body: LetStmt(var, bound, body))
        return var

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """Attach an attribute (an AttrStmt) to the rest of the block."""
        if attr_key in THREADS and getattr(node, "thread_tag", None) is None:
            raise ArgumentTypeError(f"scope_attr {attr_key!r} is about a thread axis, not {node!r}",
                                    hint='make one: tx = te.thread_axis("threadIdx.x")')
        about = StringImm(node) if isinstance(node, str) else node.as_expr() if isinstance(node, BufferVar) else node
        expr = build.as_expr(value)
        self.emit(lambda body: AttrStmt(about, attr_key, expr, body))

    # --- memory and conditions ---

    def buffer_ptr(self, buf: Buffer, shape: Sequence[Any] | None = None) -> BufferVar:
        """Access to the elements of a buffer: by one index per dimension, or by a single `[i]` in memory order.

        shape: dimensions by which several indices are interpreted instead, compact and row-major.
        """
        if not isinstance(buf, Buffer):
            raise ArgumentTypeError(f"buffer_ptr takes a Buffer, not {type(buf).__name__}",
                                    hint="tir.decl_buffer makes one; te.extern gives its function the buffers of its tensors")
        if shape is not None:
            return BufferVar(self, buf.data, buf.dtype, build.as_shape(shape, f"buffer {buf.name}"))
        return BufferVar(self, buf.data, buf.dtype, buf.shape, buf)

    def pointer(self, content_type: object, name: str = "ptr", scope: str = "") -> BufferVar:
        """A new pointer variable: the caller of the program must bind it."""
        check_scope(scope, f"pointer {name}")
        content = as_dtype(content_type)
        return BufferVar(self, pointer_var(name, content.element, scope), content, None)

    def likely(self, expr: Any) -> Expr:
        """`expr`, marked as likely to hold."""
        return build.likely(expr)

