"""Types of variables: a scalar of a dtype, or a pointer to such scalars in a memory scope."""

from __future__ import annotations

from dataclasses import dataclass

from tedsl.ir.dtype import DType, dtype


@dataclass(frozen=True)
class PrimType:
    """A scalar (or vector) of `dtype`."""

    dtype: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtype(self.dtype))

    def __str__(self) -> str:
        return str(self.dtype)


@dataclass(frozen=True)
class PointerType:
    """A pointer to elements of `element_type` in memory of `storage_scope`; the scope "" is global memory."""

    element_type: PrimType
    storage_scope: str = ""
