"""Functions in LLVM IR that read tensors of DLPack, for the entry points that C calls.

They are internal to a library, and in it once. `%tedsl.tensor` is the struct DLTensor; LLVM lays it out as C does.
"""

from __future__ import annotations

# Numbers of the fields of %tedsl.tensor.
DATA, DEVICE, RANK, CODE, BITS, LANES, SHAPE, STRIDES, BYTE_OFFSET = 0, 1, 3, 4, 5, 6, 7, 8, 9
TEXT_BYTES = 256  # of the memory for the text of a tuple or a dtype

# DLPack's codes of the kinds of elements.
CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4, "bool": 6}


def tensor_functions(size_type: str) -> str:
    """Returns the IR of the functions. size_type: C's size_t."""
    return _FUNCTIONS.replace("SIZE", size_type)


# tuple_text: the text of an array of numbers, as Python writes tuples; cut off where it is long.
# dtype_text: the name of a tensor's dtype.
# data: the address of the first element.
# is_compact: whether a tensor is compact row-major; dimensions of extent 1 may have any stride, and tensors without elements.
# strides: the strides in elements; a dimension of extent 1 has the one that it has in a compact tensor (%broadcast: 0).
# shared: 0 where no two elements can overlap by their strides, 1 where they may, 2 where they do.
# integer: 1 and the value of a tensor of rank 0, 2 for one above the range of int64, 0 where it is no integer.
# meeting: the place of the first array behind %place that meets it by its bounds, -1 if there is none. %bounds: first byte and
#     first byte behind of each array.
# real: whether a tensor of rank 0 is a number, and its value.
_FUNCTIONS = """
%tedsl.tensor = type { ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64 }
@tedsl.first = private unnamed_addr constant [5 x i8] c"%lld\\00"
@tedsl.next = private unnamed_addr constant [7 x i8] c", %lld\\00"
@tedsl.cut = private unnamed_addr constant [6 x i8] c", ...\\00"
@tedsl.named = private unnamed_addr constant [3 x i8] c"%s\\00"
@tedsl.sized = private unnamed_addr constant [5 x i8] c"%s%u\\00"
@tedsl.lanes = private unnamed_addr constant [8 x i8] c"%s%ux%u\\00"
@tedsl.other = private unnamed_addr constant [32 x i8] c"of DLPack's code %u and %u bits\\00"
@tedsl.kinds = private unnamed_addr constant [7 x [8 x i8]] [[8 x i8] c"int\\00\\00\\00\\00\\00",
    [8 x i8] c"uint\\00\\00\\00\\00", [8 x i8] c"float\\00\\00\\00", [8 x i8] c"handle\\00\\00", [8 x i8] c"bfloat\\00\\00",
    [8 x i8] c"complex\\00", [8 x i8] c"bool\\00\\00\\00\\00"]
declare i32 @snprintf(ptr, SIZE, ptr, ...)
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)

define internal ptr @tedsl.tuple_text(ptr %to, ptr %values, i32 %count) nounwind {
entry:
  store i8 40, ptr %to
  %absurd = icmp sgt i32 %count, 64  ; no rank: there are hardly so many values to read
  br i1 %absurd, label %end, label %each
each:
  %k = phi i32 [ 0, %entry ], [ %k1, %print ]
  %at = phi i32 [ 1, %entry ], [ %at1, %print ]
  %more = icmp slt i32 %k, %count
  br i1 %more, label %room, label %end
room:
  %here = getelementptr i8, ptr %to, i32 %at
  %full = icmp sgt i32 %at, 216
  br i1 %full, label %cut, label %print
cut:
  %c = call i32 (ptr, SIZE, ptr, ...) @snprintf(ptr %here, SIZE 8, ptr @tedsl.cut)
  %at2 = add i32 %at, 5
  br label %end
print:
  %is_first = icmp eq i32 %k, 0
  %format = select i1 %is_first, ptr @tedsl.first, ptr @tedsl.next
  %value_at = getelementptr i64, ptr %values, i32 %k
  %value = load i64, ptr %value_at, align 8
  %length = call i32 (ptr, SIZE, ptr, ...) @snprintf(ptr %here, SIZE 32, ptr %format, i64 %value)
  %at1 = add i32 %at, %length
  %k1 = add i32 %k, 1
  br label %each
end:
  %last = phi i32 [ 1, %entry ], [ %at, %each ], [ %at2, %cut ]
  %single = icmp eq i32 %count, 1
  %comma_at = getelementptr i8, ptr %to, i32 %last
  store i8 44, ptr %comma_at
  %wide = zext i1 %single to i32
  %close = add i32 %last, %wide
  %close_at = getelementptr i8, ptr %to, i32 %close
  store i8 41, ptr %close_at
  %after = add i32 %close, 1
  %after_at = getelementptr i8, ptr %to, i32 %after
  store i8 0, ptr %after_at
  ret ptr %to
}

define internal ptr @tedsl.dtype_text(ptr %to, ptr %tensor) nounwind {
entry:
  %code_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 4
  %bits_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 5
  %lanes_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 6
  %code8 = load i8, ptr %code_at
  %code = zext i8 %code8 to i32
  %bits8 = load i8, ptr %bits_at
  %bits = zext i8 %bits8 to i32
  %lanes16 = load i16, ptr %lanes_at
  %lanes = zext i16 %lanes16 to i32
  %name = getelementptr [7 x [8 x i8]], ptr @tedsl.kinds, i32 0, i32 %code
  %known = icmp ult i32 %code, 7
  br i1 %known, label %kind, label %unknown
unknown:
  %u = call i32 (ptr, SIZE, ptr, ...) @snprintf(ptr %to, SIZE 256, ptr @tedsl.other, i32 %code, i32 %bits)
  ret ptr %to
kind:
  %scalar = icmp eq i32 %lanes, 1
  br i1 %scalar, label %single, label %vector
vector:
  %v = call i32 (ptr, SIZE, ptr, ...) @snprintf(ptr %to, SIZE 256, ptr @tedsl.lanes, ptr %name, i32 %bits, i32 %lanes)
  ret ptr %to
single:
  %is_handle = icmp eq i32 %code, 3
  %is_bool = icmp eq i32 %code, 6
  %plain = or i1 %is_handle, %is_bool
  %format = select i1 %plain, ptr @tedsl.named, ptr @tedsl.sized
  %s = call i32 (ptr, SIZE, ptr, ...) @snprintf(ptr %to, SIZE 256, ptr %format, ptr %name, i32 %bits)
  ret ptr %to
}

define internal ptr @tedsl.data(ptr %tensor) nounwind {
  %data_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 0
  %offset_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 9
  %data = load ptr, ptr %data_at
  %offset = load i64, ptr %offset_at
  %first = getelementptr i8, ptr %data, i64 %offset
  ret ptr %first
}

define internal i1 @tedsl.is_empty(ptr %shape, i32 %rank) nounwind {
entry:
  br label %each
each:
  %k = phi i32 [ 0, %entry ], [ %k1, %look ]
  %more = icmp slt i32 %k, %rank
  br i1 %more, label %look, label %no
look:
  %extent_at = getelementptr i64, ptr %shape, i32 %k
  %extent = load i64, ptr %extent_at, align 8
  %k1 = add i32 %k, 1
  %none = icmp eq i64 %extent, 0
  br i1 %none, label %yes, label %each
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @tedsl.is_compact(ptr %tensor, i32 %rank) nounwind {
entry:
  %shape_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 7
  %strides_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 8
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %dense = icmp eq ptr %strides, null
  br i1 %dense, label %yes, label %count
count:
  %empty = call i1 @tedsl.is_empty(ptr %shape, i32 %rank)
  br i1 %empty, label %yes, label %each
each:
  %left = phi i32 [ %rank, %count ], [ %k, %next ]
  %usual = phi i64 [ 1, %count ], [ %usual1, %next ]
  %done = icmp eq i32 %left, 0
  br i1 %done, label %yes, label %look
look:
  %k = sub i32 %left, 1
  %extent_at = getelementptr i64, ptr %shape, i32 %k
  %extent = load i64, ptr %extent_at, align 8
  %stride_at = getelementptr i64, ptr %strides, i32 %k
  %stride = load i64, ptr %stride_at, align 8
  %single = icmp eq i64 %extent, 1
  %same = icmp eq i64 %stride, %usual
  %fine = or i1 %single, %same
  br i1 %fine, label %next, label %no
next:
  %usual1 = mul i64 %usual, %extent
  br label %each
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @tedsl.strides(ptr %tensor, i32 %rank, ptr %to, i1 %broadcast) nounwind {
entry:
  %shape_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 7
  %strides_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 8
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %dense = icmp eq ptr %strides, null
  %empty = call i1 @tedsl.is_empty(ptr %shape, i32 %rank)
  %counted = or i1 %dense, %empty
  %source = select i1 %dense, ptr %shape, ptr %strides
  br label %each
each:
  %left = phi i32 [ %rank, %entry ], [ %k, %next ]
  %usual = phi i64 [ 1, %entry ], [ %usual1, %next ]
  %done = icmp eq i32 %left, 0
  br i1 %done, label %end, label %next
next:
  %k = sub i32 %left, 1
  %extent_at = getelementptr i64, ptr %shape, i32 %k
  %extent = load i64, ptr %extent_at, align 8
  %stride_at = getelementptr i64, ptr %source, i32 %k
  %stride = load i64, ptr %stride_at, align 8
  %single = icmp sle i64 %extent, 1
  %by_shape = or i1 %single, %counted
  %own = select i1 %by_shape, i64 %usual, i64 %stride
  %is_one = icmp eq i64 %extent, 1
  %repeated = and i1 %is_one, %broadcast
  %result = select i1 %repeated, i64 0, i64 %own
  %result_at = getelementptr i64, ptr %to, i32 %k
  store i64 %result, ptr %result_at, align 8
  %usual1 = mul i64 %usual, %extent
  br label %each
end:
  ret void
}

; The smaller strides of a dimension are those before it by size, then by number: its stride has to reach beyond all they span.
define internal i32 @tedsl.shared(ptr %shape, ptr %strides, i32 %rank) nounwind {
entry:
  %empty = call i1 @tedsl.is_empty(ptr %shape, i32 %rank)
  br i1 %empty, label %apart, label %each
each:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %crossed = phi i32 [ 0, %entry ], [ %crossed1, %next ]
  %more = icmp slt i32 %i, %rank
  br i1 %more, label %look, label %end
look:
  %extent_at = getelementptr i64, ptr %shape, i32 %i
  %extent = load i64, ptr %extent_at, align 8
  %stride_at = getelementptr i64, ptr %strides, i32 %i
  %stride = load i64, ptr %stride_at, align 8
  %step = call i64 @llvm.abs.i64(i64 %stride, i1 false)
  %single = icmp eq i64 %extent, 1
  br i1 %single, label %next, label %weigh
weigh:
  %still = icmp eq i64 %step, 0
  br i1 %still, label %repeated, label %inner
inner:
  %j = phi i32 [ 0, %weigh ], [ %j1, %add ]
  %span = phi i64 [ 1, %weigh ], [ %span1, %add ]
  %others = icmp slt i32 %j, %rank
  br i1 %others, label %add, label %compare
add:
  %other_at = getelementptr i64, ptr %shape, i32 %j
  %other = load i64, ptr %other_at, align 8
  %beside_at = getelementptr i64, ptr %strides, i32 %j
  %beside_stride = load i64, ptr %beside_at, align 8
  %beside = call i64 @llvm.abs.i64(i64 %beside_stride, i1 false)
  %smaller = icmp ult i64 %beside, %step
  %equal = icmp eq i64 %beside, %step
  %before = icmp slt i32 %j, %i
  %tie = and i1 %equal, %before
  %counts = or i1 %smaller, %tie
  %steps = sub i64 %other, 1
  %reach = mul i64 %steps, %beside
  %added = select i1 %counts, i64 %reach, i64 0
  %span1 = add i64 %span, %added
  %j1 = add i32 %j, 1
  br label %inner
compare:
  %short = icmp ult i64 %step, %span
  %bit = zext i1 %short to i32
  br label %next
next:
  %here = phi i32 [ 0, %look ], [ %bit, %compare ]
  %crossed1 = or i32 %crossed, %here
  %i1 = add i32 %i, 1
  br label %each
end:
  ret i32 %crossed
repeated:
  ret i32 2
apart:
  ret i32 0
}
declare i64 @llvm.abs.i64(i64, i1)

define internal i32 @tedsl.integer(ptr %tensor, ptr %to) nounwind {
entry:
  %code_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 4
  %bits_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 5
  %code = load i8, ptr %code_at
  %bits = load i8, ptr %bits_at
  %data = call ptr @tedsl.data(ptr %tensor)
  %is_signed = icmp eq i8 %code, 0
  %is_unsigned = icmp eq i8 %code, 1
  %is_bool = icmp eq i8 %code, 6
  %a = or i1 %is_signed, %is_unsigned
  %is_integer = or i1 %a, %is_bool
  br i1 %is_integer, label %sized, label %other
sized:
  switch i8 %bits, label %other [ i8 8, label %b8  i8 16, label %b16  i8 32, label %b32  i8 64, label %b64 ]
b8:
  %v8 = load i8, ptr %data, align 1
  %s8 = sext i8 %v8 to i64
  %u8 = zext i8 %v8 to i64
  br label %have
b16:
  %v16 = load i16, ptr %data, align 1
  %s16 = sext i16 %v16 to i64
  %u16 = zext i16 %v16 to i64
  br label %have
b32:
  %v32 = load i32, ptr %data, align 1
  %s32 = sext i32 %v32 to i64
  %u32 = zext i32 %v32 to i64
  br label %have
b64:
  %v64 = load i64, ptr %data, align 1
  br label %have
have:
  %signed = phi i64 [ %s8, %b8 ], [ %s16, %b16 ], [ %s32, %b32 ], [ %v64, %b64 ]
  %unsigned = phi i64 [ %u8, %b8 ], [ %u16, %b16 ], [ %u32, %b32 ], [ %v64, %b64 ]
  %value = select i1 %is_signed, i64 %signed, i64 %unsigned
  store i64 %value, ptr %to
  %high = icmp slt i64 %value, 0
  %natural = xor i1 %is_signed, true
  %beyond = and i1 %high, %natural
  %answer = select i1 %beyond, i32 2, i32 1
  ret i32 %answer
other:
  ret i32 0
}

define internal i1 @tedsl.real(ptr %tensor, ptr %to) nounwind {
entry:
  %whole = alloca i64, align 8
  %kind = call i32 @tedsl.integer(ptr %tensor, ptr %whole)
  switch i32 %kind, label %natural [ i32 0, label %float  i32 1, label %integer ]
natural:
  %n = load i64, ptr %whole
  %n_value = uitofp i64 %n to double
  br label %have
integer:
  %i = load i64, ptr %whole
  %i_value = sitofp i64 %i to double
  br label %have
float:
  %kind_at = getelementptr %tedsl.tensor, ptr %tensor, i32 0, i32 4
  %both = load i16, ptr %kind_at
  %data = call ptr @tedsl.data(ptr %tensor)
  switch i16 %both, label %other [ i16 16386, label %f64  i16 8194, label %f32  i16 4098, label %f16  i16 4100, label %bf16 ]
f64:
  %d = load double, ptr %data, align 1
  br label %have
f32:
  %f = load float, ptr %data, align 1
  %f_value = fpext float %f to double
  br label %have
bf16:
  %b = load i16, ptr %data, align 1
  %b_bits = zext i16 %b to i32
  %b_high = shl i32 %b_bits, 16
  %b_float = bitcast i32 %b_high to float
  %b_value = fpext float %b_float to double
  br label %have
f16:
  %h = load i16, ptr %data, align 1
  %h_bits = zext i16 %h to i64
  %h_rest = and i64 %h_bits, 32767
  %h_moved = shl i64 %h_rest, 42
  %h_small = bitcast i64 %h_moved to double
  %h_scaled = fmul double %h_small, 0x7EF0000000000000
  %h_exponent = and i64 %h_bits, 31744
  %h_special = icmp eq i64 %h_exponent, 31744
  %h_infinite = or i64 %h_moved, 9218868437227405312
  %h_top = bitcast i64 %h_infinite to double
  %h_size = select i1 %h_special, double %h_top, double %h_scaled
  %h_sign = icmp uge i64 %h_bits, 32768
  %h_minus = fneg double %h_size
  %h_value = select i1 %h_sign, double %h_minus, double %h_size
  br label %have
have:
  %value = phi double [ %n_value, %natural ], [ %i_value, %integer ], [ %d, %f64 ], [ %f_value, %f32 ], [ %b_value, %bf16 ],
      [ %h_value, %f16 ]
  store double %value, ptr %to
  ret i1 true
other:
  ret i1 false
}

define internal i64 @tedsl.meeting(ptr %bounds, i64 %place, i64 %count) nounwind {
entry:
  %low_at = getelementptr [2 x ptr], ptr %bounds, i64 %place
  %high_at = getelementptr ptr, ptr %low_at, i64 1
  %low = load ptr, ptr %low_at
  %high = load ptr, ptr %high_at
  %none = icmp eq ptr %low, %high
  br i1 %none, label %apart, label %each
each:
  %k = phi i64 [ %place, %entry ], [ %next, %look ]
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %look, label %apart
look:
  %other_low_at = getelementptr [2 x ptr], ptr %bounds, i64 %next
  %other_high_at = getelementptr ptr, ptr %other_low_at, i64 1
  %other_low = load ptr, ptr %other_low_at
  %other_high = load ptr, ptr %other_high_at
  %begins = icmp ult ptr %other_low, %high
  %ends = icmp ult ptr %low, %other_high
  %both = and i1 %begins, %ends
  %some = icmp ne ptr %other_low, %other_high
  %meet = and i1 %both, %some
  br i1 %meet, label %found, label %each
found:
  ret i64 %next
apart:
  ret i64 -1
}
"""
