"""Types of variables: a scalar of a dtype, or a pointer to such scalars in a memory scope."""

from __future__ import annotations

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.wellformed import check_name
from tedsl.record import record

MEMORY_SCOPES = ("global", "shared", "local", "warp", "texture", "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator")


def is_scope(scope: str) -> bool:
    """Whether `scope` is a memory scope, possibly with a tag ("local.L1", "global:texture", "local_TB"), or "", which leaves it
    open.
    """
    known = any(scope == kind or scope.startswith((f"{kind}.", f"{kind}:"))
                or (scope.startswith(f"{kind}_") and scope != f"{kind}_")
                for kind in MEMORY_SCOPES)
    return not scope or (known and scope.isprintable())


def memory_kind(scope: str) -> str:
    """The kind of memory of `scope`, without its tag: "local" of "local.L1", "global" of "global:texture"."""
    return scope.replace(":", ".").replace("_", ".").split(".")[0]


def check_scope(scope: object, what: str) -> None:
    """Raise ArgumentTypeError or ArgumentError unless `scope` is a memory scope; `what` opens the message."""
    if not isinstance(scope, str):
        raise ArgumentTypeError(f"{what}: the scope is a string, not {scope!r}", hint='for example "local"')
    if not is_scope(scope):
        raise ArgumentError(f"{what}: there is no memory scope {scope!r}", hint=f"choose one of {', '.join(MEMORY_SCOPES)}")


class Type:
    """Base of types."""

    span = None  # TVM's place in source text


@record
class PrimType(Type):
    """A scalar (or vector) of `dtype`."""

    dtype: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtype(self.dtype))

    def __str__(self) -> str:
        return str(self.dtype)


@record
class PointerType(Type):
    """A pointer to elements of `element_type` in memory of `storage_scope`; the scope "" is global memory."""

    element_type: PrimType
    storage_scope: str = ""

    def __post_init__(self) -> None:
        check_name(self.storage_scope, "a memory scope")
