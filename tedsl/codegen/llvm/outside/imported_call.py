"""Emits calls of functions that pragmas import; where their types are known, from LLVM IR, the call is compared with them."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.outside.extern import c_argument, c_type
from tedsl.codegen.llvm.outside.ir_code import Prototype
from tedsl.codegen.llvm.types import global_name, register_type
from tedsl.errors import LoweringError
from tedsl.ir.dtype import VOID
from tedsl.ir.expr import Call


def emit_imported(out: Emitter, e: Call, name: str, prototype: Prototype | None) -> str:
    """Emits the call. A function without a result yields 0, since calls for their effect are often declared int32."""
    args = e.args[1:]
    if prototype is None:  # an object of a C compiler
        types = [" ".join(c_type(a.dtype, name)) for a in args]
        result = " ".join(reversed(c_type(e.dtype, name)))
        values = [c_argument(out, a) for a in args]
    else:
        values = _fitted(out, e, name, prototype)
        types = [_extended(a.dtype, t) for a, t in zip(args, prototype.parameters)]
        result = prototype.result
    out.module.declare(name, f"declare {result} {global_name(name)}({', '.join(types)})")
    call = f"call {result} {global_name(name)}({', '.join(f'{t} {v}' for t, v in zip(types, values))})"
    out.called()
    if result == "void":
        out.line(call)
        return "zeroinitializer" if e.dtype.lanes > 1 else "null" if e.dtype.is_handle else "0.0" if e.dtype.is_float else "0"
    return out.assign(call)


def _fitted(out: Emitter, e: Call, name: str, prototype: Prototype) -> list[str]:
    """Returns the arguments in the types that the function takes; integers are widened."""
    args = e.args[1:]
    given = [register_type(a.dtype) for a in args]
    operands = []
    fits = len(args) == len(prototype.parameters) and (e.dtype is VOID or prototype.result in ("void", register_type(e.dtype)))
    for arg, have, wanted in zip(args, given, prototype.parameters):
        value = c_argument(out, arg)
        if have == wanted:
            operands.append(value)
        elif arg.dtype.is_integer and have[0] == "i" and wanted in ("i16", "i32", "i64") and int(have[1:]) < int(wanted[1:]):
            operands.append(out.assign(f"{'sext' if arg.dtype.is_int else 'zext'} {have} {value} to {wanted}"))
        else:
            fits = False
    if not fits:
        called = f"{register_type(e.dtype)} ({', '.join(given)})"
        raise LoweringError(f"the call of {name} does not fit the imported function:\n    call      {called}\n"
                            f"    imported  {prototype}",
                            hint="pass what it takes: pointers by access_ptr, numbers with .astype('int32') and the like")
    return operands


def _extended(dtype: object, of: str) -> str:
    """Returns the type of a parameter, with the attribute by which the caller extends narrow integers."""
    if of in ("i1", "i8", "i16"):
        return f"{of} {'signext' if str(dtype).startswith('int') else 'zeroext'}"
    return of
