"""The figures of processors that schedules choose their tiles by."""

import dataclasses
import json

import pytest

from tedsl.errors import ArgumentError
from tedsl.target import Cache, Machine, Target
from tedsl.target.features import CPUS
from tedsl.target.machine import MACHINES, as_here
from tests.refusing import refused


def test_this_machine_has_what_the_system_reports():
    here = Target("llvm").machine
    assert here == Target("llvm").machine and here.cores >= 1
    assert 4 << 10 <= here.l1.size < here.l2.size and here.page % 4096 == 0


def test_every_processor_has_figures():
    for arch, cpus in CPUS.items():
        for cpu in cpus:
            system = "linux-gnueabihf" if arch == "arm" else "linux-gnu"
            row = Target(f"llvm -mtriple={arch.replace('x86-64', 'x86_64')}-{system} -mcpu={cpu}").machine
            assert row.l1.size < row.l2.size and row.fma_latency and row.fma_bits and row.load_bits, cpu


def test_processors_without_a_row_have_those_of_their_width():
    assert Target("llvm -mcpu=knl").machine is MACHINES["x86-64-v4"]
    assert Target("llvm -mcpu=sandybridge").machine is MACHINES["x86-64-v3"]
    assert Target("llvm -mcpu=nehalem").machine is MACHINES["x86-64"]
    assert Target("llvm -mcpu=cascadelake").machine is MACHINES["skylake-avx512"]


def test_multiply_adds_in_a_cycle_depend_on_the_width_of_the_vectors():
    zen4 = MACHINES["znver4"]
    assert (zen4.fmas(512), zen4.fmas(256)) == (1, 2)
    assert (zen4.chains(512), zen4.chains(256)) == (4, 8)
    assert MACHINES["icelake-server"].chains(512) == 8


def test_a_last_cache_that_many_cores_share_is_far():
    far = {name for name, row in MACHINES.items() if row.has_far_l3}
    assert far == {"skylake-avx512", "icelake-server", "sapphirerapids"}


def test_a_model_stands_for_another_machine():
    assert Target("llvm -model=icelake-server").machine is MACHINES["icelake-server"]
    assert Target("llvm -mcpu=x86-64-v4 -model=znver5").machine is MACHINES["znver5"]
    assert Target("llvm -device=arm_cpu -model=bcm2711").machine == Target("llvm").machine  # a name for people


def test_a_target_says_how_many_cores_schedules_share_work_among():
    assert Target("llvm -num-cores=5").machine.cores == 5
    assert Target("aws/cpu/c5.9xlarge").machine == dataclasses.replace(MACHINES["skylake-avx512"], cores=18)
    assert Target("llvm -model=znver5 -num-cores=64").machine == dataclasses.replace(MACHINES["znver5"], cores=64)


def test_a_model_may_be_a_file(tmp_path):
    path = tmp_path / "box.json"
    row = dataclasses.replace(MACHINES["znver4"], name="box", l2=Cache(1 << 19, 8))
    path.write_text(json.dumps(dataclasses.asdict(row)))
    assert Target(f"llvm -model={path}").machine == row
    path.write_text(json.dumps({"name": "small", **{f"l{k}": {"size": k << 14, "ways": 8} for k in (1, 2, 3)},
                                "fma_latency": 4, "fma_bits": 128, "load_bits": 128}))
    assert Target(f"llvm -model={path}").machine == Machine(
        "small", Cache(1 << 14, 8), Cache(2 << 14, 8), Cache(3 << 14, 8), 4, 128, 128)


@pytest.mark.parametrize("text, words", [
    ("no JSON", "does not hold JSON that can be read"),
    ("[1]", "a machine has the fields name, l1, l2"),
    ('{"l4": 1}', "not l4"),
    ('{"name": "x", "fma_bits": 1}', "leaves out l1, l2, l3, fma_latency, load_bits"),
    (json.dumps({**dataclasses.asdict(MACHINES["znver4"]), "l1": 3}), "l1 is 3, not a cache with its size"),
    (json.dumps({**dataclasses.asdict(MACHINES["znver4"]), "line": 0}), "line is 0, not a whole number from 1 on"),
    (json.dumps({**dataclasses.asdict(MACHINES["znver4"]), "page": True}), "page is True")])
def test_a_file_that_describes_no_machine_is_refused(tmp_path, text, words):
    path = tmp_path / "box.json"
    path.write_text(text)
    refused(lambda: Target(f"llvm -model={path}").machine, words, error=ArgumentError)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    refused(lambda: Target(f"llvm -model={tmp_path}/none.json").machine, "does not hold JSON that can be read",
            error=ArgumentError)


def test_a_system_that_reports_nothing_leaves_the_table(monkeypatch):
    from tedsl.target import machine

    monkeypatch.setattr(machine, "_CACHES", "/nowhere")
    machine._reported_caches.cache_clear()
    try:
        assert as_here(MACHINES["znver3"]).l2 == MACHINES["znver3"].l2
    finally:
        machine._reported_caches.cache_clear()
