"""The operators of `Call`: one literal table of names, numbers of arguments and effects.

effect: "pure" (depends on its arguments alone), "read" (also reads memory), "opaque" (may have any side effect).
"""

from __future__ import annotations

from typing import Any

from tedsl.errors import OptionError
from tedsl.record import record


@record(eq=False)
class Op:
    """An operator. There is one object for each name, so that operators are compared by `is`."""

    name: str
    arity: int | None  # None: any number
    effect: str = "pure"

    @staticmethod
    def get(op_name: object) -> Op:
        """The operator called `op_name`; OptionError if there is none."""
        if isinstance(op_name, Op):
            return op_name
        name = str(op_name)
        operator = OPS.get("tir.call_packed" if name == "tir.tvm_call_packed" else name)
        if operator is None:
            raise OptionError(f"there is no operator {op_name!r}",
                              hint="see tedsl/ir/ops.py; external functions: tir.call_extern")
        return operator

    def get_attr(self, attr_name: str) -> Any:
        """The value of an attribute that `ir.register_op_attr` has set, None if there is none."""
        from tedsl.ir.calls.registered import get_attr

        return get_attr(self, attr_name)

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """`ir.register_op_attr` of this operator."""
        from tedsl.ir.calls.registered import register_op_attr

        register_op_attr(self.name, attr_name, value, plevel)

    def reset_attr(self, attr_name: str) -> None:
        """Removes an attribute. OptionError if it has none."""
        from tedsl.ir.calls.registered import reset_attr

        reset_attr(self, attr_name)

    @property
    def short(self) -> str:
        """The name without its namespace: "exp" of "tir.exp"."""
        return self.name.removeprefix("tir.")

    @property
    def is_pure(self) -> bool:
        return self.effect == "pure"

    def same_as(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __reduce__(self) -> tuple[object, ...]:
        return Op.get, (self.name,)


# Functions of floats, float to the same float; `math_unary` are what codegen/formulas must provide.
MATH_UNARY = ("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sqrt", "rsqrt",
              "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
              "floor", "ceil", "trunc", "round", "nearbyint", "fabs")
# round: halves away from zero; nearbyint: halves to even; fabs also takes integers (the absolute value, MIN wraps).
MATH_BINARY = ("pow", "fmod", "atan2", "hypot", "copysign", "nextafter", "ldexp")  # ldexp(float, int32)
CLASSIFY = ("isnan", "isinf", "isfinite")  # float to bool
BITS_BINARY = ("shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor")
BITS_UNARY = ("bitwise_not", "popcount", "clz")  # popcount, clz: of integers; te.popcount keeps the dtype, te.clz is int32

# The operators that the compiler asks for by name: `call.op is IF_THEN_ELSE`.
IF_THEN_ELSE = Op("tir.if_then_else", 3)  # lazy: see expr.py
LIKELY = Op("tir.likely", 1)  # the condition itself, expected to hold: a guard that lowering made
FMA = Op("tir.fma", 3)  # a * b + c, rounded once
# Integers wrap. Of bfloat16 the second product of a pair is added first, each addition is a fused one in float32, and denormal
# numbers are zero, in arguments and sums.
DOT = Op("tir.dot", 3)  # adds to each lane of the first the products of a group of neighbouring lanes of the others
# Of matrices, by tile registers of the processor: see `calls/tile_products.py`.
TILE_PRODUCT = Op("tir.tile_product", None, "opaque")
TILES_ALLOWED = Op("tir.tiles_allowed", 0, "opaque")  # whether the system lets this process use tile registers; it asks once
LANE_MASK = Op("tir.lane_mask", 1)  # of a vector of bool: a uint64 whose bit k is set where lane k holds
# The lanes of a vector where those of a vector of bool hold, in order from lane 0 on; zeros behind them.
COMPRESS = Op("tir.compress_lanes", 2)
EXP_BOUNDED = Op("tir.exp_bounded", 1)  # exp of what is promised to be at most 1, or NaN
# All lanes of a vector combined to one element, the halves of the vector again and again: `calls/lanes.py` has the formula.
SUM_LANES, PROD_LANES = Op("tir.sum_lanes", 1), Op("tir.prod_lanes", 1)
MAX_LANES, MIN_LANES = Op("tir.max_lanes", 1), Op("tir.min_lanes", 1)
COMBINE_LANES = (SUM_LANES, PROD_LANES, MAX_LANES, MIN_LANES)
REINTERPRET = Op("tir.reinterpret", 1)  # the bits of the argument as another dtype of equal width
CALL_PURE_EXTERN = Op("tir.call_pure_extern", None)  # args: StringImm(symbol), arguments...
CALL_EXTERN = Op("tir.call_extern", None, "opaque")
CALL_PACKED = Op("tir.call_packed", None, "opaque")  # args: StringImm(name of a registered Python function), arguments...
CALL_LLVM_PURE_INTRIN = Op("tir.call_llvm_pure_intrin", None)  # args: StringImm("llvm.name"), arguments...
CALL_LLVM_INTRIN = Op("tir.call_llvm_intrin", None, "opaque")
FOREIGN = frozenset((CALL_PURE_EXTERN, CALL_EXTERN, CALL_PACKED, CALL_LLVM_PURE_INTRIN, CALL_LLVM_INTRIN))  # others' code
DATA_INDEX = Op("tir.data_index", 1)  # an index that data decides, to be checked where it is used: see passes/checked
RET = Op("tir.ret", 1, "opaque")
ADDRESS_OF = Op("tir.address_of", 1, "read")  # of a Load
# Of a data pointer, a number of elements that divides 64 bytes, and the bytes of an element: how many elements the array begins
# behind a line of memory, a line of that many elements. A machine may say 0: programs give the same result with any number of
# elements within the line.
ELEMENTS_PAST_LINE = Op("tir.elements_past_line", 3)
ACCESS_PTR = Op("tir.tvm_access_ptr", 5, "read")  # type_annotation, data, offset, extent (in elements of that type), rw mask
TYPE_ANNOTATION = Op("tir.type_annotation", 0)  # its dtype is what counts
# A buffer for call_packed: data, shape, strides (0: compact), rank, 0 of its dtype (1: it is only read), offset
MAKE_ARRAY = Op("tir.tvm_stack_make_array", 6, "read")
MAKE_SHAPE = Op("tir.tvm_stack_make_shape", None)
SYNC = Op("tir.tvm_storage_sync", None, "opaque")
ALLREDUCE = Op("tir.tvm_thread_allreduce", None, "opaque")  # count, values..., condition, places of the results..., threads...
# Values of other threads of a warp: mask (of the threads that take part, uint32), value, lane or distance, width (of the parts
# of the warp that exchange values among themselves), size of the warp.
WARP_SHUFFLE = Op("tir.tvm_warp_shuffle", 5, "opaque")  # of the thread number `lane` of the part
WARP_SHUFFLE_UP = Op("tir.tvm_warp_shuffle_up", 5, "opaque")  # of the thread `distance` before; its own if there is none
WARP_SHUFFLE_DOWN = Op("tir.tvm_warp_shuffle_down", 5, "opaque")  # of the thread `distance` behind; its own if there is none
WARP_ACTIVEMASK = Op("tir.tvm_warp_activemask", 0, "opaque")
SHUFFLES = (WARP_SHUFFLE, WARP_SHUFFLE_UP, WARP_SHUFFLE_DOWN)
# Matrices that the threads of a warp hold together: see `calls/fragments.py`.
FILL_FRAGMENT = Op("tir.tvm_fill_fragment", 6, "opaque")  # fragments, m, n, k, which of them, value
LOAD_MATRIX = Op("tir.tvm_load_matrix_sync", 8, "opaque")  # fragments, m, n, k, which, address, elements between rows, order
STORE_MATRIX = Op("tir.tvm_store_matrix_sync", 8, "opaque")  # as of LOAD_MATRIX
# d = a * b + c: fragments and which of them, of d, a, b and c; perhaps the orders in which a and b are to be loaded
MMA = Op("tir.tvm_mma_sync", None, "opaque")
BMMA = Op("tir.tvm_bmma_sync", 8, "opaque")  # of bits; only its name is known
FRAGMENT_OPS = (FILL_FRAGMENT, LOAD_MATRIX, STORE_MATRIX, MMA, BMMA)
ATOMIC_ADD = Op("tir.atomic_add", 2, "opaque")  # address of an element, what is added at once; gives what was there before
# A copy that goes on while its thread does other things: shared memory, element, array, element, bytes; a wait until at most so
# many groups of copies have not arrived.
CP_ASYNC = Op("tir.ptx_cp_async", 5, "opaque")
WAIT_GROUP = Op("tir.ptx_wait_group", 1, "opaque")
# Calls of packed functions as machine code makes them: see `passes/machine/lower_builtins.py`, with the numbers of fields.
STACK_ALLOCA = Op("tir.tvm_stack_alloca", 2, "opaque")  # the kind of its elements, their number
STRUCT_SET = Op("tir.tvm_struct_set", 4, "opaque")  # the stack, an element of it, a field, what that becomes
STRUCT_GET = Op("tir.tvm_struct_get", 3, "read")
CALL_PACKED_LOWERED = Op("tir.tvm_call_packed_lowered", 5, "opaque")  # name, values, codes, the first argument, the last + 1
IS_NULL = Op("tir.isnullptr", 1)
THROW_LAST_ERROR = Op("tir.tvm_throw_last_error", 0, "opaque")
THREAD_CONTEXT = Op("tir.tvm_thread_context", 1)  # its argument, which is the same wherever a thread asks for it
PREFETCH = Op("tir.prefetch", None, "opaque")
TUPLE = Op("tir.tvm_tuple", None)  # values of an attribute

_ALL = (
    *(Op(f"tir.{name}", 1) for name in (*MATH_UNARY, *CLASSIFY, *BITS_UNARY)),
    *(Op(f"tir.{name}", 2) for name in (*MATH_BINARY, *BITS_BINARY)),
    EXP_BOUNDED, FMA, DOT, IF_THEN_ELSE, LIKELY, LANE_MASK, COMPRESS, *COMBINE_LANES, REINTERPRET, CALL_PURE_EXTERN,
    CALL_EXTERN, CALL_PACKED, CALL_LLVM_PURE_INTRIN, CALL_LLVM_INTRIN, DATA_INDEX, RET, ADDRESS_OF, ELEMENTS_PAST_LINE,
    ACCESS_PTR, TYPE_ANNOTATION, MAKE_ARRAY, MAKE_SHAPE, SYNC, ALLREDUCE, STACK_ALLOCA, STRUCT_SET, STRUCT_GET,
    CALL_PACKED_LOWERED, IS_NULL, THROW_LAST_ERROR, THREAD_CONTEXT, PREFETCH, TUPLE, *SHUFFLES, WARP_ACTIVEMASK,
    *FRAGMENT_OPS, ATOMIC_ADD, CP_ASYNC, WAIT_GROUP, TILE_PRODUCT, TILES_ALLOWED,
)
OPS: dict[str, Op] = {op.name: op for op in _ALL}
SHIFT_LEFT, SHIFT_RIGHT = OPS["tir.shift_left"], OPS["tir.shift_right"]
BITWISE_AND, BITWISE_OR, BITWISE_XOR = OPS["tir.bitwise_and"], OPS["tir.bitwise_or"], OPS["tir.bitwise_xor"]
BITWISE_NOT, POPCOUNT, CLZ = OPS["tir.bitwise_not"], OPS["tir.popcount"], OPS["tir.clz"]
ISNAN, ISINF, ISFINITE = OPS["tir.isnan"], OPS["tir.isinf"], OPS["tir.isfinite"]
FABS = OPS["tir.fabs"]
