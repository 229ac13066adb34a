"""Calls by name: operators of `ir/ops.py`, functions of C libraries, Python functions, LLVM's intrinsics."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentTypeError, DTypeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, array_of
from tedsl.ir.builder import BufferVar
from tedsl.ir.calls.llvm_names import name_of
from tedsl.ir.dtype import INT32, VOID, DType, dtype_of_call
from tedsl.ir.expr import Call, Expr, IntImm, StringImm
from tedsl.ir.ops import BITS_BINARY, CALL_PACKED, MATH_BINARY, MATH_UNARY, OPS, Op
from tedsl.lang.value import as_value, check_call

# Where the arguments begin that have the dtype of the result: a number there takes it.
_ALIKE = {**dict.fromkeys((*MATH_UNARY, *MATH_BINARY, *BITS_BINARY, "bitwise_not", "fma"), 0), "if_then_else": 1}


def call_intrin(dtype: object, func_name: Any, *args: Any) -> Expr:
    """The operator `func_name`, such as "tir.exp", of `args`; its value has the dtype `dtype` (None: no value).

    A constant takes the dtype of the other operands. Signed and unsigned integers of one width may be mixed in bit operations.
    DTypeError where the operator does not give `dtype` for these arguments: convert its value with .astype.
    """
    if isinstance(func_name, str) and func_name == "tir.tvm_context_id" and not args:
        return build.const(0, INT32)  # the number of the processor, which calls packed functions
    op = Op.get(func_name)
    if op.arity is not None and len(args) != op.arity:
        raise ArgumentTypeError(f"{op.name} takes {op.arity} argument{'s' * (op.arity != 1)}, not {len(args)}")
    of = dtype_of_call(dtype)
    short = op.short
    given = [_packed(a) for a in args] if op is CALL_PACKED else args
    operands = tuple([_operand(a, op, short, place, of) for place, a in enumerate(given)])
    if short in (*BITS_BINARY, "bitwise_not") and _one_width(of, operands):
        return _bits(short, of, operands)
    call = Call(of, op, operands)
    check_call(call, f'call_intrin("{of}", "{op.name}", ...)')
    return call


def _operand(value: Any, op: Op, short: str, place: int, of: DType) -> Expr:
    """An argument as an expression; a constant gets the dtype `of` of the result if the operator takes that at this
    position.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    alike = place >= _ALIKE.get(short, len(OPS)) and not (short == "ldexp" and place == 1)
    if not alike or not (is_number or isinstance(value, IntImm)) or not (of.is_float or of.is_integer):
        return as_value(value, op.name)
    known = value if is_number else value.value
    if isinstance(value, IntImm) and (value.dtype.is_bool or (of.min_value is not None and of.max_value is not None and
                                                              not of.min_value <= known <= of.max_value)):
        return value
    return as_value(build.const(known, of), op.name)


def _one_width(of: DType, args: tuple[Expr, ...]) -> bool:
    """Whether all of `args` are bool, or all are integers of one width, signed or unsigned."""
    return all(a.dtype.bits == of.bits and a.dtype.lanes == of.lanes and a.dtype.is_integer == of.is_integer and
               a.dtype.is_bool == of.is_bool for a in args) and (of.is_integer or of.is_bool)


def _bits(short: str, of: DType, args: tuple[Expr, ...]) -> Expr:
    """The bitwise operator `short` on `args`; a right shift is arithmetic if the first argument is signed."""
    if of.is_bool and short.startswith("shift"):
        raise DTypeError(f"call_intrin: {short} of bool: it takes integers", hint="cast them: x.astype('int32')")
    like = args[0].dtype if short == "shift_right" else of
    result: Expr = getattr(build, short)(*[build.cast(like, a) for a in args])
    return build.cast(of, result)


def call_extern(dtype: object, func_name: str, *args: Any) -> Expr:
    """A call of the C function `func_name`, which may have side effects; its value has the dtype `dtype`.

    A function of the module that is built goes before one of C: `build([f, g])`, in f `tir.call_extern("int32", "g",
    A.access_ptr("rw"), n)` with the data pointers of its arrays and then every number that it takes, also of shapes and
    strides. Nothing but their number, kinds and dtypes is checked; what g writes may not overlap another array of the call. The
    value is what g returns (`tir.ret`), else 0; a failure of g is one of f. Recursion is refused.
    """
    return _named("tir.call_extern", dtype, func_name, args)


def call_pure_extern(dtype: object, func_name: str, *args: Any) -> Expr:
    """A call of the C function `func_name`, or of one of the module, without side effects: its value depends on its arguments
    alone.
    """
    return _named("tir.call_pure_extern", dtype, func_name, args)


def call_packed(func_name: str, *args: Any) -> Expr:
    """The Python function registered as `func_name` by tedsl.register_func; the value is an int32, 0 if it returns None.

    An integral float such as 2.0 is converted; 2.5, or a value that does not fit int32, is an ArgumentError. A call that is a
    statement ignores the value. `call_intrin("float32", "tir.call_packed", name, ...)` takes another dtype.

    args: numbers, strings, and buffers, which it gets as NDArrays on the same memory.

    A function of the module that is built goes before a Python function of that name: it is called directly, its shapes and
    strides are bound by the arrays, and its arguments are checked as in a call from Python. What constants decide is refused by
    build, the rest is an ArgumentError of the call.
    """
    return _named("tir.call_packed", INT32, func_name, tuple([_packed(a) for a in args]))


def _packed(value: Any) -> Any:
    """`value` as an argument of call_packed: a buffer, or an ir_builder's pointer, becomes an array descriptor."""
    if isinstance(value, BufferVar):
        return value.as_array() if value.shape is not None else value.as_expr()
    return array_of(value) if isinstance(value, Buffer) else value


def call_llvm_intrin(dtype: object, name: str, *args: Any) -> Expr:
    """A call of LLVM's intrinsic `name`, which may have side effects. A leading uint32 count of the arguments is ignored.

    The number that codegen.llvm_lookup_intrinsic_id gives for the name is taken as well.
    """
    return _named("tir.call_llvm_intrin", dtype, _llvm_name(name), _without_count(args))


def call_llvm_pure_intrin(dtype: object, name: str, *args: Any) -> Expr:
    """A call of LLVM's intrinsic `name`, whose value depends on its arguments alone. A leading uint32 count is ignored.

    The number that codegen.llvm_lookup_intrinsic_id gives for the name is taken as well.
    """
    return _named("tir.call_llvm_pure_intrin", dtype, _llvm_name(name), _without_count(args))


def ret(val: Any) -> Expr:
    """Ends the function, as a statement: `ib.emit(tir.ret(x))`. A call of the function gives the number `val` then; in Python
    an int, float or bool.

    All returns of a function have one dtype; a function that ends without one, where another returns, gives 0. LoweringError in
    a loop whose iterations run together: parallel, vectorized or bound to threads.
    """
    return build.call("tir.ret", as_value(val, "ret"))


def _named(op: str, dtype: object, name: Any, args: tuple[Any, ...]) -> Expr:
    if not isinstance(name, (str, StringImm)):
        raise ArgumentTypeError(f"{op}: the name of the function is a str, not {name!r}")
    return build.call(op, name, *[as_value(a, op) for a in args], dtype_=VOID if dtype is None else dtype)


def _llvm_name(given: Any) -> Any:
    """The name of an intrinsic of LLVM for its number; what is no number as it is."""
    if isinstance(given, IntImm) or (isinstance(given, int) and not isinstance(given, bool)):
        return name_of(int(given.value if isinstance(given, IntImm) else given))
    return given


def _without_count(args: tuple[Any, ...]) -> tuple[Any, ...]:
    first = args[0] if args else None
    counted = isinstance(first, IntImm) and first.dtype.is_uint and first.value <= len(args) - 1
    return args[1:] if counted else args
