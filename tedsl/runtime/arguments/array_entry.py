"""The entry point that kernels of arrays of constant shapes share, in LLVM IR, and the tables by which it checks their calls.

    PyObject *tedsl_call_arrays(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)

It is a METH_FASTCALL | METH_KEYWORDS function, compiled once for a process: what it requires of the arguments stands in the
table of the kernel, bytes to which `self`, the checked call in Python (`runtime/call.py`), refers. As in the entry points that
are compiled for one kernel (`codegen/llvm/entry/numpy_arrays.py`), which others need, any argument that fails a check goes
there, to be converted or refused with a message. So a check here may be stricter than the rule, never laxer.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache

from tedsl.ir.expr import IntImm
from tedsl.runtime.layout import ALIGNED, C_CONTIGUOUS, NUMBERS, WRITEABLE, Layout, array_layout
from tedsl.runtime.signature import Signature, TensorParam

SYMBOL = "tedsl_call_arrays"
MOST_ARRAYS = 32  # of a kernel that has a table
RELEASE_BYTES = 64 * 1024  # of arrays whose kernel runs without the GIL: releasing it takes 40 ns, the kernel microseconds
TABLE_OFFSET = object.__basicsize__  # in a checked call, of the reference to its table
_BYTES_OFFSET = bytes.__basicsize__ - 1  # of the first byte in an object of Python

# A table: the address of `i32 (ptr slots)`, the number of arrays, whether the GIL is released, the number of outputs that may
# overlap no other array, their positions; then for each array two of numpy's numbers of its dtype, flags that it must have, its
# rank, its bytes, and its extents.
_HEAD, _ARRAY, _NUMBER = struct.Struct("<qqq"), struct.Struct("<iiiiq"), struct.Struct("<q")


def table_of(sig: Signature, runs_long: bool) -> bytes | None:
    """Returns the table of a kernel without the address; None for a signature that needs an entry point of its own.

    runs_long: every call releases the GIL.
    """
    params = [param for param in sig.params if isinstance(param, TensorParam) and _is_constant(param)]
    if not 0 < len(params) == len(sig.params) <= MOST_ARRAYS or sig.scalars or sig.result is not None:
        return None
    shapes = [[dim.value for dim in param.shape if isinstance(dim, IntImm)] for param in params]
    if min(map(min, filter(None, shapes)), default=0) < 0:
        return None
    sizes = [_size(shape, param.dtype.bytes) for shape, param in zip(shapes, params)]
    if sum(sizes) >= 2**63:
        return None
    apart = [k for k, param in enumerate(params) if param.written] if sig.noalias and len(params) > 1 else []
    pieces = [_HEAD.pack(len(params), runs_long or sum(sizes) >= RELEASE_BYTES, len(apart)), *map(_NUMBER.pack, apart)]
    for param, shape, size in zip(params, shapes, sizes):
        numbers = NUMBERS[str(param.dtype)]
        flags = ALIGNED | C_CONTIGUOUS | (WRITEABLE if param.written else 0)
        pieces += [_ARRAY.pack(numbers[0], numbers[-1], flags, len(shape), size), *map(_NUMBER.pack, shape)]
    return b"".join(pieces)


def with_address(table: bytes, call: int) -> bytes:
    """Returns a table with the address of the kernel."""
    return _NUMBER.pack(call) + table


def refers_to(holder: object, table: bytes) -> bool:
    """Tells whether the entry point finds `table` in `holder`."""
    return ctypes.c_void_p.from_address(id(holder) + TABLE_OFFSET).value == id(table) and _shows_bytes()


def _is_constant(param: TensorParam) -> bool:
    """Tells whether all extents are numbers, the elements compact, and numpy has a number for the dtype in every process."""
    return not param.strides and all(isinstance(dim, IntImm) for dim in param.shape) \
        and str(param.dtype) in NUMBERS and param.dtype != "bfloat16"


def _size(shape: list[int], element: int) -> int:
    """Returns the bytes of an array."""
    for dim in shape:
        element *= dim
    return element


@cache
def _shows_bytes() -> bool:
    """Tells whether bytes stand where the entry point reads them."""
    sample = b"as they are"
    return ctypes.string_at(id(sample) + _BYTES_OFFSET, len(sample)) == sample


def array_entry_source() -> str:
    """Returns the IR of `tedsl_call_arrays`."""
    layout = array_layout()
    assert layout is not None  # without it no function is made with an entry point
    return _source(layout)


def _source(at: Layout) -> str:
    return f"""
@fail = private unnamed_addr constant [5 x i8] c"fail\\00"
@format = private unnamed_addr constant [2 x i8] c"i\\00"
@refuse_names = private unnamed_addr constant [13 x i8] c"refuse_names\\00"
@object = private unnamed_addr constant [2 x i8] c"O\\00"
@tedsl_type_ndarray = external global i8
@tedsl_type_NDArray = external global i8
@tedsl_none = external global i8
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyObject_CallMethod(ptr, ptr, ptr, ...)
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)

define ptr @{SYMBOL}(ptr %self, ptr %args, i64 %count, ptr %names) nounwind {{
entry:
  %slots = alloca [{MOST_ARRAYS} x ptr], align 8
  %ends = alloca [{MOST_ARRAYS} x ptr], align 8
  %table_at = getelementptr i8, ptr %self, i64 {TABLE_OFFSET}
  %table = load ptr, ptr %table_at, align 8
  %begin = getelementptr i8, ptr %table, i64 {_BYTES_OFFSET}
  %wanted_at = getelementptr i64, ptr %begin, i64 1
  %release_at = getelementptr i64, ptr %begin, i64 2
  %outputs_at = getelementptr i64, ptr %begin, i64 3
  %positions = getelementptr i64, ptr %begin, i64 4
  %wanted = load i64, ptr %wanted_at, align 8
  %outputs = load i64, ptr %outputs_at, align 8
  %records = getelementptr i64, ptr %positions, i64 %outputs
  %counted = icmp eq i64 %count, %wanted
  %unnamed = icmp eq ptr %names, null
  %plain = and i1 %counted, %unnamed
  br i1 %plain, label %array, label %slow

array:
  %k = phi i64 [ 0, %entry ], [ %next_k, %shaped ]
  %record = phi ptr [ %records, %entry ], [ %next_record, %shaped ]
  %slot = getelementptr ptr, ptr %args, i64 %k
  %given = load ptr, ptr %slot, align 8
  %given_type_at = getelementptr i8, ptr %given, i64 {at.type}
  %given_type = load ptr, ptr %given_type_at, align 8
  %wrapped = icmp eq ptr %given_type, @tedsl_type_NDArray
  %inner = getelementptr i8, ptr %given, i64 {at.wrapped}
  %place = select i1 %wrapped, ptr %inner, ptr %slot
  %a = load ptr, ptr %place, align 8
  %type_at = getelementptr i8, ptr %a, i64 {at.type}
  %type = load ptr, ptr %type_at, align 8
  %is_array = icmp eq ptr %type, @tedsl_type_ndarray
  br i1 %is_array, label %fields, label %slow
fields:
  %data_at = getelementptr i8, ptr %a, i64 {at.data}
  %rank_at = getelementptr i8, ptr %a, i64 {at.ndim}
  %shape_at = getelementptr i8, ptr %a, i64 {at.shape}
  %descr_at = getelementptr i8, ptr %a, i64 {at.descr}
  %flags_at = getelementptr i8, ptr %a, i64 {at.flags}
  %data = load ptr, ptr %data_at, align 8
  %rank = load i32, ptr %rank_at, align 4
  %shape = load ptr, ptr %shape_at, align 8
  %descr = load ptr, ptr %descr_at, align 8
  %flags = load i32, ptr %flags_at, align 4
  %order_at = getelementptr i8, ptr %descr, i64 {at.byteorder}
  %number_at = getelementptr i8, ptr %descr, i64 {at.number}
  %order = load i8, ptr %order_at, align 1
  %number = load i32, ptr %number_at, align 4
  %second_at = getelementptr i32, ptr %record, i64 1
  %flags_wanted_at = getelementptr i32, ptr %record, i64 2
  %rank_wanted_at = getelementptr i32, ptr %record, i64 3
  %bytes_at = getelementptr i32, ptr %record, i64 4
  %extents = getelementptr i32, ptr %record, i64 6
  %first = load i32, ptr %record, align 4
  %second = load i32, ptr %second_at, align 4
  %flags_wanted = load i32, ptr %flags_wanted_at, align 4
  %rank_wanted = load i32, ptr %rank_wanted_at, align 4
  %bytes = load i64, ptr %bytes_at, align 4
  %is_first = icmp eq i32 %number, %first
  %is_second = icmp eq i32 %number, %second
  %is_dtype = or i1 %is_first, %is_second
  %native = icmp ne i8 %order, {ord(">")}
  %flags_there = and i32 %flags, %flags_wanted
  %has_flags = icmp eq i32 %flags_there, %flags_wanted
  %has_rank = icmp eq i32 %rank, %rank_wanted
  %fine_dtype = and i1 %is_dtype, %native
  %fine_form = and i1 %has_flags, %has_rank
  %fine_fields = and i1 %fine_dtype, %fine_form
  br i1 %fine_fields, label %dims, label %slow
dims:
  %axes = zext i32 %rank_wanted to i64
  %own_slot = getelementptr ptr, ptr %slots, i64 %k
  %own_end = getelementptr ptr, ptr %ends, i64 %k
  %end = getelementptr i8, ptr %data, i64 %bytes
  store ptr %data, ptr %own_slot, align 8
  store ptr %end, ptr %own_end, align 8
  %scalar = icmp eq i64 %axes, 0
  br i1 %scalar, label %shaped, label %extent
extent:
  %d = phi i64 [ 0, %dims ], [ %next_d, %fitting ]
  %extent_at = getelementptr i64, ptr %shape, i64 %d
  %extent_wanted_at = getelementptr i64, ptr %extents, i64 %d
  %extent_given = load i64, ptr %extent_at, align 8
  %extent_wanted = load i64, ptr %extent_wanted_at, align 4
  %next_d = add nuw nsw i64 %d, 1
  %fits = icmp eq i64 %extent_given, %extent_wanted
  br i1 %fits, label %fitting, label %slow
fitting:
  %more_dims = icmp ult i64 %next_d, %axes
  br i1 %more_dims, label %extent, label %shaped
shaped:
  %next_k = add nuw nsw i64 %k, 1
  %next_record = getelementptr i64, ptr %extents, i64 %axes
  %more_arrays = icmp ult i64 %next_k, %wanted
  br i1 %more_arrays, label %array, label %bounded

bounded:
  %alone = icmp eq i64 %outputs, 0
  br i1 %alone, label %checked, label %output
output:
  %o = phi i64 [ 0, %bounded ], [ %next_o, %apart ]
  %position_at = getelementptr i64, ptr %positions, i64 %o
  %position = load i64, ptr %position_at, align 8
  %low_at = getelementptr ptr, ptr %slots, i64 %position
  %high_at = getelementptr ptr, ptr %ends, i64 %position
  %low = load ptr, ptr %low_at, align 8
  %high = load ptr, ptr %high_at, align 8
  %next_o = add nuw nsw i64 %o, 1
  br label %other
other:
  %j = phi i64 [ 0, %output ], [ %next_j, %beside ]
  %other_low_at = getelementptr ptr, ptr %slots, i64 %j
  %other_high_at = getelementptr ptr, ptr %ends, i64 %j
  %other_low = load ptr, ptr %other_low_at, align 8
  %other_high = load ptr, ptr %other_high_at, align 8
  %next_j = add nuw nsw i64 %j, 1
  %below = icmp ule ptr %high, %other_low
  %above = icmp ule ptr %other_high, %low
  %itself = icmp eq i64 %j, %position
  %disjoint = or i1 %below, %above
  %fine_pair = or i1 %disjoint, %itself
  br i1 %fine_pair, label %beside, label %slow
beside:
  %more_others = icmp ult i64 %next_j, %wanted
  br i1 %more_others, label %other, label %apart
apart:
  %more_outputs = icmp ult i64 %next_o, %outputs
  br i1 %more_outputs, label %output, label %checked

checked:
  %call = load ptr, ptr %begin, align 8
  %release = load i64, ptr %release_at, align 8
  %holding = icmp eq i64 %release, 0
  br i1 %holding, label %with, label %without
with:
  %held_status = call i32 %call(ptr %slots)
  br label %finish
without:
  %state = call ptr @PyEval_SaveThread()
  %free_status = call i32 %call(ptr %slots)
  call void @PyEval_RestoreThread(ptr %state)
  br label %finish
finish:
  %status = phi i32 [ %held_status, %with ], [ %free_status, %without ]
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %failed
done:
  call void @Py_IncRef(ptr @tedsl_none)
  ret ptr @tedsl_none
failed:
  %nothing = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %self, ptr @fail, ptr @format, i32 %status)
  ret ptr null
slow:
  %answer = call ptr @by_python(ptr %self, ptr %args, i64 %count, ptr %names)
  ret ptr %answer
}}

define internal ptr @by_python(ptr %self, ptr %args, i64 %count, ptr %names) nounwind noinline {{
  %by_name = icmp ne ptr %names, null
  br i1 %by_name, label %named, label %checked
named:
  %refused = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %self, ptr @refuse_names, ptr @object, ptr %names)
  ret ptr %refused
checked:
  %answer = call ptr @PyObject_VectorcallDict(ptr %self, ptr %args, i64 %count, ptr null)
  ret ptr %answer
}}
"""
