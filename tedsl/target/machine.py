"""`Machine`: what schedules know of a processor: caches, registers, and what one cycle can do. Tiles are chosen from it.

The figures of a target come from its processor's name, by the table below; for this machine the sizes of caches, the page and
the number of processors are those that the system reports. `-model=NAME` takes another row of the table, `-model=FILE.json` a
file with the fields of `Machine`.

Sources of the table: the vendors' optimisation manuals and Agner Fog's "The microarchitecture of Intel, AMD and VIA CPUs".
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os

from tedsl.errors import ArgumentError
from tedsl.processors import default_threads, usable_processors
from tedsl.record import record

_CACHES = "/sys/devices/system/cpu/cpu0/cache"
_KIB, _MIB = 1 << 10, 1 << 20
_FAR = 3  # times slower than the second cache, from which on the last one is as far as memory
# Bytes that a function reads and writes from which its stores go past the cache by themselves, as parts of the last cache, and
# their bounds: of a cache that a machine shares with others, not all is ours. Measured for a scaled copy of float32 on a cache
# of 32 MiB, ordinary time / time past the cache: alone 1.08 to 1.18 from 2 to 32 MiB, 1.23 to 1.31 from 64 MiB on; but with a
# reader of the output right after it 0.7 to 0.8 up to 16 MiB, 0.96 at 32 MiB, 1.09 to 1.14 from 64 MiB on. A softmax of 32 MiB:
# alone 1.25 to 1.35. Where the last cache is as far as memory, ordinary time / time past the cache (the same copy, an Emerald
# Rapids guest): alone 1.4 to 1.9 from 3 to 16 MiB, 1.6 to 2.1 beyond; with a reader 0.6 to 0.8 up to 4 MiB, 1.0 to 1.2 from 6
# to 12 MiB, 1.3 from 24 MiB on.
_PARTS, _LEAST, _MOST = 0.9, 12 << 20, 48 << 20


@record
class Cache:
    """A data cache: its size in bytes, and the number of lines that share a set."""

    size: int
    ways: int

    def evicts(self, places: int, step: int) -> bool:
        """Whether lines of so many places, `step` bytes from one to the next, fall into so few sets that they do not all stay
        beside a line of something else.
        """
        way = self.size // self.ways
        return -(-places // max(1, way // math.gcd(step, way))) >= self.ways


@record
class Machine:
    """What schedules know of a processor.

    l1, l2, l3: data caches seen by a core; l3 is shared, and of size 0 where there is none. line, page: bytes.
    tlb, tlb2: the pages in the first and in the second table of addresses.
    fma_latency: cycles until the result of a multiply-add can be added to.
    fma_bits, load_bits, l2_bits, l3_bits: bits of multiply-adds that start, of vectors loaded from l1, l2 and l3, in a cycle.
    cores: processors that parallel loops use. hardware_threads: processors that are threads of one core.
    """

    name: str
    l1: Cache
    l2: Cache
    l3: Cache
    fma_latency: int
    fma_bits: int
    load_bits: int
    l2_bits: int = 256
    l3_bits: int = 192
    tlb: int = 64
    tlb2: int = 1536
    line: int = 64
    page: int = 4096
    cores: int = 1
    hardware_threads: int = 1

    def __str__(self) -> str:
        caches = ", ".join(f"L{level} {_shown(cache.size)} of {cache.ways} ways"
                           for level, cache in enumerate((self.l1, self.l2, self.l3), start=1) if cache.size)
        return (f"{self.name}: {caches}, lines of {self.line} bytes, pages of {_shown(self.page)} ({self.tlb} + {self.tlb2} "
                f"known at once); bits per cycle: {self.fma_bits} multiplied and added, which takes {self.fma_latency} cycles, "
                f"{self.load_bits} from L1, {self.l2_bits} from L2, {self.l3_bits} from L3; "
                f"{self.cores // self.hardware_threads} cores of {self.hardware_threads} threads")

    @property
    def has_far_l3(self) -> bool:
        """Whether the last cache, shared by many cores that lie apart, is about as far from a core as memory."""
        return self.l3_bits * _FAR < self.l2_bits

    @property
    def large(self) -> int:
        """The bytes that a function reads and writes from which its large outputs go past the cache."""
        return _LEAST if self.has_far_l3 else max(_LEAST, min(_MOST, int(_PARTS * self.l3.size)))

    def fmas(self, vector_bits: int) -> float:
        """The multiply-adds of vectors of so many bits that start in a cycle."""
        return self.fma_bits / vector_bits

    def chains(self, vector_bits: int) -> int:
        """The fewest independent sums of vectors that keep all multipliers busy: latency times throughput."""
        return max(1, -(-self.fma_latency * self.fma_bits // vector_bits))


def _shown(size: int) -> str:
    return f"{size // _MIB} MiB" if size % _MIB == 0 else f"{size // _KIB} KiB"


def _row(name: str, l1: tuple[int, int], l2: tuple[int, int], l3: tuple[int, int], latency: int, fma: int, load: int,
         near: int, tlb: int = 64, tlb2: int = 1536, line: int = 64, page: int = 4096, l3_bits: int = 192) -> Machine:
    """A row of the table; sizes in KiB."""
    caches = [Cache(size * _KIB, ways) for size, ways in (l1, l2, l3)]
    return Machine(name, caches[0], caches[1], caches[2], latency, fma, load, near, l3_bits, tlb, tlb2, line, page)


_ROWS = (
    # name, l1, l2, l3 (KiB, ways), latency of fma, bits per cycle of fma, of loads from l1, from l2, pages of both tables
    _row("x86-64", (32, 8), (256, 8), (8192, 16), 4, 512, 512, 256),
    _row("x86-64-v3", (32, 8), (512, 8), (8192, 16), 4, 512, 512, 256),
    _row("x86-64-v4", (32, 8), (1024, 16), (8192, 16), 4, 1024, 1024, 384),
    _row("haswell", (32, 8), (256, 8), (8192, 16), 5, 512, 512, 256, 64, 1024),
    _row("skylake", (32, 8), (256, 4), (8192, 16), 4, 512, 512, 320),
    _row("skylake-avx512", (32, 8), (1024, 16), (1408, 11), 4, 1024, 1024, 384, l3_bits=80),
    _row("icelake-client", (48, 12), (512, 8), (8192, 16), 4, 512, 1024, 384, 64, 2048),
    _row("icelake-server", (48, 12), (1280, 20), (1536, 12), 4, 1024, 1024, 384, 64, 2048, l3_bits=80),
    _row("tigerlake", (48, 12), (1280, 20), (12288, 12), 4, 512, 1024, 384, 64, 2048),
    _row("sapphirerapids", (48, 12), (2048, 16), (1920, 15), 4, 1024, 1024, 384, 96, 2048, l3_bits=64),
    _row("alderlake", (48, 12), (1280, 10), (30720, 12), 4, 512, 768, 384, 96, 2048),
    _row("znver1", (32, 8), (512, 8), (8192, 16), 5, 256, 256, 256, 64, 1536),
    _row("znver2", (32, 8), (512, 8), (16384, 16), 5, 512, 512, 256, 64, 2048),
    _row("znver3", (32, 8), (512, 8), (32768, 16), 4, 512, 512, 256, 64, 2048),
    _row("znver4", (32, 8), (1024, 8), (32768, 16), 4, 512, 512, 256, 72, 3072),
    _row("znver5", (48, 12), (1024, 16), (32768, 16), 4, 1024, 1024, 512, 96, 4096),
    _row("aarch64", (32, 4), (512, 8), (0, 1), 4, 256, 256, 256, 48, 1024),
    _row("cortex-a53", (32, 4), (512, 16), (0, 1), 8, 64, 64, 64, 10, 512),
    _row("cortex-a72", (32, 2), (1024, 16), (0, 1), 7, 256, 128, 128, 32, 1024),
    _row("neoverse-n1", (64, 4), (1024, 8), (4096, 16), 4, 256, 256, 256, 48, 1280),
    _row("neoverse-v1", (64, 4), (1024, 8), (4096, 16), 4, 512, 512, 256, 48, 2048),
    _row("neoverse-n2", (64, 4), (1024, 8), (4096, 16), 4, 256, 384, 256, 44, 1280),
    _row("neoverse-v2", (64, 4), (2048, 8), (8192, 16), 4, 512, 384, 256, 48, 2048),
    _row("a64fx", (64, 4), (8192, 16), (0, 1), 9, 1024, 1024, 256, 16, 1024, line=256, page=65536),
    _row("apple-m1", (128, 8), (12288, 12), (8192, 16), 4, 512, 384, 256, 160, 3072, line=128, page=16384),
    _row("riscv64", (32, 8), (512, 8), (0, 1), 5, 128, 128, 128, 32, 512),
    _row("arm", (32, 4), (512, 8), (0, 1), 8, 128, 64, 64, 32, 512),
)
MACHINES = {row.name: row for row in _ROWS}
# Processors that have the figures of another.
_LIKE = {
    "broadwell": "haswell", "core-avx2": "haswell", "cascadelake": "skylake-avx512", "cooperlake": "skylake-avx512",
    "skx": "skylake-avx512", "rocketlake": "icelake-client", "emeraldrapids": "sapphirerapids",
    "graniterapids": "sapphirerapids", "raptorlake": "alderlake", "arrowlake": "alderlake", "meteorlake": "alderlake",
    "cortex-a55": "cortex-a53", "cortex-a57": "cortex-a72", "cortex-a73": "cortex-a72", "cortex-a75": "neoverse-n1",
    "cortex-a76": "neoverse-n1", "cortex-a78": "neoverse-n1", "grace": "neoverse-v2", "apple-m2": "apple-m1",
    "apple-m3": "apple-m1", "apple-a14": "apple-m1",
}


def machine_of(arch: str, cpu: str, vector_bits: int) -> Machine:
    """Returns the row of the processor called `cpu`; for a name without one, that of its architecture and width of vectors."""
    row = MACHINES.get(_LIKE.get(cpu, cpu))
    if row is not None:
        return row
    if arch == "x86-64":
        return MACHINES["x86-64-v4" if vector_bits == 512 else "x86-64-v3" if vector_bits == 256 else "x86-64"]
    return MACHINES.get(arch, MACHINES["x86-64"])


def machine_called(model: str) -> Machine | None:
    """Returns the machine that `-model=` names: a row of the table or a JSON file; None for the name of anything else.

    Raises ArgumentError if the file cannot be read or does not describe a machine.
    """
    if not model.endswith(".json"):
        return MACHINES.get(_LIKE.get(model, model))
    form = "write what json.dumps(dataclasses.asdict(Target('llvm').machine)) gives"
    try:
        fields = json.loads(_text_of(model))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"-model={model}: the file does not hold JSON that can be read: {error}", hint=form) from None
    return _from_fields(model, fields, form)


def _from_fields(model: str, fields: object, form: str) -> Machine:
    """Returns the machine with the fields of a JSON file; those that it leaves out are the defaults of `Machine`."""
    expected = {field.name: field.default for field in dataclasses.fields(Machine)}
    if not isinstance(fields, dict) or set(fields) - set(expected):
        extra = ", ".join(sorted(set(fields) - set(expected))) if isinstance(fields, dict) else repr(fields)
        raise ArgumentError(f"-model={model}: a machine has the fields {', '.join(expected)}, not {extra}", hint=form)
    missing = [name for name, default in expected.items() if default is dataclasses.MISSING and name not in fields]
    if missing:
        raise ArgumentError(f"-model={model} leaves out {', '.join(missing)}", hint=form)
    caches = [_cache(model, name, fields[name], form) for name in ("l1", "l2", "l3")]
    counts = {name: value for name, value in fields.items() if name not in ("name", "l1", "l2", "l3")}
    for name, value in counts.items():
        if not _is_count(value, least=1):
            raise ArgumentError(f"-model={model}: {name} is {value!r}, not a whole number from 1 on", hint=form)
    return Machine(str(fields["name"]), caches[0], caches[1], caches[2], **counts)


def _cache(model: str, name: str, value: object, form: str) -> Cache:
    if not isinstance(value, dict) or set(value) != {"size", "ways"} or not _is_count(value["size"], least=0) or \
            not _is_count(value["ways"], least=1):
        raise ArgumentError(f"-model={model}: {name} is {value!r}, not a cache with its size in bytes and its ways", hint=form)
    return Cache(**value)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 48


def as_here(row: Machine) -> Machine:
    """Returns `row` with the caches and the page that this system reports, and as many cores as parallel loops use: the
    processors that the process may use, fewer where TEDSL_NUM_THREADS or a container's quota says so.
    """
    caches = _reported_caches()
    cores = _kept or _processors()
    return dataclasses.replace(
        row, l1=caches.get(1, row.l1), l2=caches.get(2, row.l2), l3=caches.get(3, row.l3), page=os.sysconf("SC_PAGESIZE"),
        cores=cores, hardware_threads=min(_reported_threads(), cores))


def keep_processors() -> None:
    """Makes `as_here` report the processors that this process may use at this moment, also after it has given up some of
    them: code that it builds runs on all.
    """
    global _kept
    _kept = _processors()


_kept = 0  # 0: as many as the process may use


def _processors() -> int:
    return min(default_threads(), usable_processors())


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.cache
def _reported_caches() -> dict[int, Cache]:
    """Returns the data caches of the first processor by level; empty where the system does not tell."""
    found: dict[int, Cache] = {}
    try:
        for name in sorted(os.listdir(_CACHES)):
            if not name.startswith("index") or _text_of(f"{_CACHES}/{name}/type").strip() == "Instruction":
                continue
            size = _text_of(f"{_CACHES}/{name}/size").strip()
            scale = {"K": _KIB, "M": _MIB}.get(size[-1:], 1)
            ways = int(_text_of(f"{_CACHES}/{name}/ways_of_associativity"))
            found[int(_text_of(f"{_CACHES}/{name}/level"))] = Cache(int(size.rstrip("KM")) * scale, max(1, ways))
    except (OSError, ValueError):
        return {}
    return {level: cache for level, cache in found.items() if cache.size}


@functools.cache
def _reported_threads() -> int:
    """Returns how many processors share the first core; 1 where the system does not tell."""
    try:
        text = _text_of("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list").strip()
        ends = [part.split("-") for part in text.split(",")]
        return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)
    except (OSError, ValueError):
        return 1
