"""Expressions: scalar and vector values without side effects of their own.

What every expression means, on every backend and in the interpreter:

- **Integer arithmetic on data wraps** modulo 2**bits, signed too. Index arithmetic (of loop variables, sizes and constants
  alone) never overflows silently: the text keeps int32, the code generator evaluates it in 64 bits wherever it stands, and
  it wraps where it is stored or meets data. What is narrower than 32 bits or unsigned is data there too, and wraps; data
  of int32 and int64 in an address wraps at 64 bits.
- **Division.** `FloorDiv`, `FloorMod` round towards minus infinity, `Div`, `Mod` (on integers) towards zero. Division or
  modulo by zero gives 0; MIN // -1 wraps to MIN and MIN % -1 is 0. `Div` on floats is IEEE division.
  `FloorDiv`, `FloorMod`, `Mod` take integers only (`build.floordiv` writes floor(a / b) for floats).
- **Shifts** by an amount below 0 or of at least the width give 0; an arithmetic right shift of a negative value gives -1.
- **Floats** are IEEE 754, round to nearest even, denormals kept. `Add`, `Mul`, ... round each on its own;
  `tir.fma` rounds once. float16 and bfloat16 operations are done in float32 and rounded after each operation.
  `Min` and `Max` propagate NaN as numpy's minimum and maximum: NaN if either operand is NaN; of +0 and -0 the second.
- **Comparisons** give bool; any comparison with NaN is false but `NE`, which is true.
- **bool** is one bit in registers, one byte 0 or 1 in memory (any non-zero byte loads as true). `And`, `Or`, `Not` take
  bool; both operands are evaluated (no short circuit), which no pure expression can notice.
- **Casts**: float to integer truncates towards zero; NaN gives 0 and what is out of range saturates (defined on every target).
  Integer to integer wraps; to bool is `!= 0`; bool to number is 0 or 1; to a narrower float rounds once to nearest even.
- **`Select`** evaluates both sides: an operand must be safe to evaluate even if it is not chosen (the pass
  `rewrite_unsafe_select` turns a Select with a risky side into `if_then_else`). **`tir.if_then_else`** evaluates only the
  chosen side: the other may read out of range. On vectors it decides lane by lane; loads of a lane that is off do not happen.
- **Loads**: an affine index is proved in range by lowering or checked at the call; a load out of range that reaches machine
  code is a bug of ours (the interpreter raises). A data-dependent index, `A[K[i]]`, is clamped in the address: the nearest
  element is read; `tir.data_index` of PassContext has it checked or trusted instead. A `predicate` (None is always
  true) that is false: a load gives 0 and touches no memory, a store writes nothing.
- **`Let`** binds its variable in its body; a Var is bound once in a function.
- **Types of the program** (`custom[name]32`) have the operators that it registers: see `passes/lower_datatypes.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from tedsl.errors import ArgumentError, DTypeError
from tedsl.ir.dtype import BOOL, HANDLE, INT32, DType, dtype, dtype_of_call, round_float
from tedsl.ir.node import FLOAT_PRODUCT, MASKED, POINTER, Node, kind_bit, node, set_field
from tedsl.ir.operators import ExprOperators, NamedCall, adopt
from tedsl.ir.ops import ACCESS_PTR, CALL_EXTERN, Op
from tedsl.ir.types import PointerType, PrimType
from tedsl.ir.wellformed import FlatAccess, check_access_lanes, check_condition, check_name, check_rank, last_of, producer_dtype

if TYPE_CHECKING:
    from typing_extensions import Self

    from tedsl.ir.buffer import Buffer
    from tedsl.ir.iters import IterVar


class Expr(ExprOperators, Node):
    """A scalar or vector value. Subtrees may be shared: an expression is a DAG. Every expression has a `dtype`."""

    __slots__ = ()
    dtype: DType


@node
class Var(Expr):
    """A named scalar or pointer. Two Vars with the same name are different variables. `dtype` may be a str, a DType, or a
    PointerType for the data of a buffer (then the dtype is handle)."""

    name: str
    dtype: DType = INT32
    type_annotation: PointerType | PrimType = field(init=False)

    def __post_init__(self) -> None:
        check_name(self.name, "a variable")
        given: Any = self.dtype
        points = isinstance(given, PointerType)
        of = HANDLE if points else given.dtype if isinstance(given, PrimType) else dtype(given)
        set_field(self, "dtype", of)
        set_field(self, "type_annotation", given if points else PrimType(of))

    def _own_kinds(self) -> int:
        return kind_bit(POINTER) if self.dtype is HANDLE else 0


@node
class SizeVar(Var):
    """A variable that is known to be at least 0: the extent of a shape."""


def pointer_var(name: str, element: DType, scope: str = "global") -> Var:
    """A variable that points to elements of dtype `element` in memory of that scope."""
    annotation: Any = PointerType(PrimType(element), scope)
    return Var(name, annotation)


@node
class IntImm(Expr):
    """An integer (or bool: 0 or 1) constant; `value` is representable in `dtype`."""

    dtype: DType
    value: int

    def __post_init__(self) -> None:
        if type(self.dtype) is not DType:
            set_field(self, "dtype", dtype(self.dtype))
        if self.value not in self.dtype.numbers:
            if not self.dtype.numbers:
                raise DTypeError(f"an IntImm has an integer dtype, not {self.dtype}", hint="write FloatImm or Broadcast")
            raise DTypeError(f"{self.value} does not fit {self.dtype} ({self.dtype.min_value} to {self.dtype.max_value})")

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


@node
class FloatImm(Expr):
    """A float constant. `value` is rounded to what `dtype` represents; it may be inf, -inf or nan."""

    dtype: DType
    value: float

    def __post_init__(self) -> None:
        if type(self.dtype) is not DType:
            set_field(self, "dtype", dtype(self.dtype))
        if not (self.dtype.is_float or self.dtype.is_custom) or self.dtype.lanes != 1:
            raise DTypeError(f"a FloatImm has a float dtype, not {self.dtype}", hint="write IntImm or Broadcast")
        set_field(self, "value", round_float(float(self.value), self.dtype))

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return self.value


@node
class StringImm(Expr):
    """A string: an argument of a call, the value of a pragma. Equal to a `str` of the same text."""

    value: str
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        set_field(self, "dtype", HANDLE)

    def __eq__(self, other: object) -> Any:
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other: object) -> Any:
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash(self.value)


class BinaryOp(Expr):
    """Base of operators on two operands of one dtype, which are scalars or vectors of equal lanes."""

    __slots__ = ()
    children: ClassVar[tuple[str, ...]] = ("a", "b")
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        of, other = self.a.dtype, self.b.dtype
        if of is not other:
            raise DTypeError(f"{type(self).__name__} of {of} and {other}: both operands need one dtype",
                             hint=f"cast one of them: .astype({str(of)!r})")
        self._set_dtype(of)

    def _set_dtype(self, operand: DType) -> None:
        set_field(self, "dtype", operand)

    def adopt(self) -> None:
        """Convert a Python number to the dtype of the other operand."""
        adopt(self, "a", "b")

    def child_nodes(self) -> list[Node]:
        return [self.a, self.b]

    def map_children(self, fn: Callable[[Any], Any]) -> Self:
        a, b = fn(self.a), fn(self.b)
        if a is self.a and b is self.b:
            return self
        made: Any = type(self)
        return made(a, b)  # type: ignore[no-any-return]


class CompareOp(BinaryOp):
    """Base of comparisons: the result is bool, with the lanes of the operands."""

    __slots__ = ()

    def _set_dtype(self, operand: DType) -> None:
        set_field(self, "dtype", BOOL if operand.lanes == 1 else BOOL.with_lanes(operand.lanes))


class LogicalOp(BinaryOp):
    """Base of And, Or: operands and result are bool."""

    __slots__ = ()

    def _set_dtype(self, operand: DType) -> None:
        if not operand.is_bool:
            raise DTypeError(f"{type(self).__name__} takes bool, not {operand}", hint="compare first, for example x != 0")
        set_field(self, "dtype", operand)


@node
class Add(BinaryOp):
    """`a + b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class Sub(BinaryOp):
    """`a - b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class Mul(BinaryOp):
    """`a * b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def _own_kinds(self) -> int:
        return kind_bit(FLOAT_PRODUCT) if self.dtype.is_float else 0


@node
class Div(BinaryOp):
    """`a / b`: IEEE division of floats; for integers rounded towards zero, 0 for a zero divisor."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class Mod(BinaryOp):
    """The remainder `a - trunc(a / b) * b` of integers, which has the sign of the dividend."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class FloorDiv(BinaryOp):
    """`a // b` of integers, rounded towards minus infinity."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class FloorMod(BinaryOp):
    """The remainder `a - (a // b) * b` of integers, which has the sign of the divisor."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class Min(BinaryOp):
    """The smaller operand; NaN if either is NaN."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class Max(BinaryOp):
    """The larger operand; NaN if either is NaN."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class EQ(CompareOp):
    """`a == b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class NE(CompareOp):
    """`a != b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class LT(CompareOp):
    """`a < b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class LE(CompareOp):
    """`a <= b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class GT(CompareOp):
    """`a > b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class GE(CompareOp):
    """`a >= b`."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class And(LogicalOp):
    """Logical and of two bools; both operands are evaluated."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class Or(LogicalOp):
    """Logical or of two bools; both operands are evaluated."""

    a: Expr
    b: Expr
    dtype: DType = field(init=False)


@node
class Not(Expr):
    """Logical negation of a bool."""

    a: Expr
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("a",)

    def __post_init__(self) -> None:
        if not self.a.dtype.is_bool:
            raise DTypeError(f"Not takes bool, not {self.a.dtype}", hint="compare first, for example x != 0")
        set_field(self, "dtype", self.a.dtype)


@node
class Select(Expr):
    """`true_value` where `condition`, else `false_value`; both are evaluated. A scalar condition may choose vectors."""

    condition: Expr
    true_value: Expr
    false_value: Expr
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("condition", "true_value", "false_value")

    def adopt(self) -> None:
        """Convert a Python number to the dtype of the other value."""
        adopt(self, "condition")
        adopt(self, "true_value", "false_value")

    def __post_init__(self) -> None:
        check_condition(self.condition, self)
        if self.true_value.dtype is not self.false_value.dtype:
            raise DTypeError(f"Select chooses between {self.true_value.dtype} and {self.false_value.dtype}",
                             hint="cast one of them with .astype")
        set_field(self, "dtype", self.true_value.dtype)


@node
class Cast(Expr):
    """`value` converted to `dtype`, of equal lanes."""

    dtype: DType
    value: Expr
    children: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        if type(self.dtype) is not DType:
            set_field(self, "dtype", dtype(self.dtype))
        if self.dtype.lanes != self.value.dtype.lanes:
            raise DTypeError(f"a cast from {self.value.dtype} to {self.dtype} changes the number of lanes")


@node
class Let(Expr):
    """`body` in which `var` stands for `value`."""

    var: Var
    value: Expr
    body: Expr
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("value", "body")
    binders: ClassVar[tuple[str, ...]] = ("var",)

    def __post_init__(self) -> None:
        set_field(self, "dtype", self.body.dtype)


@node
class Call(NamedCall, Expr):
    """A call of the intrinsic or external function `op` (described in `ops.py`). dtype None: the call has no value."""

    dtype: DType
    op: Op
    args: tuple[Expr, ...]
    children: ClassVar[tuple[str, ...]] = ("args",)

    def adopt(self) -> None:
        """Look up an operator that is given by its name; a function of the module, a GlobalVar, is called by its name."""
        if hasattr(self.op, "name_hint"):
            set_field(self, "args", (StringImm(self.op.name_hint), *self.args))
        set_field(self, "op", CALL_EXTERN if hasattr(self.op, "name_hint") else Op.get(self.op))

    def __post_init__(self) -> None:
        if type(self.dtype) is not DType:
            set_field(self, "dtype", dtype_of_call(self.dtype))
        if self.op is ACCESS_PTR and self.dtype is not HANDLE:
            set_field(self, "dtype", HANDLE)  # programs write what it points to

    def _own_kinds(self) -> int:
        return kind_bit(self.op)


@node
class Ramp(Expr):
    """The vector base, base + stride, ..., base + (lanes - 1) * stride."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("base", "stride")

    def adopt(self) -> None:
        """Convert a Python number to the dtype of the other operand."""
        adopt(self, "base", "stride")

    def __post_init__(self) -> None:
        if self.base.dtype is not self.stride.dtype:
            raise DTypeError(f"Ramp from {self.base.dtype} by {self.stride.dtype}: both need one dtype")
        if self.lanes < 2 or self.base.dtype.lanes != 1:
            raise DTypeError(f"Ramp makes vectors of at least 2 lanes from scalars, not {self.lanes} of {self.base.dtype}")
        set_field(self, "dtype", self.base.dtype.with_lanes(self.lanes))


@node
class Broadcast(Expr):
    """The vector with `value`, a scalar, in each of `lanes` lanes."""

    value: Expr
    lanes: int
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        if self.lanes < 2 or self.value.dtype.lanes != 1:
            raise DTypeError(f"Broadcast makes vectors of at least 2 lanes from scalars, not {self.lanes} of "
                             f"{self.value.dtype}")
        set_field(self, "dtype", self.value.dtype.with_lanes(self.lanes))


@node
class Shuffle(Expr):
    """Lanes `indices` (constants) of the concatenated `vectors`; one index gives a scalar."""
    vectors: tuple[Expr, ...]
    indices: tuple[Expr, ...]
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("vectors", "indices")

    def __post_init__(self) -> None:
        if not self.vectors or not self.indices:
            raise ArgumentError("Shuffle of no vectors, or of no lanes of them", hint="for example Shuffle([a, b], [0, 1])")
        element = self.vectors[0].dtype.element
        lanes = sum(v.dtype.lanes for v in self.vectors)
        if any(v.dtype.element is not element for v in self.vectors):
            raise DTypeError("Shuffle of vectors of different dtypes")
        if not 0 <= last_of(self.indices) < lanes:
            raise DTypeError(f"Shuffle takes constant indices from 0 to {lanes - 1}")
        set_field(self, "dtype", element.with_lanes(len(self.indices)))


@node
class Load(FlatAccess, Expr):
    """Elements of a buffer variable, after `flatten_storage`. A vector `index` gathers; a number is the first of a sequence."""

    dtype: DType
    buffer_var: Var
    index: Expr
    predicate: Expr | None = None
    children: ClassVar[tuple[str, ...]] = ("index", "predicate")

    def __post_init__(self) -> None:
        if type(self.dtype) is not DType:
            set_field(self, "dtype", dtype(self.dtype))
        if self.dtype.lanes > 1 and self.index.dtype.lanes == 1:
            set_field(self, "index", Ramp(self.index, IntImm(self.index.dtype, 1), self.dtype.lanes))
        check_access_lanes(self.dtype, self.index, self.predicate, self)

    def _own_kinds(self) -> int:
        return 0 if self.predicate is None else kind_bit(MASKED)


@node
class BufferLoad(Expr):
    """The element of `buffer` at multi-dimensional `indices`, before `flatten_storage`; the last may be a vector."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("indices",)

    def __post_init__(self) -> None:
        check_rank(self.buffer, self.indices)
        lanes = self.indices[-1].dtype.lanes if self.indices else 1
        set_field(self, "dtype", self.buffer.dtype.with_lanes(self.buffer.dtype.lanes * lanes))


@node
class ProducerLoad(Expr):
    """The element of a tensor at `indices`; occurs in formulas only, not in loops."""

    producer: Any  # a tensor of the language: it has shape, dtype and name
    indices: tuple[Expr, ...]
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("indices",)

    def __post_init__(self) -> None:
        set_field(self, "dtype", producer_dtype(self.producer, "ProducerLoad"))


@node
class CommReducer(Node):
    """An associative, commutative combiner of tuples: from `lhs` and `rhs` variables to `result`, with its identity."""

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity_element: tuple[Expr, ...]
    children: ClassVar[tuple[str, ...]] = ("result", "identity_element")
    binders: ClassVar[tuple[str, ...]] = ("lhs", "rhs")


@node
class Reduce(Expr):
    """The value number `value_index` of `source` combined over `axis` where `condition`.

    `init` (empty, or one per source) replaces the combiner's identity as the start value.
    """

    combiner: CommReducer
    source: tuple[Expr, ...]
    axis: tuple[IterVar, ...]
    condition: Expr
    value_index: int
    init: tuple[Expr, ...] = ()
    dtype: DType = field(init=False)
    children: ClassVar[tuple[str, ...]] = ("source", "condition", "init")
    binders: ClassVar[tuple[str, ...]] = ("axis",)

    def __post_init__(self) -> None:
        check_condition(self.condition, self)
        if not 0 <= self.value_index < len(self.source):
            raise ArgumentError(f"Reduce: value_index is {self.value_index}, and there are {len(self.source)} values")
        set_field(self, "dtype", self.source[self.value_index].dtype)
