"""Emits calls of C functions by their names, `tir.call_extern`; refuses what only LLVM or Python has."""

from __future__ import annotations

import re

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.text.piece import Piece, call
from tedsl.codegen.c.text.types import value_type
from tedsl.errors import LoweringError
from tedsl.ir.calls.signatures import misfit
from tedsl.ir.dtype import VOID, DType
from tedsl.ir.expr import Call, StringImm
from tedsl.ir.functions import C_MATH
from tedsl.ir.ops import CALL_EXTERN, Op

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def emit_extern(out: Emitter, e: Call) -> Emission:
    """Emits a C function: as the operator of the language that has its name, else by its name, which is declared."""
    name = e.args[0].value if isinstance(e.args[0], StringImm) else str(e.args[0])
    op = C_MATH.get(name)
    if op is not None and len(e.args) == 1 + (Op.get(f"tir.{op}").arity or 0) and e.args[1].dtype is e.dtype:
        same = Call(e.dtype, Op.get(f"tir.{op}"), e.args[1:])
        problem = misfit(same)
        if problem:
            raise LoweringError(f"the C function {name} is {op} here, and {problem}", hint="cast the arguments with .astype")
        return (yield same, False)
    if not _NAME.fullmatch(name):
        raise LoweringError(f"{name!r} is not the name of a C function")
    wide = [a.dtype for a in e.args[1:] if a.dtype.lanes not in (1, e.dtype.lanes)]
    if wide:
        raise LoweringError(f"the C function {name} takes one value at a time: its arguments have {wide[0].lanes} lanes, the "
                            f"call has {e.dtype.lanes}",
                            hint="give the call as many lanes as its arguments have; it is made lane by lane")
    if not out.module.dialect.declares:
        return (yield from _as_it_is(out, e, name))
    types = ["const char *" if isinstance(a, StringImm) else _type(a.dtype, name) for a in e.args[1:]]
    result = _type(e.dtype, name)
    space = "" if result.endswith("*") else " "
    out.module.declare(name, f"{result}{space}{name}({', '.join(types) or 'void'});")
    args = []
    for arg, type_ in zip(e.args[1:], types):
        value = Piece(string(arg.value)) if isinstance(arg, StringImm) else (yield arg, False)
        args.append(Piece(f"({type_}){value.at(9)}", 9) if arg.dtype.is_handle and not isinstance(arg, StringImm) else value)
    return call(name, *args, reads=e.op is CALL_EXTERN and e.dtype is not VOID)


def _as_it_is(out: Emitter, e: Call, name: str) -> Emission:
    """Emits the call of a function that the language has, with arguments as they are."""
    args = []
    for arg in e.args[1:]:
        args.append((yield arg, False))
    return call(name, *args, reads=e.op is CALL_EXTERN and e.dtype is not VOID)


def _type(d: DType, name: str) -> str:
    if d.is_float and d.bits == 16:
        raise LoweringError(f"the C function {name} cannot take or return {d}", hint="cast to float32 or float64")
    return value_type(d)


def string(text: str) -> str:
    """Returns a string literal with the UTF-8 bytes of `text`."""
    plain = "".join(chr(c) if 32 <= c < 127 and chr(c) not in '"\\?' else f"\\{c:03o}" for c in text.encode())
    return f'"{plain}"'


def refuse_llvm(out: Emitter, e: Call) -> Emission:
    name = e.args[0].value if isinstance(e.args[0], StringImm) else str(e.args[0])
    raise LoweringError(f"{name} is an intrinsic of LLVM, which C does not have",
                        hint='build for target "llvm", or write the operation with operators of the language')
    yield


def refuse_packed(out: Emitter, e: Call) -> Emission:
    name = e.args[0].value if isinstance(e.args[0], StringImm) else str(e.args[0])
    what = "checks of accesses call back into Python" if name.startswith("tedsl.checked.") else \
        f"call_packed of {name!r} is a call of a Python function"
    raise LoweringError(f"{what}, which code in C cannot do",
                        hint='build for target "llvm", call a C function, tir.call_extern, or build the function of that name '
                             "into the same module")
    yield
