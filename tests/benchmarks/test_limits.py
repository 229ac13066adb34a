"""The measured limits of the machine: what probes do is multiply and add in registers, and move each byte once."""

import llvmlite.binding as llvm
import pytest

from benchmarks.limit_kernels import DECLARATIONS, Vectors, fma_text, streams_text, variants, vectors
from benchmarks.limits import Traffic, memory_probe
from benchmarks.measure import Probe, share

MACHINES = {"nehalem": Vectors(4, 16, False), "sandybridge": Vectors(8, 16, False), "haswell": Vectors(8, 16, True),
            "skylake-avx512": Vectors(16, 32, True)}


def assembly_of(cpu, machine):
    """The loop of the probe `fma` on x86-64 with that cpu."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = "-prefer-256-bit" if machine.lanes == 16 else ""
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=cpu, features=features, opt=2)
    module = llvm.parse_assembly(fma_text("fma", machine, machine.chains))
    module.triple = "x86_64-unknown-linux-gnu"
    text = target.emit_assembly(module).partition("fma:")[2]
    return text.partition("LBB0_1:")[2].partition("jl\t")[0] or text.partition("LBB0_1:")[2].partition("jne\t")[0]


@pytest.mark.parametrize("cpu", MACHINES)
def test_the_probe_stays_in_registers(cpu):
    """Sixteen registers do not hold 24 accumulators: with so many, the probe measured the stack, and kernels were above it."""
    machine = MACHINES[cpu]
    loop = assembly_of(cpu, machine)
    count = loop.count("vfmadd") if machine.has_fma else loop.count("addps")
    assert count == machine.chains and "(%rsp)" not in loop and "call" not in loop, loop


def test_features_say_which_vectors_a_machine_has():
    assert vectors({"avx": True, "fma": True, "avx512f": True}) == Vectors(16, 32, True)
    assert vectors({"avx": True, "fma": True}) == Vectors(8, 16, True)
    assert vectors({"avx": True}) == Vectors(8, 16, False)
    assert vectors({}) == Vectors(4, 16, False) and vectors({"neon": True}) == Vectors(4, 32, True)


def test_the_share_compares_the_best_with_the_best():
    probe = Probe(lambda: None, 200)
    assert share(100, [3.0, 2.0], probe, [5.0, 4.0]) == 1.0
    assert share(50, [2.0], probe, [4.0, 8.0]) == 0.5


def test_a_kernel_above_the_limit_has_the_limit_measured_again():
    calls = []
    assert share(1e9, [1.0], Probe(lambda: calls.append(1), 2.0), [4.0]) == 1.0
    assert 1 <= len(calls) <= 50


# --- memory -----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("cpu", MACHINES)
@pytest.mark.parametrize("reads, writes", [(1, 0), (3, 1), (0, 1)])
def test_every_stream_loop_moves_its_vectors_and_keeps_sums_in_registers(cpu, reads, writes):
    machine = MACHINES[cpu]
    for s in variants(reads, writes, machine):
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        features = "-prefer-256-bit" if machine.lanes == 16 else ""
        target = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=cpu, features=features, opt=2)
        module = llvm.parse_assembly(DECLARATIONS + streams_text("streams", s))
        module.triple = "x86_64-unknown-linux-gnu"
        text = target.emit_assembly(module)
        assert text.count("movnt") == (s.writes * s.parts * s.unroll if s.nontemporal else 0)
        assert not s.ahead or "prefetch" in text


def test_traffic_is_that_of_equal_arrays():
    assert Traffic.of(3000, 1000) == Traffic(3, 1, 1000) and Traffic.of(1000, 1000) == Traffic(1, 1, 1000)
    assert Traffic.of(1000, 10) == Traffic(1, 0, 1000) and Traffic.of(0, 1000) == Traffic(0, 1, 1000)
    assert Traffic.of(1000, 4000) == Traffic(1, 4, 1000)


@pytest.mark.parametrize("traffic", [Traffic(1, 0, 1 << 16), Traffic(2, 1, 1 << 16), Traffic(0, 1, 1 << 16)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_memory_probe_moves_the_bytes_that_it_says(traffic, threads):
    probe = memory_probe(threads, traffic)
    probe.call()
    assert probe.work >= 64 * 2**20
