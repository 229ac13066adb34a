"""The call of a kernel on arguments in 64-bit slots, and the inverse."""

from __future__ import annotations

import re

from tedsl.codegen.kernels.abi import FIRST_ASSERTION
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.types import argument_type, global_name

# Straight checks gain nothing from optimisation (a few nanoseconds a call), and it would take longer than that of the kernel.
QUICK = "noinline optnone nounwind"
_SHORT = 80  # lines of a kernel that is compiled as one function with its call: a function takes 0.3 ms, however short it is
_OWN = ("!dbg", '"tedsl-')  # attributes by which a function is found after it was written
_TILE = re.compile("@llvm.fma|shufflevector")  # of what may be left out where instructions are combined, by its name


def with_call(source: str, name: str, kernel: KernelSymbol, tensors: int) -> str | None:
    """Returns `source` with the call of its kernel instead of it, or into which LLVM inlines it; None if the kernel is long, or
    used otherwise.
    """
    symbol = global_name(kernel.symbol)
    begin = source.find(f"\ndefine i32 {symbol}(") + 1
    end = source.find("\n}\n", begin) + 3
    if not begin or source.count("\n", begin, end) > _SHORT + 2 or _is_used(source, symbol, begin):
        return None
    header, body = source[begin:end].split(" {\n", 1)
    parameters, attributes = header[len(f"define i32 {symbol}"):].split(") ", 1)
    if any(mark in attributes for mark in _OWN):
        return None
    if QUICK in attributes:
        plain = kernel.result is None and not kernel.messages_before
        return source[:begin] + _on_slots(name, parameters, attributes, body) + source[end:] if plain else None
    if _TILE.search(body):
        return None
    inlined = f"define internal i32 {symbol}{parameters}) alwaysinline {attributes} {{\n{body}"
    call = call_source(name, kernel, tensors, attributes, inlined=True)
    return "\n".join([source[:begin] + inlined + source[end:], call])


def _is_used(source: str, symbol: str, begin: int) -> bool:
    """Tells whether `symbol` stands elsewhere in `source` than in its definition, which begins at `begin`."""
    at = source.find(symbol)
    while at >= 0:
        following = source[at + len(symbol):at + len(symbol) + 1]
        if not (following == "." or following == "_" or following.isalnum()) and at != begin + len("define i32 "):
            return True
        at = source.find(symbol, at + 1)
    return False


def _on_slots(name: str, parameters: str, attributes: str, body: str) -> str:
    """Returns a kernel that takes its parameters from an array of 64-bit slots: what `call_source` would call."""
    entry, rest = body.split("\n", 1)
    lines = [f"define i32 {global_name(name + '.call')}(ptr %\"the slots\") {attributes} {{", entry]
    for k, parameter in enumerate(parameters[1:].split(", ") if len(parameters) > 1 else ()):
        *types, value = parameter.split()  # names of the kernel have no spaces
        lines += [f'  %"slot {k}" = getelementptr i64, ptr %"the slots", i64 {k}',
                  f'  {value} = load {types[0]}, ptr %"slot {k}", align 8']
    return "\n".join([*lines, rest])


def call_source(name: str, kernel: KernelSymbol, tensors: int, attributes: str = QUICK, inlined: bool = False) -> str:
    """Returns the IR of `i32 @name.call(ptr slots)`, which runs the kernel on arguments from an array of 64-bit slots.

    The slot after the arguments takes the number that the kernel returns, if it returns one. attributes: of the function.
    inlined: LLVM inlines the kernel.
    """
    lines, values = [f"define i32 {global_name(name + '.call')}(ptr %slots) {attributes} {{"], []
    types = ["ptr"] * tensors + [argument_type(v.dtype) for v in kernel.scalars]
    for k, type_ in enumerate(types):
        lines += [f"  %at{k} = getelementptr i64, ptr %slots, i64 {k}", f"  %v{k} = load {type_}, ptr %at{k}, align 8"]
        values.append(f"{type_} %v{k}")
    if kernel.result is not None:
        lines.append(f"  %result = getelementptr i64, ptr %slots, i64 {len(types)}")
        values.append("ptr %result")
    lines += [f"  %r = call i32 {global_name(kernel.symbol)}({', '.join(values)}){'' if inlined else ' noinline'}"]
    result = "%r"
    if kernel.messages_before:
        lines += ["  %assertion = icmp sge i32 %r, " + str(FIRST_ASSERTION), f"  %moved = add i32 %r, {kernel.messages_before}",
                  "  %status = select i1 %assertion, i32 %moved, i32 %r"]
        result = "%status"
    lines += [f"  ret i32 {result}", "}", ""]
    return "\n".join(lines)


def slots_source(kernel: KernelSymbol, tensors: int, call: str) -> str:
    """Returns the IR of the kernel as a function that calls `i32 @call(ptr slots)`, which stands elsewhere: the inverse of
    `call_source`.
    """
    types = ["ptr"] * tensors + [argument_type(v.dtype) for v in kernel.scalars]
    parameters = [*(f"{type_} %v{k}" for k, type_ in enumerate(types)), *(["ptr %result"] if kernel.result else [])]
    lines = [f"declare i32 {global_name(call)}(ptr)", "",
             f"define i32 {global_name(kernel.symbol)}({', '.join(parameters)}) {QUICK} {{",
             f"  %slots = alloca [{len(types) + 1} x i64], align 8"]
    for k, type_ in enumerate(types):
        lines += [f"  %at{k} = getelementptr i64, ptr %slots, i64 {k}", f"  store {type_} %v{k}, ptr %at{k}, align 8"]
    lines.append(f"  %r = call i32 {global_name(call)}(ptr %slots)")
    if kernel.result:
        lines += [f"  %last = getelementptr i64, ptr %slots, i64 {len(types)}", "  %number = load i64, ptr %last, align 8",
                  "  store i64 %number, ptr %result, align 8"]
    return "\n".join([*lines, "  ret i32 %r", "}", ""])
