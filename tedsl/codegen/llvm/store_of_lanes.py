"""Functions that store some lanes of a vector: the end of a row whose lines go past the cache.

They are not inlined, for both ends of a loop call them for every store. There is no mask: a masked store also waits for the
line of the lanes that are off, which may be on its way past the cache.
"""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import ModuleText
from tedsl.codegen.llvm.types import memory_type
from tedsl.ir.dtype import DType
from tedsl.passes.machine.mark_streams import PART


def store_of_lanes(module: ModuleText, d: DType, past: bool) -> str:
    """Returns the function of `module` with the parameters (address, vector, first lane, the one behind the last lane). Lanes
    that the vector does not have are left out.

    past: in parts of 16 bytes past the cache, as is all that is stored beside it in a line; the address and the lanes are
    multiples of that. Else in ordinary parts of powers of two elements, where the rest of a line is nothing past the cache.
    """
    element = memory_type(d.element)
    name = f"tedsl.store_{'parts' if past else 'lanes'}.v{d.lanes}{element}"
    if name not in module.definitions:
        parameters = f"ptr %p, {memory_type(d)} %v, i64 %low, i64 %high"
        begin = f"define internal void @{name}({parameters}) noinline {module.attributes} {{"
        lines = _parts_past(module, d) if past else _powers_of_two(module, d)
        module.definitions[name] = "\n".join([begin, "begin:", *lines, "  ret void", "}"])
    return f"@{name}"


def _parts_past(module: ModuleText, d: DType) -> list[str]:
    t, element, node = memory_type(d), memory_type(d.element), module.nontemporal_node()
    step = min(PART // d.bytes, d.lanes)  # a smaller vector lies in such a part, all of which is on or off
    lines = []
    for at in range(0, d.lanes, step):
        picks = ", ".join(f"i32 {k}" for k in range(at, at + step))
        lines += [f"  %after{at} = icmp sle i64 %low, {at}", f"  %before{at} = icmp sgt i64 %high, {at}",
                  f"  %on{at} = and i1 %after{at}, %before{at}", f"  br i1 %on{at}, label %store{at}, label %next{at}",
                  f"store{at}:", f"  %part{at} = shufflevector {t} %v, {t} poison, <{step} x i32> <{picks}>",
                  f"  %p{at} = getelementptr {element}, ptr %p, i64 {at}",
                  f"  store <{step} x {element}> %part{at}, ptr %p{at}, align {step * d.bytes}, !nontemporal {node}",
                  f"  br label %next{at}", f"next{at}:"]
    return lines


def _powers_of_two(module: ModuleText, d: DType) -> list[str]:
    t, element = memory_type(d), memory_type(d.element)
    low, high = (module.declare(f"llvm.{name}.i64", f"declare i64 @llvm.{name}.i64(i64, i64)") for name in ("smax", "smin"))
    lines = [f"  %copy = alloca {t}", f"  store {t} %v, ptr %copy",
             f"  %first = call i64 {low}(i64 %low, i64 0)", f"  %end = call i64 {high}(i64 %high, i64 {d.lanes})",
             "  %between = sub i64 %end, %first", f"  %count = call i64 {low}(i64 %between, i64 0)"]
    step, at, block = 1 << d.lanes.bit_length() - 1, "%first", "begin"
    while step:
        part = element if step == 1 else f"<{step} x {element}>"
        lines += [f"  %bit{step} = and i64 %count, {step}", f"  %on{step} = icmp ne i64 %bit{step}, 0",
                  f"  br i1 %on{step}, label %store{step}, label %next{step}", f"store{step}:",
                  f"  %from{step} = getelementptr {element}, ptr %copy, i64 {at}",
                  f"  %part{step} = load {part}, ptr %from{step}, align {d.bytes}",
                  f"  %to{step} = getelementptr {element}, ptr %p, i64 {at}",
                  f"  store {part} %part{step}, ptr %to{step}, align {d.bytes}",
                  f"  %after{step} = add i64 {at}, {step}", f"  br label %next{step}", f"next{step}:",
                  f"  %at{step} = phi i64 [ {at}, %{block} ], [ %after{step}, %store{step} ]"]
        step, at, block = step // 2, f"%at{step}", f"next{step}"
    return lines
