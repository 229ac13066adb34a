"""Buffers: a pointer with shape, strides and dtype. Memory as loops see it before `flatten_storage`."""

from __future__ import annotations

from typing import Any, ClassVar

from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import Expr, Var, pointer_var
from tedsl.ir.node import Node, node
from tedsl.ir.types import PointerType


@node
class Buffer(Node):
    """Elements of `dtype` at `data`: element [i, j] stands at elem_offset + i * strides[0] + j * strides[1].

    strides: in elements; empty means compact row-major. elem_offset: in elements.
    data_alignment: bytes that divide the address of `data` (0: that of one element).
    offset_factor: elem_offset is a multiple of it (0: elem_offset is 0 unless given).
    buffer_type: "" or "auto_broadcast" (dimensions of extent 1 have stride 0), "auto" prints for symbolic strides.
    scope: "global", "local", "shared", ...
    """

    data: Var
    dtype: DType
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    elem_offset: Expr
    name: str
    data_alignment: int = 0
    offset_factor: int = 0
    buffer_type: str = ""
    children: ClassVar[tuple[str, ...]] = ("shape", "strides", "elem_offset")
    binders: ClassVar[tuple[str, ...]] = ("data",)

    READ: ClassVar[int] = 1
    WRITE: ClassVar[int] = 2

    def scope(self) -> str:
        """The memory scope, from the type of the data pointer."""
        annotation = self.data.type_annotation
        return (annotation.storage_scope or "global") if isinstance(annotation, PointerType) else "global"


def decl_buffer(shape: Any, dtype: object = None, name: str = "buffer", data: Var | None = None, strides: Any = None,
                elem_offset: Any = None, scope: str = "", data_alignment: int = -1, offset_factor: int = 0,
                buffer_type: str = "") -> Buffer:
    """A buffer of `shape` and `dtype` (None: float32); a new data pointer unless `data` is given.

    `tir.decl_buffer` of the public API.
    """
    dims = build.as_shape(shape, f"buffer {name}")
    element = as_dtype("float32" if dtype is None else dtype)
    pointer = data if data is not None else pointer_var(name, element, scope)
    offset = build.as_expr(elem_offset) if elem_offset is not None else (
        Var(f"{name}_elem_offset") if offset_factor else build.const(0, "int32"))
    steps = () if strides is None else tuple(build.as_expr(s) for s in strides)
    if strides is not None and steps and len(steps) != len(dims):
        from tedsl.errors import ShapeError

        raise ShapeError(f"buffer {name} has {len(dims)} dimensions and {len(steps)} strides")
    return Buffer(pointer, element, dims, steps, offset, name, max(data_alignment, 0), offset_factor,
                  "" if buffer_type == "default" else buffer_type)
