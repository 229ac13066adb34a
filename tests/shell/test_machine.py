"""python -m tedsl machine: the probes, the table, and the file that -model= takes."""

import dataclasses
import json
import re

import numpy as np
import pytest

from tedsl.shell import machine, probes
from tedsl.shell.table import main
from tedsl.target import Target
from tedsl.target.machine import MACHINES

ZEN4 = MACHINES["znver4"]


@pytest.fixture
def quick(monkeypatch):
    """Probes that take no time, and measure little."""
    for name, value in (("STEPS", 200), ("READ", 1 << 14), ("ROUNDS", 1)):
        monkeypatch.setattr(probes, name, value)


def test_the_file_is_a_model(quick, tmp_path, capsys):
    path = tmp_path / "here.json"
    assert main(["machine", "--json", str(path)]) == 0
    written = Target(f"llvm -model={path}").machine
    assert written.name.endswith(", measured") and written.fma_bits > 0
    out = capsys.readouterr().out
    assert "latency of one, cycles" in out and "taken for" in out


def test_a_cycle_is_counted_by_instructions_that_no_processor_skips(quick):
    """Sums of constants take no cycles on some."""
    kernel, result = probes.chain_of_cycles(), np.zeros(1, "int64")
    kernel(np.array([5]), result)
    x = 1
    for _ in range(probes.STEPS):
        x = (x ^ 5) + 5
    assert result[0] == x
    if Target("llvm").architecture == "x86-64":
        steps = re.findall(r"xorq\s+%(\w+), %(\w+)\n\s+addq\s+%\1, %\2\n", kernel.get_source("asm"))
        assert len(steps) > 1 and len(set(steps)) == 1  # unrolled; each step waits for the one before


def test_a_file_of_another_kind_is_refused_before_anything_is_measured(capsys):
    assert main(["machine", "--json", "here.txt"]) == 1
    assert "'here.txt' does not end in .json" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(quick, capsys):
    assert main(["machine", "--json", "/nowhere/here.json"]) == 1
    assert "/nowhere/here.json cannot be written" in capsys.readouterr().err


def test_the_table_shows_both():
    found = dataclasses.replace(ZEN4, fma_bits=513, l2_bits=245, l3_bits=190)
    measured = probes.Measured(found, 3.7e9, {8192: 7.2, 16384: 7.0, 1 << 20: 35}, 1.96)
    lines = machine.table(ZEN4, measured)
    assert lines[0] == "znver4, 3.70 GHz"
    assert "multiply-adds, bits per cycle            512  513" in lines
    assert "from L3, bits per cycle                  192  190" in lines
    assert lines[-1].endswith("8 KiB 7, 1 MiB 35")
    assert any("multiply 1.96 times" in line for line in lines)


def test_a_cache_has_the_size_that_is_reported_where_loads_agree():
    sizes = [1 << power for power in range(13, 20)]
    latencies = {size: 5.0 if size <= 1 << 15 else 15.0 for size in sizes}
    assert probes._boundary(latencies, 1 << 15) == 1 << 15
    assert probes._boundary(dict.fromkeys(sizes, 5.0), 1 << 15) == 1 << 15


def test_a_cache_that_is_smaller_than_reported_is_found():
    """A guest may be told of caches that it does not have."""
    latencies = {1 << power: 5.0 if power <= 15 else 15.0 for power in range(13, 24)}
    assert probes._boundary(latencies, 1 << 21) in (1 << 14, 1 << 15)


def test_figures_that_are_measured_are_written_as_json():
    assert json.loads(json.dumps(dataclasses.asdict(ZEN4)))["l1"] == {"size": 32768, "ways": 8}
