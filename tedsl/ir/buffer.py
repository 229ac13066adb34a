"""Buffers: a pointer with shape, strides and dtype. Memory as loops see it before `flatten_storage`."""

from __future__ import annotations

from typing import Any, ClassVar

from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tedsl.ir import build
from tedsl.ir.dtype import HANDLE, DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import BufferLoad, Call, Expr, Ramp, Var, pointer_var
from tedsl.ir.node import Node, node
from tedsl.ir.ops import ACCESS_PTR, TYPE_ANNOTATION
from tedsl.ir.stmt import BufferStore
from tedsl.ir.types import PointerType


@node
class Buffer(Node):
    """An array of `dtype` in the memory at `data`: element [i, j] is at elem_offset + i * strides[0] + j * strides[1].

    strides: in elements; empty means compact row-major. elem_offset: in elements.
    data_alignment: alignment of the address of `data` in bytes (0: that of one element).
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

    def access_ptr(self, access_mask: int | str, ptr_type: object = "handle", content_lanes: int = 1, offset: Any = 0) -> Expr:
        """The address of element `offset` (in elements of the memory) as an argument of an external function.

        access_mask: how the function accesses the memory, "r", "w" or "rw" (or READ, WRITE, both). content_lanes: the unit, in
        elements, of the offset and extent of the call. ptr_type: accepted and ignored, since addresses are untyped.
        """
        as_dtype(ptr_type)
        mask = _access_mask(access_mask, self.name)
        skipped = build.as_expr(offset)
        if not skipped.dtype.is_integer or skipped.dtype.lanes != 1:
            raise DTypeError(f"access_ptr of buffer {self.name}: the offset {offset!r} is {skipped.dtype}, not an integer",
                             hint="it counts elements of the memory: write a whole number, // where it is computed")
        size = build.mul(self.strides[0], self.shape[0]) if self.strides else build.const(1, "int32")
        for dim in () if self.strides else self.shape:
            size = build.mul(size, dim)
        size, at = build.sub(size, skipped), build.add(self.elem_offset, skipped)
        of = self.dtype
        if content_lanes > 1:
            of = of.with_lanes(of.lanes * content_lanes)
            size, at = build.floordiv(size, content_lanes), build.floordiv(at, content_lanes)
        marker = Call(of, TYPE_ANNOTATION, ())
        return Call(HANDLE, ACCESS_PTR, (marker, self.data, at, size, build.const(mask, "int32")))

    def offset_of(self, indices: Any) -> tuple[Expr, ...]:
        """Where the element at `indices` is in the memory of `data`, in elements, as a tuple of one expression.

        Raises ShapeError unless there is an index for each dimension.
        """
        given = tuple(build.as_expr(i) for i in (indices if isinstance(indices, (tuple, list)) else (indices,)))
        if len(given) != len(self.shape):
            raise ShapeError(f"offset_of: buffer {self.name} has {len(self.shape)} dimensions, {len(given)} indices are given",
                             hint="give one index for each dimension")
        return (build.add(flat_index(given, self.shape, self.strides), self.elem_offset),)

    def vload(self, begin: Any, dtype: object = None) -> Expr:
        """The element at `begin`, or the vector `dtype` of consecutive elements from there."""
        of = self.dtype if dtype is None else as_dtype(dtype)
        return BufferLoad(self, self._lanes_from(begin, of, "vload"))

    def vstore(self, begin: Any, value: Any) -> BufferStore:
        """The statement that stores `value`, an element or a vector, from `begin` on."""
        stored = build.as_expr(value, self.dtype)
        return BufferStore(self, stored, self._lanes_from(begin, stored.dtype, "vstore"))

    def _lanes_from(self, begin: Any, of: DType, what: str) -> tuple[Expr, ...]:
        """The indices of the access of a value of dtype `of` at `begin`; the last one is a Ramp for a vector."""
        given = begin if isinstance(begin, (tuple, list)) else (begin,)
        indices = tuple(build.as_expr(i) for i in given)
        if of.element is not self.dtype.element or of.lanes % self.dtype.lanes:
            raise DTypeError(f"{what} of {of} from buffer {self.name} of {self.dtype}",
                             hint=f"use {self.dtype.element} with any number of lanes, then reinterpret or cast")
        if len(indices) != len(self.shape):
            raise ShapeError(f"{what}: buffer {self.name} has {len(self.shape)} dimensions, {len(indices)} indices are given")
        lanes = of.lanes // self.dtype.lanes
        if lanes == 1 or not indices:
            return indices
        last = indices[-1]
        return (*indices[:-1], Ramp(last, build.const(1, last.dtype), lanes))


def _access_mask(mask: int | str, name: str) -> int:
    """The bit mask that `mask` gives as "r", "w", "rw" or a number: READ, WRITE or both; ArgumentError for any other."""
    if isinstance(mask, str) and mask and set(mask) <= {"r", "w"}:
        return Buffer.READ * ("r" in mask) | Buffer.WRITE * ("w" in mask)
    if isinstance(mask, int) and not isinstance(mask, bool) and 1 <= mask <= 3:
        return mask
    raise ArgumentError(f"access_ptr of buffer {name}: the access mask is {mask!r}", hint='write "r", "w" or "rw"')


def decl_buffer(shape: Any, dtype: object = None, name: str = "buffer", data: Var | None = None, strides: Any = None,
                elem_offset: Any = None, scope: str = "", data_alignment: int = -1, offset_factor: int = 0,
                buffer_type: str = "") -> Buffer:
    """A buffer of `shape` and `dtype` (None: float32); a new data pointer unless `data` is given. buffer_type
    "auto_broadcast": dimensions of extent 1 are read as of any extent; the strides are new variables unless given.

    This is `tir.decl_buffer` of the public API.
    """
    given = (("name", name, isinstance(name, str), "a string"), ("scope", scope, isinstance(scope, str), "a string"),
             ("data", data, data is None or isinstance(data, Var), "a variable that is a pointer"),
             ("strides", strides, strides is None or isinstance(strides, (list, tuple)), "a list"),
             ("data_alignment", data_alignment, isinstance(data_alignment, int), "a number of bytes"),
             ("offset_factor", offset_factor, isinstance(offset_factor, int), "a whole number"),
             ("buffer_type", buffer_type, isinstance(buffer_type, str), "a string"))
    for what, value, fits, wanted in given:
        if not fits:
            raise ArgumentTypeError(f"decl_buffer of {name}: {what} is {value!r}, not {wanted}")
    dims = build.as_shape(shape, f"buffer {name}")
    element = as_dtype("float32" if dtype is None else dtype)
    pointer = data if data is not None else pointer_var(name, element, scope)
    offset = build.as_expr(elem_offset) if elem_offset is not None else (
        Var(f"{name}_elem_offset") if offset_factor else build.const(0, "int32"))
    steps = () if strides is None else tuple(build.as_expr(s) for s in strides)
    if buffer_type == "auto_broadcast" and not steps:
        steps = tuple([Var("stride", dim.dtype) for dim in dims])  # 0 for a dimension of extent 1, which the call tells
    for number in (offset, *steps):
        if not number.dtype.is_integer or number.dtype.lanes != 1:
            raise DTypeError(f"decl_buffer of {name}: strides and elem_offset count elements, and {number!r} is {number.dtype}")
    if strides is not None and steps and len(steps) != len(dims):
        raise ShapeError(f"buffer {name} has {len(dims)} dimensions and {len(steps)} strides",
                         hint="strides has an entry for each dimension: how many elements lie between neighbours along it")
    return Buffer(pointer, element, tuple(dims), steps, offset, name, max(data_alignment, 0), offset_factor,
                  "" if buffer_type == "default" else buffer_type)


def array_of(buffer: Buffer) -> Expr:
    """`buffer` as an argument of `call_packed`."""
    shape = build.call("tir.tvm_stack_make_shape", *buffer.shape, dtype_="handle")
    strides = build.call("tir.tvm_stack_make_shape", *buffer.strides, dtype_="handle") if buffer.strides else build.const(0)
    return build.call("tir.tvm_stack_make_array", buffer.data, shape, strides, len(buffer.shape), build.const(0, buffer.dtype),
                      buffer.elem_offset, dtype_="handle")


# --- positions in memory: a ramp of indices stays a ramp ------------------------------------------------------------

def flat_index(indices: tuple[Expr, ...], shape: tuple[Expr, ...], strides: tuple[Expr, ...]) -> Expr:
    """Returns the position, in elements, of the element at `indices`; without `strides` the array is compact and row-major."""
    if not indices:
        return build.const(0, "int32")
    if strides:
        flat = _scaled(indices[0], strides[0])
        for index, stride in zip(indices[1:], strides[1:]):
            flat = shifted(_scaled(index, stride), flat, left=True)
        return flat
    flat = indices[0]
    for index, extent in zip(indices[1:], shape[1:]):
        flat = shifted(index, build.mul(flat, extent), left=True)
    return flat


def _scaled(index: Expr, stride: Expr) -> Expr:
    if isinstance(index, Ramp):
        return Ramp(*build.match_operands(build.mul(index.base, stride), build.mul(index.stride, stride)), index.lanes)
    return build.mul(index, stride)


def shifted(index: Expr, offset: Expr, *, left: bool = False) -> Expr:
    """Returns index + offset (offset first if `left`: the order that users read); a ramp stays a ramp."""
    if isinstance(index, Ramp) and offset.dtype.lanes == 1:
        base = shifted(index.base, offset, left=left)
        return Ramp(base, build.cast(base.dtype, index.stride), index.lanes)
    return build.add(offset, index) if left else build.add(index, offset)
