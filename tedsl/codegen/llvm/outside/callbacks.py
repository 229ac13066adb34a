"""Emits calls of Python functions: `tir.call_packed` (`runtime/callbacks.py` has the Python side).

The arguments are stored in words on the stack; a status other than 0 leaves the function as a failed assertion does. All
threads of a kernel share one frame on its stack, which holds the exception.
"""

from __future__ import annotations

from dataclasses import dataclass

from tedsl.codegen.calls.arrays import ArrayArgument, array_argument
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.frame import ERROR, fail_unless
from tedsl.codegen.llvm.loads_stores import address, buffer_info
from tedsl.codegen.llvm.types import global_name, memory_type, register_type
from tedsl.codegen.llvm.values.convert import convert
from tedsl.errors import LoweringError
from tedsl.ir.dtype import VOID, DType, dtype
from tedsl.ir.expr import Call, Expr, StringImm, Var
from tedsl.runtime.callbacks import FRAME, describe

_FLOAT64 = dtype("float64")


@dataclass
class _Arguments:
    """The arguments of a call as 64-bit words, and the kind of each."""

    out: Emitter
    words: list[tuple[str, str]]  # LLVM type, value
    kinds: list[str]

    def add(self, arg: Expr) -> None:
        match arg:
            case StringImm(value=text):
                self.kinds.append("s")
                self.words.append(("ptr", constant_text(self.out, text)))
            case _:
                array = array_argument(arg)
                self.scalar(arg) if array is None else self.array(array)

    def array(self, array: ArrayArgument) -> None:
        out, of = self.out, array.dtype
        pointer = address(out, buffer_info(out, array.data), out.scalar_index(array.offset), memory_type(of))
        access = "r" if array.read_only else "rw"
        self.kinds.append(f"a/{of}/{len(array.shape)}/{access}/{'strided' if array.strides else ''}")
        self.words.append(("ptr", pointer))
        self.words += [("i64", out.register(out.scalar_index(e))[0]) for e in (*array.shape, *array.strides)]

    def scalar(self, arg: Expr) -> None:
        d = arg.dtype
        if d.lanes > 1:
            raise LoweringError(f"call_packed with a vector, {arg!r}: it takes numbers, strings and buffers")
        buffers = self.out.scope.buffers
        value = buffers[arg].pointer if isinstance(arg, Var) and arg in buffers else self.out.value(arg)
        if d.is_handle:
            self.kinds.append("p")
            self.words.append(("ptr", value))
        elif d.is_float:
            self.kinds.append("f")
            self.words.append(("double", convert(self.out, value, d, _FLOAT64)))
        else:
            self.kinds.append("b" if d.is_bool else "i" if d.is_int else "u")
            extended = value if d.bits == 64 else self.out.assign(
                f"{'sext' if d.is_int else 'zext'} {register_type(d)} {value} to i64")
            self.words.append(("i64", extended))


def emit_packed(out: Emitter, e: Call) -> str:
    """Emits the call and returns the value that it yields."""
    name = e.args[0].value if isinstance(e.args[0], StringImm) else ""
    arguments = _Arguments(out, [], [])
    for arg in e.args[1:]:
        arguments.add(arg)
    d = e.dtype
    text = constant_text(out, describe(name, "" if d is VOID else str(d.element), arguments.kinds))
    slots = out.alloca(f"[{max(1, len(arguments.words))} x i64]", 8, "words")
    for k, (t, value) in enumerate(arguments.words):
        out.line(f"store {t} {value}, ptr {out.assign(f'getelementptr i64, ptr {slots}, i64 {k}')}, align 8")
    symbol = out.module.declare("tedsl_call_packed", "declare i32 @tedsl_call_packed(ptr, ptr, ptr)")
    status = out.assign(f"call i32 {symbol}(ptr {text}, ptr {slots}, ptr {out.scope.data[ERROR]})")
    fail_unless(out, out.assign(f"icmp eq i32 {status}, 0"), status)
    return _result(out, slots, d)


def _result(out: Emitter, slots: str, d: DType) -> str:
    if d is VOID:
        return "null"
    if d.is_float:
        return convert(out, out.assign(f"load double, ptr {slots}, align 8"), _FLOAT64, d)
    if d.is_handle:
        return out.assign(f"load ptr, ptr {slots}, align 8")
    word = out.assign(f"load i64, ptr {slots}, align 8")
    if d.is_bool:
        return out.assign(f"icmp ne i64 {word}, 0")
    return word if d.bits == 64 else out.assign(f"trunc i64 {word} to {register_type(d)}")


def constant_text(out: Emitter, text: str) -> str:
    """Returns the address of a NUL-terminated constant of the module that holds `text`."""
    key = f"text {text}"
    if "\0" in text:
        raise LoweringError(f"a string that a function gets cannot contain a NUL character: {text!r}")
    if key not in out.module.cache:
        data = text.encode() + b"\0"
        name = f".text.{len(out.module.declarations)}"
        escaped = "".join(f"\\{byte:02X}" for byte in data)
        out.module.cache[key] = out.module.declare(name, f"@{name} = private unnamed_addr constant [{len(data)} x i8] "
                                                         f'c"{escaped}"')
    return out.module.cache[key]


def prepare_errors(out: Emitter) -> None:
    """Allocates, on the stack of the kernel, the frame that all calls of Python functions share."""
    frame = out.alloca(FRAME, 8, "error")
    symbol = out.module.declare("tedsl_begin_callbacks", "declare void @tedsl_begin_callbacks(ptr)")
    out.entry.append(f"  call void {symbol}(ptr {frame})")
    out.scope.data[ERROR] = frame


def with_own_frame(out: Emitter, symbol: str, parameters: list[str]) -> str:
    """Returns the function `symbol`, which runs the body that `out` writes with a frame of its own and hands exceptions on."""
    types = [parameter.split()[0] for parameter in parameters]
    begin = out.module.declare("tedsl_begin_callbacks", "declare void @tedsl_begin_callbacks(ptr)")
    publish = out.module.declare("tedsl_publish_error", "declare void @tedsl_publish_error(ptr)")
    passed = ", ".join([*(f"{t} %a{k}" for k, t in enumerate(types)), "ptr %frame"])
    return "\n".join([
        f"define i32 {global_name(symbol)}({', '.join(f'{t} %a{k}' for k, t in enumerate(types))}) {out.module.attributes} {{",
        f"  %frame = alloca {FRAME}, align 8", f"  call void {begin}(ptr %frame)",
        f"  %status = call i32 {global_name(out.function.name)}({passed})", "  %fine = icmp eq i32 %status, 0",
        "  br i1 %fine, label %done, label %failed", "failed:", f"  call void {publish}(ptr %frame)", "  br label %done",
        "done:", "  ret i32 %status", "}"])
