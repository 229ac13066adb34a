"""Emits `tir.call_extern` of a function of the same module: a direct call of its machine code, whose failure is passed on.

`codegen/calls/check.py` has compared the arguments with the function's parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.calls.callees import Callee
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.frame import ERROR, fail_unless, in_argument_type
from tedsl.codegen.llvm.types import argument_type, global_name, register_type
from tedsl.codegen.llvm.values.convert import convert
from tedsl.errors import LoweringError
from tedsl.ir.dtype import FLOAT32, VOID, DType
from tedsl.ir.expr import Call


def emit_raw(out: Emitter, e: Call, called: Callee) -> str:
    """Emits the call, one per lane for vectors, and returns its value: the number that the function returns, else 0."""
    if out.mask is not None:  # a lane that is off must not make the function fail
        raise LoweringError(f"{out.function.owner} calls {called.func.name} on the lanes that a vector of conditions selects",
                            hint="write the condition and the call for one element: a vectorized loop makes lanes")
    args = [(arg, out.value(arg)) for arg in e.args[1:]]
    if e.dtype.lanes == 1:
        return _one_call(out, e.dtype, called, [(arg.dtype, value) for arg, value in args])
    vector, of = "poison", register_type(e.dtype)
    for k in range(e.dtype.lanes):
        lane = [(arg.dtype.element, value if arg.dtype.lanes == 1 else
                 out.assign(f"extractelement {register_type(arg.dtype)} {value}, i64 {k}")) for arg, value in args]
        number = _one_call(out, e.dtype.element, called, lane)
        vector = out.assign(f"insertelement {of} {vector}, {register_type(e.dtype.element)} {number}, i64 {k}")
    return vector


def _one_call(out: Emitter, of: DType, called: Callee, args: Sequence[tuple[DType, str]]) -> str:
    arguments = [f"{argument_type(d)} {in_argument_type(out, value, d)}" for d, value in args]
    return emit_direct(out, of, called, called.general.symbol, arguments)


def emit_direct(out: Emitter, of: DType, called: Callee, symbol: str, arguments: list[str]) -> str:
    """Emits a call of `symbol`, a version of `called`, and returns its value of dtype `of`. A status other than 0 leaves the
    function that is being written.

    arguments: those before the address of the result and the frame.
    """
    result = called.signature.result
    slot = "" if result is None else out.alloca("i64", 8, "number")
    arguments = [*arguments, *([f"ptr {slot}"] if slot else []),
                 *([f"ptr {out.scope.data[ERROR]}"] if called.takes_frame else [])]
    status = out.assign(f"call i32 {global_name(symbol)}({', '.join(arguments)})")
    out.called()
    fail_unless(out, out.assign(f"icmp eq i32 {status}, 0"), status)
    if result is None or of is not result:  # no number, or one that nothing uses
        return "null" if of.is_handle or of is VOID else "0.0" if of.is_float else "false" if of.is_bool else "0"
    return _from_slot(out, slot, result)


def _from_slot(out: Emitter, slot: str, of: DType) -> str:
    """Emits the number that a function has stored as its result."""
    number = out.assign(f"load {argument_type(of)}, ptr {slot}, align 8")
    if of.is_float:
        return convert(out, number, FLOAT32, of) if of.bits < 32 else number
    if of.is_bool:
        return out.assign(f"icmp ne i64 {number}, 0")
    return number if of.bits == 64 else out.assign(f"trunc i64 {number} to {register_type(of)}")
