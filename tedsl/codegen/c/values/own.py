"""Emits calls of functions of the same module: by pointers and numbers, `tir.call_extern`, or with arrays that are checked,
`tir.call_packed`. A failure of the function is that of its caller.
"""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.kernel import c_function, emit_kernel
from tedsl.codegen.c.text.module_text import OwnFunction
from tedsl.codegen.c.text.piece import Piece, call, cast
from tedsl.codegen.c.text.types import value_type
from tedsl.codegen.c.values.convert import convert
from tedsl.codegen.c.values.foreign import emit_extern, refuse_packed
from tedsl.codegen.c.values.memory import address, buffer_info
from tedsl.codegen.calls.arrays import ArrayArgument
from tedsl.codegen.calls.packed import Passed, packed_call
from tedsl.ir.dtype import INT64, DType
from tedsl.ir.expr import Call, StringImm, Var
from tedsl.runtime.raw_form import travelling_type
from tedsl.runtime.signature import signature_of


def emit_by_name(out: Emitter, e: Call) -> Emission:
    """Emits `tir.call_extern`: of a function of the module, else of a C function."""
    own = _own(out, e)
    if own is None:
        return (yield from emit_extern(out, e))
    args = []
    for arg in e.args[1:]:
        args.append((yield arg, False))
    return _call(out, e.dtype, own.symbol, args, own.callee.signature.result)


def emit_packed(out: Emitter, e: Call) -> Emission:
    """Emits `tir.call_packed` of a function of the module: a function that checks the arguments, and the call of that."""
    own = _own(out, e)
    if own is None:
        return (yield from refuse_packed(out, e))

    def may_meet(a: Var, b: Var) -> bool:
        one, other = buffer_info(out, a), buffer_info(out, b)
        return one is other or not (out.function.noalias or one.own or other.own)

    name = f"{out.function.name}_call{out.module.next_number()}"
    packed = packed_call(e, own.callee, out.function.owner, may_meet, name)
    args = []
    for passed in packed.passed:
        args.append((yield from _argument(out, passed)))
    checks = c_function(name, packed.func, signature_of(packed.func), out.function.status)
    emit_kernel(checks, out.module, out.tables, owner=out.function.owner, static=True)
    return _call(out, e.dtype, name, args, own.callee.signature.result)


def _own(out: Emitter, e: Call) -> OwnFunction | None:
    return out.module.callees.get(e.args[0].value) if isinstance(e.args[0], StringImm) else None


def _argument(out: Emitter, passed: Passed) -> Emission:
    value = passed.value
    if isinstance(value, ArrayArgument):
        return address(buffer_info(out, value.data), (yield value.offset, True))
    return (yield value, passed.wide)


def _call(out: Emitter, of: DType, symbol: str, args: list[Piece], result: DType | None) -> Piece:
    """Writes the call, which leaves the function where it fails. Returns its number, of dtype `of`, or 0."""
    number = Piece("0")
    if result is not None:
        place = out.names.fresh("number")
        out.line(f"{travelling_type(result)} {place};")
        args = [*args, Piece(f"&{place}")]
        number = Piece(place)
        if of.element is result:
            number = convert(out, number, INT64, result) if result.is_bool else narrowed_number(number, of)
    status = out.names.fresh("status")
    out.line(f"const int32_t {status} = {call(symbol, *args).text};")
    with out.block(f"if ({status} != 0)"):
        out.leave(status)
    return number


def narrowed_number(number: Piece, d: DType) -> Piece:
    """Returns a number that travelled wide as data of dtype `d`."""
    return number if d.is_float or d.bits == 64 else cast(value_type(d), number)
