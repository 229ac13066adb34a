"""Emits `tir.call_packed` of a function of the same module: the function that checks the arguments, and the call of it."""

from __future__ import annotations

from tedsl.codegen.calls.arrays import ArrayArgument
from tedsl.codegen.calls.callees import Callee
from tedsl.codegen.calls.packed import PackedCall, Passed, packed_call
from tedsl.codegen.llvm.calls.raw import emit_direct
from tedsl.codegen.llvm.emitter import Emitter, FunctionFacts
from tedsl.codegen.llvm.entry.symbol import QUICK
from tedsl.codegen.llvm.frame import ERROR, bind_arguments, emit_return, in_argument_type
from tedsl.codegen.llvm.loads_stores import address, buffer_info
from tedsl.codegen.llvm.types import argument_type, global_name, memory_type
from tedsl.ir.expr import Call, Var


def emit_own_packed(out: Emitter, e: Call, called: Callee) -> str:
    """Emits the checks and the call, and returns its value: the number that the function returns, else 0."""
    symbol = f"{out.function.name}.call{out.module.next_number()}"

    def may_meet(a: Var, b: Var) -> bool:
        return buffer_info(out, a).may_meet(buffer_info(out, b), out.function.noalias)

    call = packed_call(e, called, out.function.owner, may_meet, symbol)
    arguments = [_argument(out, passed) for passed in call.passed]
    out.module.functions.append(_checks(out, call, called))
    return emit_direct(out, e.dtype, called, symbol, arguments)


def _argument(out: Emitter, passed: Passed) -> str:
    value = passed.value
    if isinstance(value, ArrayArgument):
        pointer = address(out, buffer_info(out, value.data), out.scalar_index(value.offset), memory_type(value.dtype))
        return f"ptr {pointer}"
    if passed.wide:
        return f"i64 {out.register(out.scalar_index(value))[0]}"
    return f"{argument_type(value.dtype)} {in_argument_type(out, out.value(value), value.dtype)}"


def _checks(out: Emitter, call: PackedCall, called: Callee) -> str:
    """Returns the function of the checks; its failures are those of the function that calls."""
    facts = FunctionFacts(call.func.name, frozenset(), False, out.function.status, owner=out.function.owner,
                          result=called.signature.result, takes_frame=called.takes_frame)
    inner = Emitter(out.module, facts)
    parameters = bind_arguments(call.func, inner)
    if called.takes_frame:
        inner.scope.data[ERROR] = text = "%" + inner.fresh("error")
        parameters.append(f"ptr {text}")
    inner.statement(call.func.body)
    emit_return(inner, None)
    return inner.text(f"define internal i32 {global_name(call.func.name)}({', '.join(parameters)}) {QUICK}")
