"""What identifies the processor of this process: the answers of `cpuid`, from which LLVM derives its name and features too.

Asking takes microseconds, and no library.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import struct
import sys

from tedsl.target.executable import EXECUTE, PAGE, READ, Pages

# void ask(uint32 leaf, uint32 subleaf, uint32 answer[4]): push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid;
# mov [r8], eax; mov [r8+4], ebx; mov [r8+8], ecx; mov [r8+12], edx; pop rbx; ret
_ASK = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")
# uint64 enabled(): xor ecx, ecx; xgetbv; shl rdx, 32; or rax, rdx; ret
_ENABLED = bytes.fromhex("31c9 0f01d0 48c1e220 4809d0 c3")
_BEHIND = 64  # the offset of the second function
# The leaves that LLVM reads; each with the registers of the answer that are the same on all cores, at any time.
_LEAVES = ((0x1, 0, "acd"), (0x7, 0, "abcd"), (0x7, 1, "abcd"), (0xD, 1, "a"), (0x14, 0, "abcd"), (0x19, 0, "abcd"),
           (0x1E, 1, "abcd"), (0x24, 0, "abcd"))
_EXTENDED = ((0x80000001, 0, "abcd"), (0x80000008, 0, "bd"))
_OSXSAVE = 1 << 27  # of leaf 1, ecx: the system enables the state of vector registers, as xgetbv says


@functools.lru_cache(maxsize=1)
def processor() -> str:
    """Returns a text that is the same on processors that LLVM cannot tell apart; "" where that is not known."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or struct.calcsize("P") != 8:
        return ""
    try:
        pages = Pages(PAGE)
        pages.write(0, _ASK)
        pages.write(_BEHIND, _ENABLED)
        pages.protect(0, PAGE, READ | EXECUTE)
    except OSError:
        return ""
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(pages.address)
    enabled = ctypes.CFUNCTYPE(ctypes.c_uint64)(pages.address + _BEHIND)

    def answer(leaf: int, subleaf: int) -> dict[str, int]:
        registers = (ctypes.c_uint32 * 4)()
        ask(leaf, subleaf, ctypes.addressof(registers))
        return dict(zip("abcd", registers))

    first, last = answer(0, 0), answer(0x80000000, 0)["a"]
    leaves = [leaf for leaf in _LEAVES if leaf[0] <= first["a"]] + [leaf for leaf in _EXTENDED if leaf[0] <= last]
    said = [f"{number:x}" for number in first.values()]
    for leaf, subleaf, registers in leaves:
        answered = answer(leaf, subleaf)
        said += [f"{leaf:x}.{subleaf:x}", *[f"{answered[name]:x}" for name in registers]]
    said.append(f"{enabled() if answer(1, 0)['c'] & _OSXSAVE else 0:x}")
    return " ".join(said)
