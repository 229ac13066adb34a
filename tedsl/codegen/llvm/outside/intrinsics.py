"""Emits LLVM intrinsics by name: `tir.call_llvm_intrin`.

`allowed.py` lists those that may be called. LLVM ends the process over an intrinsic with a wrong signature, or one that
the target lacks. Therefore those with a simple signature are in a table; every other call is first compiled in a separate
process, once for each signature and target.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.outside.allowed import refusal
from tedsl.codegen.llvm.types import register_type
from tedsl.errors import LoweringError
from tedsl.ir.dtype import VOID, DType
from tedsl.ir.expr import Call, Expr, IntImm, StringImm

# All arguments of the dtype of the result: name -> (how many, whether floats, whether integers)
_PLAIN: dict[str, tuple[int, bool, bool]] = {
    **dict.fromkeys(("ceil", "fabs", "floor", "nearbyint", "rint", "round", "roundeven", "sqrt", "trunc"), (1, True, False)),
    **dict.fromkeys(("copysign", "maximum", "maxnum", "minimum", "minnum"), (2, True, False)),
    **dict.fromkeys(("fma", "fmuladd"), (3, True, False)),
    **dict.fromkeys(("bitreverse", "ctpop"), (1, False, True)),
    **dict.fromkeys(("sadd.sat", "smax", "smin", "ssub.sat", "uadd.sat", "umax", "umin", "usub.sat"), (2, False, True)),
    **dict.fromkeys(("fshl", "fshr"), (3, False, True)),
}
# What the names for x86 need, the longest beginning that fits decides.
_X86 = {
    "sse": "sse", "sse2": "sse2", "sse3": "sse3", "ssse3": "ssse3", "sse41": "sse4.1", "sse42": "sse4.2", "avx": "avx",
    "avx2": "avx2", "fma": "fma", "avx512": "avx512f", "avx512.vpdp": "avx512vnni", "avx512bf16": "avx512bf16",
    "avx512.permvar.qi": "avx512vbmi", "avx512.vpermi2var.qi": "avx512vbmi", "avx512.vpmadd52": "avx512ifma",
}


def emit_llvm_intrinsic(out: Emitter, e: Call) -> str:
    """Emits a call of an LLVM intrinsic by its name, whose type suffix may be left out."""
    name = e.args[0].value if isinstance(e.args[0], StringImm) else ""
    if not name.startswith("llvm.") or not name.replace(".", "").replace("_", "").isalnum():
        raise LoweringError(f"call_llvm_intrin names an intrinsic of LLVM, not {name!r}", hint='for example "llvm.fshl"')
    reason = refusal(name)
    if reason:
        raise LoweringError(f"call_llvm_intrin: programs may not call {name}: {reason}",
                            hint="the list is in tedsl/codegen/llvm/outside/allowed.py; a C function may: tir.call_extern")
    wrong = [a.dtype for a in (*e.args[1:], e) if (a.dtype.is_float and a.dtype.bits == 16)]
    if wrong:
        raise LoweringError(f"{name} of {wrong[0]}: 16-bit floats have no LLVM intrinsics here", hint="cast to float32")
    if not _is_plain(name, e.dtype, [a.dtype for a in e.args[1:]]):
        _check(out, name, e)
    result = register_type(e.dtype)
    args = [(register_type(a.dtype), _constant(a) or out.value(a)) for a in e.args[1:]]
    symbol = out.module.declare(name, f"declare {result} @{name}({', '.join(t for t, _ in args)})")
    if not e.op.is_pure:
        out.called()
    call = f"call {result} {symbol}({', '.join(f'{t} {v}' for t, v in args)})"
    if e.dtype is VOID:
        out.line(call)
        return "null"
    return out.assign(call)


def _is_plain(name: str, result: DType, args: list[DType]) -> bool:
    """Tells whether the table has the name, without its type suffix, with a signature that fits these types."""
    short = name.removeprefix("llvm.")
    if short not in _PLAIN:
        short = short.rpartition(".")[0]
    count, floats, integers = _PLAIN.get(short, (-1, False, False))
    fits = (result.is_float and floats) or (result.is_integer and integers)
    return fits and len(args) == count and all(a is result for a in args)


def _check(out: Emitter, name: str, e: Call) -> None:
    target = out.target
    parts = name.split(".")
    if parts[1] in ("x86", "aarch64", "arm", "amdgcn", "nvvm", "ppc"):
        arch = {"x86": "x86-64"}.get(parts[1], parts[1])
        if arch != target.architecture:
            raise LoweringError(f"the intrinsic {name} cannot be called for target {target}: it is one of {arch}")
    needed = x86_feature(name)
    if needed and needed not in target.features:
        raise LoweringError(f"{name} needs {needed}, which target {target} does not have",
                            hint=f"build for a machine that has it: llvm -mattr=+{needed}")
    types = [register_type(a.dtype) for a in e.args[1:]]
    values = [_constant(a) or f"%a{k}" for k, a in enumerate(e.args[1:])]
    result = register_type(e.dtype)
    text = (f"declare {result} @{name}({', '.join(types)})\n"
            f"define {result} @probe({', '.join(f'{t} %a{k}' for k, t in enumerate(types))}) {{\n"
            f"  {'' if result == 'void' else '%r = '}call {result} @{name}({', '.join(map(' '.join, zip(types, values)))})\n"
            f"  ret {result}{'' if result == 'void' else ' %r'}\n}}\n")
    problem = _tried(name, text, target.triple, target.cpu, target.feature_string)
    if problem is not None:
        raise LoweringError(f"LLVM cannot call {name} on ({', '.join(str(a.dtype) for a in e.args[1:])}) giving {e.dtype} for "
                            f"target {target}: {problem}", hint="see LLVM's language reference for its name and signature")


def _constant(arg: Expr) -> str:
    """Returns the text of a constant argument, which some parameters require; "" for a computed value."""
    if not isinstance(arg, IntImm):
        return ""
    return str(bool(arg.value)).lower() if arg.dtype.is_bool else str(arg.value)


def x86_feature(name: str) -> str:
    short = name.removeprefix("llvm.x86.")
    if short == name:
        return ""
    known = [start for start in _X86 if short == start or short.startswith(start + ".") or (
        "." in start and short.startswith(start))]
    return _X86[max(known, key=len)] if known else ""


@lru_cache(maxsize=256)
def _tried(name: str, text: str, triple: str, cpu: str, features: str) -> str | None:
    """Compiles `text` in a separate process and returns the error message; None if it compiles."""
    given = json.dumps({"name": name, "text": text, "triple": triple, "cpu": cpu, "features": features})
    try:
        done = subprocess.run([sys.executable, "-c", _PROBE], input=given, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be tried: {error}"
    if done.returncode == 0:
        return done.stdout.strip() or None
    last = [line for line in done.stderr.splitlines() if "LLVM ERROR" in line or "Assertion" in line]
    return last[-1].rpartition("LLVM ERROR: ")[2] if last else "it ends the process"


_PROBE = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from llvmlite import binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
given = json.load(sys.stdin)
try:
    module = llvm.parse_assembly(given["text"])
    module.verify()
    target = llvm.Target.from_triple(given["triple"])
    machine = target.create_target_machine(cpu=given["cpu"], features=given["features"], opt=1)
    if given["name"].encode() in machine.emit_object(module):  # a symbol like any other
        print("there is no intrinsic of that name")
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
