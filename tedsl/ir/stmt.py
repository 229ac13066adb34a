"""Statements: loops, branches, memory. Immutable like expressions; `seq` joins them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Call, Expr, IntImm, Ramp, StringImm, Var
from tedsl.ir.node import MASKED, FrozenDict, Node, kind_bit, node, set_field
from tedsl.ir.operators import constants_of
from tedsl.ir.types import check_scope
from tedsl.ir.wellformed import FlatAccess, check_access_lanes, check_branch, check_rank, check_rank_of_producer, producer_dtype

if TYPE_CHECKING:
    from tedsl.ir.buffer import Buffer
    from tedsl.ir.iters import IterVar, Range


class Stmt(Node):
    """An action. Statements nest a few dozen levels; expressions and sequences may be thousands long."""

    __slots__ = ()


class ForKind(IntEnum):
    """The kind of a loop (serial, parallel, vectorized, unrolled, ...), with TVM's numbers."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


# AttrStmt with this key: its node is a pair of buffers, and in its body the first one stands for a region of the second; the
# value is tvm_tuple(min, extent, min, extent, ...).
BIND_SCOPE = "buffer_bind_scope"
# AttrStmt keys: `body` runs on each of `value` threads of the axis `node`, of a device or as copies of the statement.
LAUNCH, VIRTUAL = "thread_extent", "virtual_thread"
THREADS = (LAUNCH, VIRTUAL)
LOGICAL_SHAPE = "logical_shape"  # annotation of an Allocate: the extents of the dimensions that its flat memory holds
# AttrStmt key: data decides indices into the memory `node` (a pointer), and the author of the statements in `body` vouches that
# they are in range: value "trust". They are neither clamped nor asserted; a checked build still checks them.
DATA_INDICES = "tir.data_index"
EXTERN_SCOPE = "extern_scope"  # AttrStmt key: statements that a person wrote, whose loops are in the order that was meant
JOINED = "pragma_joined"  # AttrStmt key: the loop in `body` is one with those under the same value (compute_with)
COMBINED = "combined_lanes"  # annotation of a vectorized For: its lanes are combined in the element that all of them write
NO_ANNOTATIONS: FrozenDict[str, Any] = FrozenDict()


@node
class For(Stmt):
    """`body` for loop_var = min, ..., min + extent - 1; an extent of 0 or less runs nothing."""

    loop_var: Var
    min: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread_binding: IterVar | None = None
    annotations: Mapping[str, Any] = NO_ANNOTATIONS
    children: ClassVar[tuple[str, ...]] = ("min", "extent", "body")
    binders: ClassVar[tuple[str, ...]] = ("loop_var",)

    def adopt(self) -> None:
        """Convert Python numbers to the dtype of the loop variable, and the arguments of TVM 0.7: fifth a device_api,
        sixth the body.
        """
        body: Any = self.thread_binding
        if isinstance(self.body, int) and isinstance(body, Stmt):
            set_field(self, "body", body)
            set_field(self, "thread_binding", None)
        constants_of(self, self.loop_var.dtype, "min", "extent")

    def __post_init__(self) -> None:
        for of in (self.loop_var.dtype, self.min.dtype, self.extent.dtype):
            if not of.is_integer or of.lanes != 1:
                raise DTypeError(f"the loop over {self.loop_var.name} counts with integers, not with {of}")

    @property
    def for_type(self) -> int:
        """The number of its kind: its name before TVM 0.8."""
        return int(self.kind)


@node
class While(Stmt):
    """A loop that runs `body` as long as `condition`, evaluated before each iteration, holds."""

    condition: Expr
    body: Stmt
    children: ClassVar[tuple[str, ...]] = ("condition", "body")

    def __post_init__(self) -> None:
        check_branch(self, "a while loop")


@node
class LetStmt(Stmt):
    """`body` in which `var` stands for `value`, evaluated once before it."""

    var: Var
    value: Expr
    body: Stmt
    children: ClassVar[tuple[str, ...]] = ("value", "body")
    binders: ClassVar[tuple[str, ...]] = ("var",)

    def adopt(self) -> None:
        """Convert a Python number to the dtype of the variable."""
        constants_of(self, self.var.dtype, "value")


@node
class AttrStmt(Stmt):
    """`body` under the attribute `attr_key` = `value` of `node` (a Var, IterVar, Buffer, operation or StringImm)."""

    node: Any
    attr_key: str
    value: Expr
    body: Stmt
    children: ClassVar[tuple[str, ...]] = ("value", "body")

    def __post_init__(self) -> None:
        if self.attr_key in THREADS:
            self._check_threads()

    def _own_kinds(self) -> int:
        return kind_bit(self.attr_key)

    def _check_threads(self) -> None:
        """Raise ArgumentTypeError if an attribute that launches threads does not have a thread axis as its node and an integer
        as its value.
        """
        if getattr(self.node, "thread_tag", None) is None:
            raise ArgumentTypeError(f"the attribute {self.attr_key!r} is about a thread axis, not {self.node!r}",
                                    hint='make one: te.thread_axis("threadIdx.x")')
        if not self.value.dtype.is_integer:
            raise DTypeError(f"{self.attr_key} of {self.node.name} is a number of threads, not {self.value.dtype}")


@node
class IfThenElse(Stmt):
    """`then_case` if `condition`, else `else_case` if there is one."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None
    children: ClassVar[tuple[str, ...]] = ("condition", "then_case", "else_case")

    def __post_init__(self) -> None:
        check_branch(self, "an if")


@node
class Allocate(Stmt):
    """Memory for product(extents) elements at `buffer_var` during `body`, if `condition`; its content is undefined."""

    buffer_var: Var
    dtype: DType
    extents: tuple[Expr, ...]
    condition: Expr
    body: Stmt
    annotations: Mapping[str, Any] = NO_ANNOTATIONS
    children: ClassVar[tuple[str, ...]] = ("extents", "condition", "body")
    binders: ClassVar[tuple[str, ...]] = ("buffer_var",)

    def __post_init__(self) -> None:
        set_field(self, "dtype", dtype(self.dtype))


@node
class Store(FlatAccess, Stmt):
    """A store of `value` to a buffer variable, after `flatten_storage`; `index` in elements, a vector scatters, and a number is
    that of the first of consecutive ones.

    Lanes are written in ascending order; a false `predicate` (None: true) writes nothing.
    """

    buffer_var: Var
    value: Expr
    index: Expr
    predicate: Expr | None = None
    children: ClassVar[tuple[str, ...]] = ("value", "index", "predicate")

    def __post_init__(self) -> None:
        if self.value.dtype.lanes > 1 and self.index.dtype.lanes == 1:
            set_field(self, "index", Ramp(self.index, IntImm(self.index.dtype, 1), self.value.dtype.lanes))
        check_access_lanes(self.value.dtype, self.index, self.predicate, self)

    def _own_kinds(self) -> int:
        return 0 if self.predicate is None else kind_bit(MASKED)


@node
class BufferStore(Stmt):
    """A store of `value` to `buffer` at multi-dimensional `indices`, before `flatten_storage`."""

    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]
    children: ClassVar[tuple[str, ...]] = ("value", "indices")

    def __post_init__(self) -> None:
        check_rank(self.buffer, self.indices)
        if self.value.dtype.element is not self.buffer.dtype.element:
            raise DTypeError(f"a store of {self.value.dtype} into buffer {self.buffer.name} of {self.buffer.dtype}",
                             hint=f"cast the value: .astype({str(self.buffer.dtype)!r})")

    @property
    def args(self) -> tuple[Expr, ...]:
        """The indices: their name in TVM 0.6, whose `Provide` this is."""
        return self.indices


@node
class BufferRealize(Stmt):
    """`buffer` exists during `body`, for indices within `bounds`, if `condition`; its content is undefined at first."""

    buffer: Buffer
    bounds: tuple[Range, ...]
    condition: Expr
    body: Stmt
    children: ClassVar[tuple[str, ...]] = ("bounds", "condition", "body")
    binders: ClassVar[tuple[str, ...]] = ("buffer",)


@node
class ProducerStore(Stmt):
    """A store of `value` to the tensor `producer` at `indices`, before tensors have buffers: `te.schedule` gives them."""

    producer: Any  # a tensor of the language: it has shape, dtype and name
    value: Expr
    indices: tuple[Expr, ...]
    children: ClassVar[tuple[str, ...]] = ("value", "indices")

    def adopt(self) -> None:
        """Convert a Python number to the dtype of the tensor."""
        constants_of(self, producer_dtype(self.producer, "ProducerStore"), "value")

    def __post_init__(self) -> None:
        of = producer_dtype(self.producer, "ProducerStore")
        check_rank_of_producer(self.producer, len(self.indices), "indices")
        if self.value.dtype.element is not of:
            raise DTypeError(f"a store of {self.value.dtype} into the tensor {self.producer.name} of {of}",
                             hint=f"cast the value: .astype({str(of)!r})")

    @property
    def func(self) -> Any:
        """The operation of the tensor: its name in TVM 0.6, as the next two."""
        return self.producer.op

    @property
    def value_index(self) -> int:
        return int(self.producer.value_index)

    @property
    def args(self) -> tuple[Expr, ...]:
        return self.indices


@node
class ProducerRealize(Stmt):
    """The tensor `producer` exists during `body`, for indices within `bounds`, if `condition`, in memory of `storage_scope`."""

    producer: Any
    bounds: tuple[Range, ...]
    condition: Expr
    body: Stmt
    storage_scope: str = ""
    children: ClassVar[tuple[str, ...]] = ("bounds", "condition", "body")

    def __post_init__(self) -> None:
        producer_dtype(self.producer, "ProducerRealize")
        check_rank_of_producer(self.producer, len(self.bounds), "bounds")
        check_branch(self, "a ProducerRealize")
        check_scope(self.storage_scope, "ProducerRealize")


@node
class BufferRegion(Node):
    """The elements of `buffer` whose indices are within `region`, one range for each dimension."""

    buffer: Buffer
    region: tuple[Range, ...]
    children: ClassVar[tuple[str, ...]] = ("region",)

    def __post_init__(self) -> None:
        if len(self.region) != len(self.buffer.shape):
            raise ShapeError(f"buffer {self.buffer.name} has {len(self.buffer.shape)} dimensions, and its region has "
                             f"{len(self.region)} ranges")


@node
class SeqStmt(Stmt):
    """A sequence of statements; made by `seq`, which keeps sequences flat."""

    seq: tuple[Stmt, ...]
    children: ClassVar[tuple[str, ...]] = ("seq",)

    def __len__(self) -> int:
        return len(self.seq)

    def __getitem__(self, index: int) -> Stmt:
        return self.seq[index]

    @property
    def first(self) -> Stmt:
        """The first statement: TVM 0.6 had sequences of two."""
        return self.seq[0]

    @property
    def rest(self) -> Stmt:
        """The statements behind the first."""
        return seq(*self.seq[1:])


@node
class Evaluate(Stmt):
    """A statement that evaluates an expression, a call, for its effect. `Evaluate(0)` does nothing."""

    value: Expr
    children: ClassVar[tuple[str, ...]] = ("value",)


@node
class AssertStmt(Stmt):
    """`body` after a check of `condition`; if it is false, `message` (a StringImm) is raised in the caller."""

    condition: Expr
    message: Expr
    body: Stmt
    children: ClassVar[tuple[str, ...]] = ("condition", "message", "body")

    def __post_init__(self) -> None:
        if not isinstance(self.message, StringImm):
            raise TypeError("the message is a str")
        check_branch(self, "an assertion")


@node
class Tensorized(Stmt):
    """A region of loops replaced by a tensor intrinsic; `body`: the user's statements for it (a call, an instruction).

    `formula`: generated loops that compute the same. The interpreter runs them and passes take the accesses of the region
    from them; machine code is generated from `body`. name: of the intrinsic. fills: the number of buffers, the last that
    `body` binds, every element of which it stores to; 0 for an update, which may leave elements unchanged.
    """

    name: str
    body: Stmt
    formula: Stmt
    fills: int = 0
    children: ClassVar[tuple[str, ...]] = ("body", "formula")


@node
class Prefetch(Stmt):
    """A hint that the region `bounds` of `buffer` is read soon; writes: 1 where it is written."""

    buffer: Buffer
    bounds: tuple[Range, ...]
    writes: int = 0
    children: ClassVar[tuple[str, ...]] = ("bounds",)


def no_op() -> Stmt:
    """The statement that does nothing."""
    return Evaluate(IntImm(dtype("int32"), 0))


def _is_nothing(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm)


def is_no_op(stmt: Stmt) -> bool:
    """Whether `stmt` is an Evaluate of an expression without side effects."""
    return isinstance(stmt, Evaluate) and not _has_effect(stmt.value)


def _has_effect(value: Node) -> bool:
    stack, seen = [value], set()
    while stack:
        part = stack.pop()
        if isinstance(part, Call) and part.op.effect == "opaque":
            return True
        if id(part) not in seen:
            seen.add(id(part))
            stack += part.child_nodes()
    return False


def seq(*stmts: Stmt | None) -> Stmt:
    """The sequence of the statements, flattened, without None and no-ops; a single statement itself; a no-op for none."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, SeqStmt):
            flat.extend(s for s in stmt.seq if not _is_nothing(s))
        elif stmt is not None and not _is_nothing(stmt):
            flat.append(stmt)
    if len(flat) == 1:
        return flat[0]
    return SeqStmt(tuple(flat)) if flat else no_op()
