"""The loops of the limit probes as LLVM IR: multiply-adds on registers, and reading and writing streams of vectors.

Which loop is fastest depends on the processor: the width of the vectors, how many streams run side by side, whether stores
pass by the caches, how far ahead data is fetched. There is a text for each combination; `benchmarks.limits` takes the fastest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Vectors:
    """The vectors of a machine: lanes of float32, the number of registers, whether one instruction multiplies and adds."""

    lanes: int
    registers: int
    has_fma: bool

    @property
    def chains(self) -> int:
        """The number of independent accumulators: more than latency times throughput of any current core, and all of them in
        registers.

        With more chains than registers the probe would measure memory; two registers hold the factor and the summand, one
        the product before it is added.
        """
        return min(24, self.registers - 4)


def vectors(features: Mapping[str, bool] | None = None) -> Vectors:
    """The widest vectors that these features (by default the host's) promise."""
    import llvmlite.binding as llvm

    has = (llvm.get_host_cpu_features() if features is None else features).get
    if has("neon"):
        return Vectors(4, 32, True)
    if has("avx512f"):
        return Vectors(16, 32, True)
    return Vectors(8 if has("avx") else 4, 16, bool(has("fma")))


def narrower(machine: Vectors) -> list[Vectors]:
    """The vectors of a machine and those of half their width: some cores run these at a higher clock."""
    return [machine] if machine.lanes <= 4 else [machine, Vectors(machine.lanes // 2, machine.registers, machine.has_fma)]


# --- multiply-adds --------------------------------------------------------------------------------------------------------

def _step(i: int, t: str, machine: Vectors) -> str:
    """One multiply-add of chain `i`; a multiplication and an addition where no instruction does both."""
    if machine.has_fma:
        return f"  %b{i} = call {t} @llvm.fma.v{machine.lanes}f32({t} %a{i}, {t} %x, {t} %y)"
    return f"  %m{i} = fmul {t} %a{i}, %x\n  %b{i} = fadd {t} %m{i}, %y"


def fma_text(name: str, machine: Vectors, chains: int) -> str:
    """The function name(out, steps): `steps` multiply-adds on each of `chains` vectors."""
    t = f"<{machine.lanes} x float>"
    phis = "\n".join(f"  %a{i} = phi {t} [ splat (float {i}.0), %0 ], [ %b{i}, %loop ]" for i in range(chains))
    steps = "\n".join(_step(i, t, machine) for i in range(chains))
    sums, last = _sum([f"%b{i}" for i in range(chains)], "fadd", t)
    return f"""
define void @{name}(ptr %out, i64 %n) {{
  %x = load {t}, ptr %out, align 4
  %q = getelementptr float, ptr %out, i64 {machine.lanes}
  %y = load {t}, ptr %q, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
{sums}
  store {t} {last}, ptr %out, align 4
  ret void
}}
"""


def _sum(values: list[str], operator: str, t: str) -> tuple[str, str]:
    """Lines that combine `values`, and the name of the result."""
    lines, last = [], values[0]
    for i, value in enumerate(values[1:], 1):
        lines.append(f"  %s{i} = {operator} {t} {last}, {value}")
        last = f"%s{i}"
    return "\n".join(lines), last


# --- streams --------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Streams:
    """A loop that reads `reads` arrays and writes `writes` arrays of one size.

    parts: blocks of each array that are walked side by side. unroll: vectors of each block in one iteration. nontemporal:
    stores that pass by the caches. ahead: how many bytes before its use data is asked for, 0 for never.
    """

    reads: int
    writes: int
    lanes: int
    parts: int
    unroll: int
    nontemporal: bool
    ahead: int

    @property
    def step(self) -> int:
        """Bytes of each block that one iteration covers."""
        return self.lanes * 4 * self.unroll


def variants(reads: int, writes: int, machine: Vectors) -> Iterator[Streams]:
    """The loops among which the fastest of a machine is searched."""
    lanes = [v.lanes for v in narrower(machine)]
    if writes == 0:
        parts, unroll, stores = (1, 2, 4), (4, 8) if reads == 1 else (2, 4), (False,)
    else:
        parts, unroll, stores = (1, 2), (1, 4), (False, True)
    for made in itertools.product(lanes, parts, unroll, stores, (0, 2048) if reads else (0,)):
        if made[1] * made[2] * max(reads, writes) <= 3 * machine.registers // 4 or made[1] * made[2] == 1:
            yield Streams(reads, writes, *made)


def streams_text(name: str, s: Streams) -> str:
    """The function name(arrays, block, rounds, out) over `s.reads + s.writes` pointers, the blocks of `block` bytes each."""
    t = f"<{s.lanes} x i32>"
    bases = "\n".join(_base(a, p) for a in range(s.reads + s.writes) for p in range(s.parts))
    places = list(itertools.product(range(s.parts), range(s.unroll)))
    kept = [] if s.writes else [f"{a}_{p}_{u}" for a in range(s.reads) for p, u in places]
    phis = "\n".join(f"  %acc{k} = phi {t} [ %old{k}, %round ], [ %new{k}, %loop ]" for k in kept)
    outer = "\n".join(f"  %old{k} = phi {t} [ zeroinitializer, %0 ], [ %new{k}, %next ]" for k in kept)
    body = "\n".join(_place(s, t, p, u) for p, u in places)
    sums, last = _sum([f"%new{k}" for k in kept], "or", t) if kept else ("", "zeroinitializer")
    return f"""
define void @{name}(ptr %arrays, i64 %block, i64 %rounds, ptr %out) {{
{bases}
  br label %round
round:
  %r = phi i64 [ 0, %0 ], [ %r1, %next ]
{outer}
  br label %loop
loop:
  %i = phi i64 [ 0, %round ], [ %j, %loop ]
{phis}
{body}
  %j = add i64 %i, {s.step}
  %more = icmp slt i64 %j, %block
  br i1 %more, label %loop, label %next
next:
  %r1 = add i64 %r, 1
  %again = icmp slt i64 %r1, %rounds
  br i1 %again, label %round, label %done
done:
{sums}
  store {t} {last}, ptr %out, align 4
  ret void
}}
"""


def _base(array: int, part: int) -> str:
    """The address of one block of one array."""
    name = f"{array}_{part}"
    return (f"  %slot{name} = getelementptr ptr, ptr %arrays, i64 {array}\n  %whole{name} = load ptr, ptr %slot{name}\n"
            f"  %skip{name} = mul i64 %block, {part}\n  %base{name} = getelementptr i8, ptr %whole{name}, i64 %skip{name}")


def _place(s: Streams, t: str, part: int, number: int) -> str:
    """What one iteration does with vector `number` of each block `part`."""
    lines, at, offset = [], f"{part}_{number}", number * s.lanes * 4
    lines.append(f"  %o{at} = add i64 %i, {offset}")
    for a in range(s.reads):
        lines.append(f"  %p{a}_{at} = getelementptr i8, ptr %base{a}_{part}, i64 %o{at}")
        if s.ahead and offset % 64 == 0:
            lines.append(f"  %q{a}_{at} = getelementptr i8, ptr %p{a}_{at}, i64 {s.ahead}")
            lines.append(f"  call void @llvm.prefetch.p0(ptr %q{a}_{at}, i32 0, i32 3, i32 1)")
        lines.append(f"  %v{a}_{at} = load {t}, ptr %p{a}_{at}, align {s.lanes * 4}")
        if not s.writes:
            lines.append(f"  %new{a}_{at} = or {t} %acc{a}_{at}, %v{a}_{at}")
    if s.writes:
        value = f"%v0_{at}" if s.reads else "splat (i32 1)"
        for a in range(1, s.reads):
            lines.append(f"  %w{a}_{at} = or {t} {value}, %v{a}_{at}")
            value = f"%w{a}_{at}"
        mark = ", !nontemporal !0" if s.nontemporal else ""
        for a in range(s.reads, s.reads + s.writes):
            lines.append(f"  %p{a}_{at} = getelementptr i8, ptr %base{a}_{part}, i64 %o{at}")
            lines.append(f"  store {t} {value}, ptr %p{a}_{at}, align {s.lanes * 4}{mark}")
    return "\n".join(lines)


DECLARATIONS = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n!0 = !{i32 1}\n"
