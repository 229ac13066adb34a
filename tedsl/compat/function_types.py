"""Types of tensors and functions, by TVM's names, and places in source text. Loops have only scalars and pointers (types.py);
programs make these to describe what they pass on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.dtype import FLOAT32, DType, dtype
from tedsl.ir.types import Type
from tedsl.ir.walk.equal import structural_equal
from tedsl.record import record


class TypeKind(IntEnum):
    """What a variable of types stands for, with TVM's numbers."""

    Type = 0
    ShapeVar = 1
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


@record
class TypeVar(Type):
    """A type that is not known yet, by name."""

    name_hint: str
    kind: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", TypeKind(self.kind))

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


@record
class GlobalTypeVar(TypeVar):
    """A type that is defined elsewhere, by name."""


@record
class TypeCall(Type):
    """The type that a type of functions gives for arguments."""

    func: Type
    args: Sequence[Type]

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", Array(self.args))


@record(eq=False)
class TensorType(Type):
    """Tensors of a shape, whose dimensions may be expressions, and a dtype."""

    shape: Any
    dtype: DType = FLOAT32

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (tuple, list)):
            raise ArgumentTypeError(f"TensorType: the shape is a list of dimensions, not {self.shape!r}")
        object.__setattr__(self, "shape", Array([build.as_expr(dim) for dim in self.shape]))
        object.__setattr__(self, "dtype", dtype(self.dtype))

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The dimensions as ints."""
        return tuple([int(dim) for dim in self.shape])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.dtype is other.dtype and structural_equal(self.shape, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, len(self.shape)))

    def __str__(self) -> str:
        return f"Tensor[({', '.join(map(str, self.shape))}), {self.dtype}]"


@record
class TupleType(Type):
    """Tuples of values of these types."""

    fields: Sequence[Type]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", Array(self.fields))


class TypeConstraint(Type):
    """Base of conditions on types."""


@record
class TypeRelation(TypeConstraint):
    """That `func` gives the last of `args`, types, from the first `num_inputs` of them."""

    func: Any
    args: Sequence[Type]
    num_inputs: int
    attrs: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", Array(self.args))


@record
class FuncType(Type):
    """Functions from values of `arg_types` to one of `ret_type`, for all types that `type_params` may stand for."""

    arg_types: Sequence[Type]
    ret_type: Type | None
    type_params: Sequence[TypeVar] | None = None
    type_constraints: Sequence[TypeConstraint] | None = None

    def __post_init__(self) -> None:
        for name in ("arg_types", "type_params", "type_constraints"):
            object.__setattr__(self, name, Array(getattr(self, name) or ()))


@record
class IncompleteType(Type):
    """A type that is to be found."""

    kind: TypeKind = TypeKind.Type


@record
class RelayRefType(Type):
    """References to values of a type."""

    value: Type


@record
class SourceName:
    """The name of a source text."""

    name: str


@record
class Span:
    """A part of a source text: lines and columns from where it begins to where it ends."""

    source_name: SourceName
    line: int
    end_line: int
    column: int
    end_column: int


@record
class SequentialSpan:
    """Several parts of source texts."""

    spans: Sequence[Span] = field(default_factory=Array)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spans", Array(self.spans))
