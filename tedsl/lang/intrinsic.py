"""Calls by name: operators of `ir/ops.py`, functions of C libraries, Python functions, LLVM's intrinsics."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, array_of
from tedsl.ir.builder import BufferVar
from tedsl.ir.dtype import INT32, VOID
from tedsl.ir.expr import Expr, IntImm, StringImm
from tedsl.ir.ops import Op
from tedsl.lang.value import as_value


def call_intrin(dtype: object, func_name: Any, *args: Any) -> Expr:
    """The operator `func_name`, such as "tir.exp", of `args`; its value is of `dtype` (None: it gives none)."""
    op = Op.get(func_name)
    if op.arity is not None and len(args) != op.arity:
        raise ArgumentTypeError(f"{op.name} takes {op.arity} argument{'s' * (op.arity != 1)}, not {len(args)}")
    return build.call(op, *[as_value(a, op.name) for a in args], dtype_=VOID if dtype is None else dtype)


def call_extern(dtype: object, func_name: str, *args: Any) -> Expr:
    """The C function `func_name`, which may do anything."""
    return _named("tir.call_extern", dtype, func_name, args)


def call_pure_extern(dtype: object, func_name: str, *args: Any) -> Expr:
    """The C function `func_name`, whose value depends on its arguments alone."""
    return _named("tir.call_pure_extern", dtype, func_name, args)


def call_packed(func_name: str, *args: Any) -> Expr:
    """The Python function registered as `func_name` by tedsl.register_func; the value is an int32, 0 if it returns None.

    2.0 will do, as it is a whole number; 2.5 or what an int32 cannot hold is an ArgumentError. A call that stands alone, as a
    statement, ignores what is returned. `call_intrin("float32", "tir.call_packed", name, ...)` takes another dtype.

    args: numbers, strings, and buffers, which it gets as NDArrays on the same memory.
    """
    return _named("tir.call_packed", INT32, func_name, tuple([_packed(a) for a in args]))


def _packed(value: Any) -> Any:
    """A buffer, or what an ir_builder gives for one, as the description of an array."""
    if isinstance(value, BufferVar):
        return value.as_array() if value.shape is not None else value.as_expr()
    return array_of(value) if isinstance(value, Buffer) else value


def call_llvm_intrin(dtype: object, name: str, *args: Any) -> Expr:
    """LLVM's intrinsic `name`, which may do anything. A leading uint32 count of the arguments, as TVM has it, is ignored."""
    return _named("tir.call_llvm_intrin", dtype, name, _without_count(args))


def call_llvm_pure_intrin(dtype: object, name: str, *args: Any) -> Expr:
    """LLVM's intrinsic `name`, whose value depends on its arguments alone. A leading uint32 count is ignored."""
    return _named("tir.call_llvm_pure_intrin", dtype, name, _without_count(args))


def ret(val: Any) -> Expr:
    """Leave the function with the value `val`."""
    return build.call("tir.ret", as_value(val, "ret"))


def _named(op: str, dtype: object, name: Any, args: tuple[Any, ...]) -> Expr:
    if not isinstance(name, (str, StringImm)):
        raise ArgumentTypeError(f"{op}: the name of the function is a str, not {name!r}")
    return build.call(op, name, *[as_value(a, op) for a in args], dtype_=VOID if dtype is None else dtype)


def _without_count(args: tuple[Any, ...]) -> tuple[Any, ...]:
    first = args[0] if args else None
    counted = isinstance(first, IntImm) and first.dtype.is_uint and first.value <= len(args) - 1
    return args[1:] if counted else args
