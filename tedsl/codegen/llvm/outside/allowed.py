"""The LLVM intrinsics that programs may call: those that compute with numbers and access memory only through their pointers.

The others need privileges (llvm.x86.wbinvd), change the floating-point state of the thread (llvm.x86.sse.ldmxcsr,
llvm.set.rounding), end the process (llvm.trap), only inform the compiler (llvm.assume, whose condition it trusts) or move the
stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

# Of every target. A name may be followed by suffixes for its types; one that ends in a dot begins the names of a family.
_GENERIC = frozenset((
    "abs", "acos", "asin", "atan", "atan2", "bitreverse", "bswap", "canonicalize", "ceil", "copysign", "cos", "cosh", "ctlz",
    "ctpop", "cttz", "donothing", "exp", "exp10", "exp2", "fabs", "floor", "fma", "fmuladd", "fptosi.sat", "fptoui.sat",
    "fshl", "fshr", "is.fpclass", "ldexp", "llrint", "llround", "log", "log10", "log2", "lrint", "lround", "maximum",
    "maximumnum", "maxnum", "memcpy", "memmove", "memset", "minimum", "minimumnum", "minnum", "nearbyint", "pow", "powi",
    "prefetch", "readcyclecounter", "rint", "round", "roundeven", "sadd.sat", "scmp", "sdiv.fix", "sdiv.fix.sat", "sin", "sinh",
    "smax", "smin", "smul.fix", "smul.fix.sat", "sqrt", "sshl.sat", "ssub.sat", "tan", "tanh", "trunc", "uadd.sat", "ucmp",
    "udiv.fix", "udiv.fix.sat", "umax", "umin", "umul.fix", "umul.fix.sat", "ushl.sat", "usub.sat",
    "masked.compressstore", "masked.expandload", "masked.gather", "masked.load", "masked.scatter", "masked.store",
))
_FAMILIES = (
    "vector.reduce.", "x86.sse.", "x86.sse2.", "x86.sse3.", "x86.ssse3.", "x86.sse41.", "x86.sse42.", "x86.sse4a.", "x86.avx.",
    "x86.avx2.", "x86.avx512.", "x86.avx512bf16.", "x86.avx512fp16.", "x86.avx10.", "x86.fma.", "x86.fma4.", "x86.f16c.",
    "x86.vcvtph2ps.", "x86.vcvtps2ph.", "x86.aesni.", "x86.pclmulqdq", "x86.vgf2p8", "x86.bmi.", "x86.tbm.", "x86.xop.",
    "x86.sha1", "x86.sha256", "x86.addcarry.", "x86.subborrow.", "x86.rdtsc", "aarch64.neon.",
    "aarch64.crc32", "aarch64.crypto.",
)
# In families: they change the control word of the unit, wait for memory, or clear registers that the compiler uses.
_NOT = ("x86.sse.ldmxcsr", "x86.sse.stmxcsr", "x86.sse3.monitor", "x86.sse3.mwait", "x86.avx.vzeroall", "x86.avx.vzeroupper")


def refusal(name: str) -> str:
    """Returns the reason why programs may not call the intrinsic `name`, which begins with "llvm."; "" if they may."""
    short = name.removeprefix("llvm.")
    if short.startswith(_FAMILIES) and short not in _NOT:
        return ""
    if any(start in _GENERIC for start in _beginnings(short)):
        return ""
    near = get_close_matches(short, sorted(_GENERIC), n=1)
    return "it is not one of those that compute with numbers: others need privileges, change the state of the processor, end " \
           "the process, or do not exist" + (f"; did you mean llvm.{near[0]}?" if near else "")


def _beginnings(short: str) -> Iterator[str]:
    """Yields `short` without its last 0, 1, 2, ... parts, since these may be type suffixes."""
    while short:
        yield short
        short = short.rpartition(".")[0]
