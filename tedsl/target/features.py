"""The instruction sets of each processor, in one table by name, and which features imply others.

LLVM knows this too, but its Python binding does not tell; a name that LLVM does not know is silently ignored there, so
that a typing error would cost nine tenths of the speed. Names not in the table are refused.
"""

from __future__ import annotations

_V1 = ("sse", "sse2")
_V2 = (*_V1, "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_ICELAKE = (*_V4, "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq")
_SAPPHIRE = (*_ICELAKE, "avx512bf16", "avx512fp16", "avxvnni", "amx-tile", "amx-int8", "amx-bf16")
_SANDY = (*_V2, "avx")

X86_CPUS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("x86-64", "generic", "nocona", "core2", "k8", "opteron", "athlon64"), _V1),
    **dict.fromkeys(("x86-64-v2", "nehalem", "westmere", "corei7", "silvermont", "goldmont"), _V2),
    **dict.fromkeys(("sandybridge", "corei7-avx", "btver2"), _SANDY),
    **dict.fromkeys(("ivybridge", "core-avx-i"), (*_SANDY, "f16c")),
    **dict.fromkeys(("x86-64-v3", "haswell", "core-avx2", "broadwell", "skylake", "znver1", "znver2", "znver3"), _V3),
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "arrowlake"), (*_V3, "avxvnni")),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "skx"), _V4),
    "knl": (*_V3, "avx512f", "avx512cd"),
    "cascadelake": (*_V4, "avx512vnni"),
    "cooperlake": (*_V4, "avx512vnni", "avx512bf16"),
    **dict.fromkeys(("icelake-server", "icelake-client", "tigerlake", "rocketlake"), _ICELAKE),
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids"), _SAPPHIRE),
    "znver4": (*_ICELAKE, "avx512bf16"),
    "znver5": (*_ICELAKE, "avx512bf16", "avxvnni"),
}

# What LLVM uses for some of these processors, though others with the same features lack it: code is made without it, so that
# it runs wherever the features of the table are.
UNLISTED = {"x86-64": ("sse4a",)}

_ARM8 = ("neon", "fp-armv8")
_ARM82 = (*_ARM8, "fullfp16", "dotprod", "lse")
AARCH64_CPUS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("generic", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a73"), _ARM8),
    **dict.fromkeys(("cortex-a55", "cortex-a75", "cortex-a76", "cortex-a78", "neoverse-n1", "apple-m1", "apple-a14",
                     "apple-latest"), _ARM82),
    **dict.fromkeys(("apple-m2", "apple-m3"), (*_ARM82, "i8mm")),
    **dict.fromkeys(("neoverse-v1", "neoverse-n2", "neoverse-v2", "grace"), (*_ARM82, "i8mm", "sve")),
    "carmel": (*_ARM8, "fullfp16", "lse"),
    "a64fx": (*_ARM8, "fullfp16", "lse", "sve"),
}

# RISC-V: what Linux distributions are built for (RV64GC), and processors with the vector extension. The width of vectors is
# what the extension promises (zvl256b: 256 bits at least); V alone promises 128.
_RV64GC = ("m", "a", "f", "d", "c")
RISCV64_CPUS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("generic", "generic-rv64", "rocket-rv64", "sifive-u54", "sifive-u74", "sifive-p550", "xiangshan-nanhu"),
                    _RV64GC),
    "sifive-x280": (*_RV64GC, "v", "zvl512b", "zvfh"),
    "sifive-p670": (*_RV64GC, "v"),
    "spacemit-x60": (*_RV64GC, "v", "zvl256b", "zvfh"),
}

# 32-bit ARM: hard-float ARMv7-A with NEON, whose single-precision vectors flush denormal numbers to zero.
_ARM7 = ("neon", "vfp3", "d32")
ARM_CPUS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("generic", "cortex-a8", "cortex-a9"), _ARM7),
    **dict.fromkeys(("cortex-a5", "cortex-a7", "cortex-a12", "cortex-a15", "cortex-a17"), (*_ARM7, "vfp4")),
    **dict.fromkeys(("cortex-a32", "cortex-a35", "cortex-a53", "cortex-a72"), (*_ARM7, "vfp4", "fp-armv8")),
}

# NVIDIA's devices: the first version of PTX that knows them, and at least 6.3, which drivers of 2018 take.
NVPTX_CPUS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70", "sm_72", "sm_75"), ("ptx63",)),
    "sm_80": ("ptx70",), "sm_86": ("ptx71",), "sm_87": ("ptx74",), "sm_89": ("ptx78",), "sm_90": ("ptx78",),
    "sm_100": ("ptx86",), "sm_101": ("ptx86",), "sm_120": ("ptx87",),
}
CPUS = {"x86-64": X86_CPUS, "aarch64": AARCH64_CPUS, "riscv64": RISCV64_CPUS, "arm": ARM_CPUS, "nvptx64": NVPTX_CPUS}
BASELINE = {"x86-64": "x86-64", "riscv64": "generic-rv64"}  # the processor of an architecture, where it is not "generic"

# What -mattr may name on x86: LLVM 20 to 22 (its own list of the host's features, and the tuning words people use).
X86_FEATURES = frozenset((
    "3dnow", "3dnowa", "64bit", "adx", "aes", "amx-avx512", "amx-bf16", "amx-complex", "amx-fp16", "amx-fp8", "amx-int8",
    "amx-movrs", "amx-tf32", "amx-tile", "avx", "avx10.1", "avx10.2", "avx2", "avx512bf16", "avx512bitalg", "avx512bw",
    "avx512cd", "avx512dq", "avx512er", "avx512f", "avx512fp16", "avx512ifma", "avx512pf", "avx512vbmi", "avx512vbmi2",
    "avx512vl", "avx512vnni", "avx512vp2intersect", "avx512vpopcntdq", "avxifma", "avxneconvert", "avxvnni", "avxvnniint16",
    "avxvnniint8", "bmi", "bmi2", "ccmp", "cf", "cldemote", "clflushopt", "clwb", "clzero", "cmov", "cmpccxadd", "crc32",
    "cx16", "cx8", "egpr", "enqcmd", "evex512", "f16c", "fast-variable-perlane-shuffle", "fma", "fma4", "fsgsbase", "fxsr",
    "gfni", "hreset", "invpcid", "kl", "lwp", "lzcnt", "mmx", "movbe", "movdir64b", "movdiri", "movrs", "mwaitx", "ndd",
    "nf", "pclmul", "pconfig", "pku", "popcnt", "ppx", "prefer-128-bit", "prefer-256-bit", "prefetchi", "prefetchwt1",
    "prfchw", "ptwrite", "push2pop2", "raoint", "rdpid", "rdpru", "rdrnd", "rdseed", "retpoline", "rtm", "sahf",
    "serialize", "sgx", "sha", "sha512", "shstk", "slow-unaligned-", "mem-32", "sm3", "sm4", "soft-float", "sse",
    "sse-unaligned-mem", "sse2", "sse3", "sse4.1", "sse4.2", "sse4a", "ssse3", "tbm", "tsxldtrk", "uintr", "usermsr",
    "vaes", "vpclmulqdq", "waitpkg", "wbnoinvd", "widekl", "x87", "xop", "xsave", "xsavec", "xsaveopt", "xsaves", "zu",
))

# Processors without an operating system, for which the target `c` makes portable code.
MICROCONTROLLERS = frozenset((
    *(f"cortex-m{kind}" for kind in ("0", "0plus", "1", "3", "4", "7", "23", "33", "35p", "52", "55", "85")),
    *(f"cortex-r{kind}" for kind in ("4", "4f", "5", "7", "8", "52")), "sc000", "sc300"))

# What -mattr may name elsewhere: extensions that change what code can use. LLVM's words for the tuning of single processors
# come with their -mcpu.
_ARM_ANY = ("aes", "bf16", "crc", "crypto", "dotprod", "fp-armv8", "fullfp16", "fp16fml", "i8mm", "neon", "ras", "sb", "sha2",
            "strict-align")
AARCH64_FEATURES = frozenset((
    *_ARM_ANY, "complxnum", "f32mm", "f64mm", "flagm", "fp8", "jsconv", "lse", "lse128", "lse2", "lut", "mops", "mte", "pauth",
    "rand", "rcpc", "rdm", "sha3", "sm4", "sme", "sme2", "sve", "sve-aes", "sve-b16b16", "sve-bitperm", "sve-sha3", "sve-sm4",
    "sve2", "sve2-aes", "sve2-bitperm", "sve2-sha3", "sve2-sm4", "sve2p1",
    *(f"v8.{k}a" for k in range(1, 10)), "v8a", *(f"v9.{k}a" for k in range(1, 8)), "v9a"))
ARM_FEATURES = frozenset((
    *_ARM_ANY, "armv7-a", "armv7ve", "armv8-a", "d32", "dsp", "fp16", "fp64", "hwdiv", "hwdiv-arm", "mp", "neonfp",
    "thumb-mode", "thumb2", "v7", "v8", "vfp2", "vfp3", "vfp3d16", "vfp4", "vfp4d16"))
RISCV64_FEATURES = frozenset((
    "64bit", "a", "b", "c", "d", "f", "h", "i", "m", "v", "relax", "unaligned-scalar-mem", "unaligned-vector-mem", "za64rs",
    "zaamo", "zabha", "zacas", "zalrsc", "zawrs", "zba", "zbb", "zbc", "zbkb", "zbkc", "zbkx", "zbs", "zca", "zcb", "zcd",
    "zfa", "zfbfmin", "zfh", "zfhmin", "zicbom", "zicbop", "zicboz", "zicntr", "zicond", "zicsr", "zifencei", "zihintpause",
    "zkt", "zvbb", "zvbc", "zve32f", "zve32x", "zve64d", "zve64f", "zve64x", "zvfbfmin", "zvfbfwma", "zvfh", "zvfhmin",
    *(f"zvl{1 << k}b" for k in range(5, 17)), "rva20u64", "rva22u64", "rva23u64"))
FEATURES = {"x86-64": X86_FEATURES, "aarch64": AARCH64_FEATURES, "arm": ARM_FEATURES, "riscv64": RISCV64_FEATURES}

# A feature switched on brings what it stands on; one switched off takes away what stands on it.
IMPLIES: dict[str, tuple[str, ...]] = {
    "sse2": ("sse",), "sse3": ("sse2",), "ssse3": ("sse3",), "sse4.1": ("ssse3",), "sse4.2": ("sse4.1", "popcnt"),
    "avx": ("sse4.2",), "avx2": ("avx",), "fma": ("avx",), "f16c": ("avx",), "avxvnni": ("avx2",),
    "avx512f": ("avx2", "fma", "f16c"), "avx512bw": ("avx512f",), "avx512cd": ("avx512f",), "avx512dq": ("avx512f",),
    "avx512vl": ("avx512f",), "avx512vnni": ("avx512f",), "avx512ifma": ("avx512f",), "avx512bf16": ("avx512bw",),
    "avx512vbmi": ("avx512bw",), "avx512vbmi2": ("avx512bw",), "avx512bitalg": ("avx512bw",), "avx512vpopcntdq": ("avx512f",),
    "amx-int8": ("amx-tile",), "amx-bf16": ("amx-tile",),
    "avx512fp16": ("avx512bw", "avx512dq", "avx512vl"), "fullfp16": ("fp-armv8",), "sve": ("neon", "fullfp16"),
    "sve2": ("sve",), "d": ("f",), "v": ("d",), "zvfh": ("zfhmin",), "zfh": ("zfhmin",), "zfhmin": ("f",), "vfp4": ("vfp3",),
    "rva22u64": ("m", "a", "d", "c"), "rva23u64": ("m", "a", "c", "v", "zfhmin"),
}


def apply_changes(start: tuple[str, ...], changes: tuple[str, ...]) -> frozenset[str]:
    """Returns the features `start` after `changes` such as "+avx2" and "-fma", in order."""
    have = set(start)
    for change in changes:
        name = change[1:]
        if change[0] == "+":
            have |= _closure(name)
        else:
            have -= {f for f in have if name in _closure(f)} | {name}
    return frozenset(have)


def _closure(feature: str) -> set[str]:
    implied, todo = set(), [feature]
    while todo:
        name = todo.pop()
        if name not in implied:
            implied.add(name)
            todo.extend(IMPLIES.get(name, ()))
    return implied
