"""The argument and result dtypes of each operator of `ops.py`, as one rule per operator.

They are checked by `tir.call_intrin` and `te.compute` where the program is written, by the verifier between passes, and by
the code generator before it emits a call: machine code with a wrong register type would write beyond its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tedsl.ir.build import as_int
from tedsl.ir.calls import tile_products
from tedsl.ir.dtype import BOOL, UINT64, VOID, DType
from tedsl.ir.expr import BufferLoad, Call, Expr, Load, ProducerLoad, StringImm
from tedsl.ir.ops import BITS_BINARY, BITS_UNARY, CLASSIFY, COMBINE_LANES, MAKE_SHAPE, MATH_BINARY, MATH_UNARY

Args = tuple[Expr, ...]


class Signature(NamedTuple):
    """The rule of one operator. fits: whether a result dtype and the arguments are allowed; wanted: the rule in words."""

    fits: Callable[[DType, Args], bool]
    wanted: str


def misfit(e: Call) -> str:
    """The violation of its operator's signature by the call `e`, in words; "" where there is none."""
    op, args = e.op, e.args
    if op.arity not in (None, len(args)):
        return f"{op.name} of {len(args)} arguments"
    short = op.short
    signature = SIGNATURES[short]
    if signature.fits(e.dtype, args):
        return ""
    of = ", ".join(str(arg.dtype) if not isinstance(arg, StringImm) else f'"{arg.value}"' for arg in args)
    return f"{short} of {of or 'nothing'} is {e.dtype}: {signature.wanted}"


# --- the rules --------------------------------------------------------------------------------------------------------

def _floats(of: DType, args: Args) -> bool:
    return (of.is_float or of.is_custom) and all(arg.dtype is of for arg in args)


def _absolute(of: DType, args: Args) -> bool:
    return (of.is_float or of.is_integer or of.is_custom) and args[0].dtype is of


def _ldexp(of: DType, args: Args) -> bool:
    return of.is_float and args[0].dtype is of and args[1].dtype.is_integer and args[1].dtype.lanes == of.lanes


def _classify(of: DType, args: Args) -> bool:
    given = args[0].dtype
    return (given.is_float or given.is_custom) and of is BOOL.with_lanes(given.lanes)


def _integers(of: DType, args: Args) -> bool:
    return of.is_integer and all(arg.dtype is of for arg in args)


def _count(of: DType, args: Args) -> bool:
    return of.is_integer and args[0].dtype.is_integer and of.lanes == args[0].dtype.lanes


def _if_then_else(of: DType, args: Args) -> bool:
    condition = args[0].dtype
    return condition.is_bool and condition.lanes in (1, of.lanes) and all(arg.dtype is of for arg in args[1:]) and \
        of is not VOID


def _data_index(of: DType, args: Args) -> bool:
    return of.is_integer and args[0].dtype is of


def _likely(of: DType, args: Args) -> bool:
    return of.is_bool and args[0].dtype is of


def _reinterpret(of: DType, args: Args) -> bool:
    given = args[0].dtype
    return of.bits * of.lanes == given.bits * given.lanes and of is not VOID and given is not VOID and \
        not (of.is_bool or given.is_bool or isinstance(args[0], StringImm))


def _lane_mask(of: DType, args: Args) -> bool:
    return of is UINT64 and args[0].dtype.is_bool and 1 < args[0].dtype.lanes <= 64


def _compress_lanes(of: DType, args: Args) -> bool:
    value, condition = (arg.dtype for arg in args)
    return of is value and condition.is_bool and 1 < of.lanes == condition.lanes and not of.is_bool and not of.is_custom


def _combine_lanes(of: DType, args: Args) -> bool:
    value = args[0].dtype
    return of is value.element and value.lanes > 1 and not of.is_bool and not of.is_custom


def _dot(of: DType, args: Args) -> bool:
    total, left, right = (arg.dtype for arg in args)
    is_power = of.lanes >= 4 and not of.lanes & (of.lanes - 1)
    integers = of.is_integer and left.is_integer and right.is_integer
    bfloats = of.is_float and left.code == right.code == "bfloat"
    return total is of and of.bits == 32 and is_power and left.bits == right.bits < 32 and (integers or bfloats) and \
        all(d.bits * d.lanes == 32 * of.lanes for d in (left, right))


def _named(of: DType, args: Args) -> bool:
    return bool(args) and isinstance(args[0], StringImm)


def _packed(of: DType, args: Args) -> bool:
    return _named(of, args) and of.lanes == 1


def _access_ptr(of: DType, args: Args) -> bool:
    return args[1].dtype.is_handle and all(_is_index(arg) for arg in args[2:])


def _address_of(of: DType, args: Args) -> bool:
    return of.is_handle and isinstance(args[0], (Load, BufferLoad, ProducerLoad))


def _elements_past_line(of: DType, args: Args) -> bool:
    elements, size = (as_int(arg) for arg in args[1:])
    return of.is_int and of.bits >= 32 and of.lanes == 1 and args[0].dtype.is_handle and \
        all(n is not None and n > 0 and not n & (n - 1) for n in (elements, size))


def _make_array(of: DType, args: Args) -> bool:
    data, shape, strides, rank, _, offset = args
    return of.is_handle and data.dtype.is_handle and _is_shape(shape) and (_is_shape(strides) or _is_index(strides)) and \
        _is_index(rank) and _is_index(offset)


def _make_shape(of: DType, args: Args) -> bool:
    return of.is_handle and all(_is_index(arg) for arg in args)


def _is_index(e: Expr) -> bool:
    return e.dtype.is_integer and e.dtype.lanes == 1


def _is_shape(e: Expr) -> bool:
    return isinstance(e, Call) and e.op is MAKE_SHAPE


def _no_number(of: DType, args: Args) -> bool:
    """Whether `of` is the dtype of a call without a value: programs write int32, handle or nothing."""
    return of is VOID or of.is_handle or (of.is_integer and of.lanes == 1)


def _returned(of: DType, args: Args) -> bool:
    return of is args[0].dtype or of is VOID


def _shuffled(of: DType, args: Args) -> bool:
    return args[1].dtype is of and of.lanes == 1 and all(arg.dtype.is_integer for arg in (args[0], *args[2:]))


def _mask_of_warp(of: DType, args: Args) -> bool:
    return of == "uint32"


def _filled(of: DType, args: Args) -> bool:
    return _no_number(of, args) and args[0].dtype.is_handle and all(_is_index(arg) for arg in args[1:5]) and \
        (args[5].dtype.is_float or args[5].dtype.is_integer)


def _moved_matrix(of: DType, args: Args) -> bool:
    return _no_number(of, args) and args[0].dtype.is_handle and args[5].dtype.is_handle and isinstance(args[7], StringImm) and \
        all(_is_index(arg) for arg in (*args[1:5], args[6]))


def _products_of_matrices(of: DType, args: Args) -> bool:
    fragments, orders = args[:8], args[8:]
    return _no_number(of, args) and len(fragments) == 8 and len(orders) in (0, 2) \
        and all(arg.dtype.is_handle for arg in fragments[::2]) and all(_is_index(arg) for arg in fragments[1::2]) \
        and all(isinstance(order, StringImm) for order in orders)


def _copied(of: DType, args: Args) -> bool:
    return of.lanes == 1 and args[0].dtype.is_handle and args[2].dtype.is_handle and \
        all(_is_index(arg) for arg in (args[1], *args[3:]))


def _added_at_once(of: DType, args: Args) -> bool:
    is_number = (of.is_integer or of.is_float) and of.lanes == 1 and of.bits >= 32
    return args[0].dtype.is_handle and args[1].dtype is of and is_number


def _is_null(of: DType, args: Args) -> bool:
    return of.is_bool and args[0].dtype.is_handle


def _itself(of: DType, args: Args) -> bool:
    return args[0].dtype is of


def _anything(of: DType, args: Args) -> bool:
    return True


_FLOATS = Signature(_floats, "its arguments are of one float dtype, which is that of the result")
_INTEGERS = Signature(_integers, "its arguments are of one integer dtype, which is that of the result")
_NAMED = Signature(_named, "a call without a function's name; the first argument is that, a string")
_EFFECT = Signature(_no_number, "it has an effect and no value; its dtype is int32, or None")
_ANY = Signature(_anything, "anything")

SIGNATURES: dict[str, Signature] = {
    **dict.fromkeys((*MATH_UNARY, *MATH_BINARY, "exp_bounded", "fma"), _FLOATS),
    "fabs": Signature(_absolute, "it takes a float or an integer and gives the same dtype"),
    "ldexp": Signature(_ldexp, "it takes a float and an integer, and gives the dtype of the first"),
    **dict.fromkeys(CLASSIFY, Signature(_classify, "it takes a float and gives bool")),
    **dict.fromkeys((*BITS_BINARY, *BITS_UNARY), _INTEGERS),
    **dict.fromkeys(("popcount", "clz"), Signature(_count, "it takes an integer and gives an integer, of as many lanes")),
    "if_then_else": Signature(_if_then_else, "the first argument is bool, the two others are of the dtype of the result"),
    "data_index": Signature(_data_index, "it takes an index, an integer, and gives it"),
    "likely": Signature(_likely, "it takes a condition, which is bool, and gives bool"),
    "reinterpret": Signature(_reinterpret, "argument and result have the same number of bits, and bool has none"),
    "lane_mask": Signature(_lane_mask, "it takes a vector of 2 to 64 bools, and gives uint64"),
    "compress_lanes": Signature(_compress_lanes, "it takes a vector of numbers and one of bools with as many lanes, and gives "
                                                 "the dtype of the first"),
    **dict.fromkeys((op.short for op in COMBINE_LANES), Signature(
        _combine_lanes, "it takes a vector of numbers, and gives one of their dtype")),
    "dot": Signature(_dot, "it takes and gives 4, 8, 16, ... integers of 32 bits, and takes two vectors of narrower integers "
                     "of the same size; or float32 and bfloat16"),
    "tile_product": Signature(lambda of, args: _no_number(of, args) and tile_products.fits(args),
                              "it takes the addresses of elements of three arrays, of sums of 32 bits and of narrow numbers "
                              "whose products tiles add up, nine integers, and three for each loop around the terms"),
    "tiles_allowed": Signature(lambda of, args: of is BOOL, "it gives bool"),
    **dict.fromkeys(("call_pure_extern", "call_extern", "call_llvm_pure_intrin", "call_llvm_intrin"), _NAMED),
    "call_packed": Signature(_packed, "the first argument is a function's name, a string, and the result is one value"),
    "address_of": Signature(_address_of, "it takes an element of a buffer and gives a handle"),
    "elements_past_line": Signature(_elements_past_line, "it takes a pointer and two constant powers of two, the elements of a "
                                    "line and the bytes of an element, and gives int32 or int64"),
    "tvm_access_ptr": Signature(_access_ptr, "it takes a type annotation, a pointer, and integers: offset, extent, access"),
    "tvm_stack_make_array": Signature(
        _make_array, "it takes a pointer, shape and strides by tvm_stack_make_shape (strides: or 0), the rank, a number of the "
                     "dtype and the offset, and gives a handle"),
    "tvm_stack_make_shape": Signature(_make_shape, "it takes integers and gives a handle"),
    **dict.fromkeys(("tvm_storage_sync", "prefetch", "tvm_thread_allreduce"), _EFFECT),
    **dict.fromkeys(("tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down"), Signature(
        _shuffled, "it takes a mask, a value, a lane or distance, the width and the size of the warp, and gives such a value")),
    "tvm_warp_activemask": Signature(_mask_of_warp, "it gives uint32"),
    "atomic_add": Signature(_added_at_once, "it takes the address of an element and what is added, of 32 or 64 bits, and gives "
                                            "that dtype"),
    "ptx_cp_async": Signature(_copied, "it takes shared memory and an element of it, an array and an element of it, and the "
                                       "number of bytes; its dtype is that of the elements"),
    "ptx_wait_group": _EFFECT,
    "tvm_fill_fragment": Signature(_filled, "it takes the memory of fragments, m, n, k, the number of the fragment, a value"),
    **dict.fromkeys(("tvm_load_matrix_sync", "tvm_store_matrix_sync"), Signature(
        _moved_matrix, "it takes the memory of fragments, m, n, k, the number of the fragment, an address, the number of "
                       'elements between rows, and "row_major" or "col_major"')),
    **dict.fromkeys(("tvm_mma_sync", "tvm_bmma_sync"), Signature(
        _products_of_matrices, "it takes the memory and the number of four fragments: the result, a, b, and what is added; "
                                "perhaps also the orders of a and b")),
    "tvm_stack_alloca": Signature(_named, "it takes the kind of its elements, a string, and their number"),
    **dict.fromkeys(("tvm_struct_set", "tvm_throw_last_error"), _EFFECT),
    "tvm_thread_context": Signature(_itself, "it takes a context and gives it"),
    "tvm_struct_get": _ANY, "isnullptr": Signature(_is_null, "it takes a pointer and gives bool"),
    "tvm_call_packed_lowered": Signature(_packed, "the first argument is a function's name, and the result one value"),
    "ret": Signature(_returned, "its dtype is that of the number that it returns"),
    **dict.fromkeys(("type_annotation", "tvm_tuple"), _ANY),
}
