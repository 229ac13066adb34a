"""What identifies the processor of this process: the answers of `cpuid`, from which LLVM derives its name and features too.

Asking takes microseconds, and no library.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Sequence

from tedsl.target.executable import EXECUTE, PAGE, READ, Pages

# void ask(uint32 leaves[count][2], uint64 count, uint32 answers[count][4]): push rbx; mov r8, rdx;
# next: mov eax, [rdi]; mov ecx, [rdi+4]; cpuid; mov [r8], eax; mov [r8+4], ebx; mov [r8+8], ecx; mov [r8+12], edx;
# add rdi, 8; add r8, 16; dec rsi; jnz next; pop rbx; ret
_ASK = bytes.fromhex("53 4989d0 8b07 8b4f04 0fa2 418900 41895804 41894808 4189500c 4883c708 4983c010 48ffce 75dd 5b c3")
# void enabled(-, -, uint32 answer[2]): mov r8, rdx; xor ecx, ecx; xgetbv; mov [r8], eax; mov [r8+4], edx; ret
_ENABLED = bytes.fromhex("4989d0 31c9 0f01d0 418900 41895004 c3")
_BEHIND = 64  # the offset of the second function
_EXTENDED = 0x80000000  # the second range of leaves
# The leaves that LLVM reads, each with the registers of the answer that are the same on all cores, at any time. The first of
# each range says which is its last: what a processor says beyond it means nothing, and asking traps in a virtual machine.
_LAST = ((0x0, 0, "abcd"), (_EXTENDED, 0, "a"))
_LEAVES = ((0x1, 0, "acd"), (0x7, 0, "abcd"), (0x7, 1, "abcd"), (0xD, 1, "a"), (0x14, 0, "abcd"), (0x19, 0, "abcd"),
           (0x1E, 1, "abcd"), (0x24, 0, "abcd"), (_EXTENDED + 1, 0, "abcd"), (_EXTENDED + 8, 0, "bd"))
_Leaf = tuple[int, int, str]
_OSXSAVE = 1 << 27  # of leaf 1, ecx: the system enables the state of vector registers, as xgetbv says


@functools.lru_cache(maxsize=1)
def processor() -> str:
    """Returns a text that is the same on processors that LLVM cannot tell apart; "" where that is not known."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or struct.calcsize("P") != 8:
        return ""
    try:
        answers, enabled = _asked()
    except OSError:
        return ""
    said = [f"{leaf:x}.{subleaf:x} " + " ".join([f"{answers[leaf, subleaf][name]:x}" for name in registers])
            for leaf, subleaf, registers in (*_LAST, *_LEAVES) if (leaf, subleaf) in answers]
    return " ".join([*said, f"{enabled:x}"])


def _asked() -> tuple[dict[tuple[int, int], dict[str, int]], int]:
    """The registers that `cpuid` fills for each leaf, and what `xgetbv` says; OSError where code cannot be put into memory."""
    pages = Pages(2 * PAGE)  # of code, and of what it writes
    pages.write(0, _ASK)
    pages.write(_BEHIND, _ENABLED)
    pages.protect(0, PAGE, READ | EXECUTE)
    function = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p)
    ask, said = function(pages.address), pages.address + PAGE

    def answers_to(leaves: Sequence[_Leaf]) -> dict[tuple[int, int], dict[str, int]]:
        ask(b"".join([struct.pack("<II", leaf, subleaf) for leaf, subleaf, _ in leaves]), len(leaves), said)
        registers = struct.iter_unpack("<4I", ctypes.string_at(said, 16 * len(leaves)))
        return {(leaf, subleaf): dict(zip("abcd", four)) for (leaf, subleaf, _), four in zip(leaves, registers)}

    answers = answers_to(_LAST)
    last = {0: answers[0, 0]["a"], _EXTENDED: answers[_EXTENDED, 0]["a"]}
    answers |= answers_to([leaf for leaf in _LEAVES if leaf[0] <= last[leaf[0] & _EXTENDED]])
    if not answers[1, 0]["c"] & _OSXSAVE:
        return answers, 0
    function(pages.address + _BEHIND)(b"", 0, said)
    return answers, int.from_bytes(ctypes.string_at(said, 8), "little")
