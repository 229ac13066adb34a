"""The operators of `Call`: one literal table says what each is called, takes and may do.

effect: "pure" (value of its arguments alone), "read" (also reads memory), "opaque" (may do anything).
"""

from __future__ import annotations

from dataclasses import dataclass

from tedsl.errors import OptionError


@dataclass(frozen=True, eq=False)
class Op:
    """An operator by name. `Op.get(name)` gives the one object of that name."""

    name: str
    arity: int | None  # None: any number
    effect: str = "pure"

    @staticmethod
    def get(op: object) -> Op:
        """The operator called `op`; OptionError if there is none."""
        if isinstance(op, Op):
            return op
        found = OPS.get(str(op))
        if found is None:
            raise OptionError(f"there is no operator {op!r}", hint="see tedsl/ir/ops.py; external functions: tir.call_extern")
        return found

    @property
    def is_pure(self) -> bool:
        return self.effect == "pure"

    def same_as(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __reduce__(self) -> tuple[object, ...]:
        return Op.get, (self.name,)


# Functions of floats, float to the same float; `math_unary` are what codegen/llvm/math must provide.
MATH_UNARY = ("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sqrt", "rsqrt",
              "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
              "floor", "ceil", "trunc", "round", "nearbyint", "fabs")
# round: halves away from zero; nearbyint: halves to even; fabs also takes integers (the absolute value, MIN wraps).
MATH_BINARY = ("pow", "fmod", "atan2", "hypot", "copysign", "nextafter", "ldexp")  # ldexp(float, int32)
CLASSIFY = ("isnan", "isinf", "isfinite")  # float to bool
BITS_BINARY = ("shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor")
BITS_UNARY = ("bitwise_not", "popcount", "clz")  # popcount, clz: of integers; te.popcount keeps the dtype, te.clz is int32

_ALL = (
    *(Op(f"tir.{name}", 1) for name in (*MATH_UNARY, *CLASSIFY, *BITS_UNARY)),
    *(Op(f"tir.{name}", 2) for name in (*MATH_BINARY, *BITS_BINARY)),
    Op("tir.fma", 3),  # a * b + c, rounded once
    Op("tir.if_then_else", 3),  # lazy: see expr.py
    Op("tir.likely", 1),  # the condition itself, expected to hold: a guard that lowering made
    Op("tir.reinterpret", 1),  # the bits of the argument as another dtype of equal width
    Op("tir.call_pure_extern", None),  # args: StringImm(symbol), arguments...
    Op("tir.call_extern", None, "opaque"),
    Op("tir.call_packed", None, "opaque"),  # args: StringImm(name of a registered Python function), arguments...
    Op("tir.call_llvm_pure_intrin", None),  # args: StringImm("llvm.name"), arguments...
    Op("tir.call_llvm_intrin", None, "opaque"),
    Op("tir.ret", 1, "opaque"),
    Op("tir.address_of", 1, "read"),  # of a Load
    Op("tir.tvm_access_ptr", 5, "read"),  # type_annotation, data, offset, extent (in elements of that type), rw mask
    Op("tir.type_annotation", 0),  # its dtype is what counts
    # A buffer for call_packed: data, shape, strides (0: compact), rank, 0 of its dtype (1: it is only read), offset
    Op("tir.tvm_stack_make_array", 6, "read"),
    Op("tir.tvm_stack_make_shape", None),
    Op("tir.tvm_storage_sync", None, "opaque"),
    Op("tir.tvm_thread_allreduce", None, "opaque"),  # count, values..., condition, places of the results..., threads...
    Op("tir.prefetch", None, "opaque"),
    Op("tir.tvm_tuple", None),  # values of an attribute
)
OPS: dict[str, Op] = {op.name: op for op in _ALL}
ACCESS_PTR = OPS["tir.tvm_access_ptr"]
