"""What the names of `T` make that are no expressions: buffers, loops, axes of blocks, and what encloses statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentTypeError, ExpressionError, ShapeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import BufferLoad, Expr, Load, Ramp, Var
from tedsl.ir.stmt import BufferStore, ForKind, Stmt, Store
from tedsl.record import record

_NO_NUMBERS = ("inf", "-inf", "nan")  # floats that Python has no literals for


class Scalar:
    """`T.int32`: the dtype of a parameter; `T.int32()` is a variable that a size gives; `T.int32(x)` is x in it, and
    `T.float32("-inf")` a float that is no number.
    """

    def __init__(self, name: str) -> None:
        self.dtype = as_dtype(name)

    def __call__(self, value: Any = None, *, is_size_var: bool = False) -> Any:
        if isinstance(value, str):
            if self.dtype.is_float and value in _NO_NUMBERS:
                return build.const(float(value), self.dtype)
            raise ExpressionError(f"T.{self.dtype}({value!r}): a string is no number",
                                  hint='a float that Python has no literal for is T.float32("inf"), "-inf" or "nan"')
        if value is None:
            return Declared(lambda name: Var(name, self.dtype))
        return build.cast(self.dtype, value) if isinstance(value, Expr) else build.const(value, self.dtype)


@record
class Declared:
    """What gets the name to which it is assigned."""

    make: Callable[[str], Any]


class BufferType:
    """`T.Buffer((8, n), "float32")`: a parameter of a function, or a buffer that is assigned to a name."""

    def __init__(self, shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None,
                 scope: str = "global", align: int = 0, offset_factor: int = 0, buffer_type: str = "",
                 axis_separators: Any = None) -> None:
        self.shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        self.dtype, self.data, self.scope = dtype, data, scope
        self.options = {"strides": list(strides) if strides else None, "elem_offset": elem_offset,
                        "data_alignment": max(align, 0), "offset_factor": offset_factor, "buffer_type": buffer_type}

    def __class_getitem__(cls, key: Any) -> BufferType:
        """`T.Buffer[(8,), "float32"]`, as TVM 0.10 writes it."""
        return cls(*key) if isinstance(key, tuple) and any(isinstance(part, str) for part in key) else cls(key)

    def named(self, name: str) -> Any:
        """The buffer of this name; over a pointer, its flat memory."""
        if self.data is not None:
            return Flat(self.data, as_dtype(self.dtype), build.as_shape(self.shape, f"buffer {name}"))
        return decl_buffer(self.shape, self.dtype, name, scope="" if self.scope == "global" else self.scope, **self.options)


@record
class Flat:
    """Memory at a pointer that is accessed by elements, in rows of `shape`."""

    data: Var
    dtype: DType
    shape: tuple[Expr, ...]

    @property
    def name(self) -> str:
        return self.data.name


@record
class Memory:
    """`T.allocate([4], "float32", "global")`, before it has a name."""

    extents: Sequence[Any]
    dtype: str
    scope: str


@record
class Loops:
    """What `T.grid(n, m)` and its kin iterate over: begin and extent of each loop."""

    ranges: tuple[tuple[Any, Any], ...]
    kind: ForKind = ForKind.SERIAL
    thread: str = ""
    annotations: Any = None


@record
class Axis:
    """An axis of a block: `T.axis.reduce(8, k)`."""

    begin: Any
    value: Any
    is_reduction: bool


@record
class Enclosing:
    """What holds for the statements after it, or for those of its `with` block. around: the whole, by their sequence.

    value: of the name that it is assigned to.
    """

    around: Callable[[Stmt], Stmt]
    value: Any = None


def indices_of(key: Any) -> tuple[Any, ...]:
    """Indices as they are written; a slice `i:i + 4` as a vector."""
    parts = key if isinstance(key, tuple) else (key,)
    return tuple([_vector(part) if isinstance(part, slice) else part for part in parts])


def _vector(part: slice) -> Expr:
    step = 1 if part.step is None else part.step
    begin = build.as_expr(0 if part.start is None else part.start)
    lanes = build.as_int(build.sub(build.as_expr(part.stop), begin)) if part.stop is not None else None
    if lanes is None and part.stop is not None:
        lanes = build.as_int(Analyzer().simplify(build.sub(build.as_expr(part.stop), begin)))
    if lanes is None or lanes <= 0:
        raise ShapeError(f"a slice of {part.start}:{part.stop} elements is no vector of a known length",
                         hint="T.ramp(begin, 1, lanes)")
    return Ramp(begin, build.as_expr(step), lanes // step if isinstance(step, int) else lanes)


def _flat_index(memory: Flat, indices: Sequence[Any]) -> Expr:
    if len(indices) != len(memory.shape):
        raise ShapeError(f"{memory.name} has {len(memory.shape)} dimensions and is accessed with {len(indices)} indices")
    flat = build.as_expr(indices[0]) if indices else build.const(0, "int32")
    for extent, index in zip(memory.shape[1:], indices[1:]):
        flat = build.add(build.mul(flat, extent), index)
    return flat


def load(memory: Any, key: Any) -> Any:
    """`memory[key]` in an expression: an element, or a vector, of a buffer; else what Python makes of it."""
    if isinstance(memory, Buffer):
        return BufferLoad(memory, tuple(map(build.as_expr, indices_of(key))))
    if isinstance(memory, Flat):
        flat = _flat_index(memory, indices_of(key))
        return Load(memory.dtype.with_lanes(flat.dtype.lanes), memory.data, flat)
    return memory[key]


def vload(memory: Any, begin: Any, dtype: Any = None, predicate: Any = None) -> Any:
    """`memory.vload([begin], "float32x8", predicate=mask)`: a vector, of which the lanes are read where the mask holds."""
    if predicate is None and not isinstance(memory, Flat):
        return memory.vload(begin) if dtype is None else memory.vload(begin, dtype)
    place = _place(memory, begin)
    return Load(memory.dtype.with_lanes(place.dtype.lanes) if dtype is None else as_dtype(dtype), memory.data, place, predicate)


def vstore(memory: Any, begin: Any, value: Any, predicate: Any = None) -> Any:
    """`memory.vstore([begin], value, predicate=mask)`: the lanes of the value where the mask holds are written."""
    if predicate is None and not isinstance(memory, Flat):
        return memory.vstore(begin, value)
    return Store(memory.data, build.as_expr(value, like=memory.dtype.element), _place(memory, begin), predicate)


def _place(memory: Any, begin: Any) -> Expr:
    """The place in the memory of a buffer, in elements, at indices of which the last may be a vector."""
    indices = indices_of(tuple(begin) if isinstance(begin, list) else begin)
    if isinstance(memory, Flat):
        return _flat_index(memory, indices)
    if not isinstance(memory, Buffer):
        raise ArgumentTypeError(f"a vector of {type(memory).__name__} cannot be read or written: only those of buffers can")
    (place,) = memory.offset_of(indices)
    return place


def store(memory: Any, key: Any, value: Any) -> Stmt:
    """`memory[key] = value`: numbers take the dtype of the buffer, scalars are broadcast over vectors."""
    if not isinstance(memory, (Buffer, Flat)):
        raise ArgumentTypeError(f"an element of {type(memory).__name__} cannot be assigned: only elements of buffers can")
    indices = tuple(map(build.as_expr, indices_of(key)))
    lanes = max([index.dtype.lanes for index in indices], default=1)
    stored = build.as_expr(value, like=memory.dtype.element) if isinstance(value, (bool, int, float)) else build.as_expr(value)
    if lanes > stored.dtype.lanes:
        stored = build.cast(stored.dtype.with_lanes(lanes), stored)
    if isinstance(memory, Buffer):
        return BufferStore(memory, stored, indices)
    return Store(memory.data, stored, _flat_index(memory, indices))
