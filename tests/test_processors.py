"""The processors that a process may use, the threads of its parallel loops, and the machine that schedules know from both."""

import pytest

from tedsl import processors
from tedsl.errors import ArgumentError
from tedsl.target import Target
from tedsl.target.machine import MACHINES, as_here

ROW = MACHINES["znver4"]


@pytest.fixture
def eight(monkeypatch):
    """A process that may use eight processors, each two of one core."""
    monkeypatch.delenv("TEDSL_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(processors, "_QUOTA", "/nowhere")
    monkeypatch.setattr("tedsl.target.machine._reported_threads", lambda: 2)


@pytest.mark.parametrize("quota, threads", [("max 100000", 8), ("250000 100000", 3), ("50000 100000", 1), ("900000 100000", 8)])
def test_the_quota_of_a_container_bounds_threads_and_cores(quota, threads, eight, monkeypatch, tmp_path):
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    monkeypatch.setattr(processors, "_QUOTA", str(tmp_path / "cpu.max"))
    assert processors.default_threads() == as_here(ROW).cores == threads and processors.usable_processors() == 8


@pytest.mark.parametrize("given, threads, cores, together", [("", 8, 8, 2), ("1", 1, 1, 1), ("5", 5, 5, 2), ("200", 200, 8, 2)])
def test_schedules_know_the_threads_that_the_environment_gives(given, threads, cores, together, eight, monkeypatch):
    monkeypatch.setenv("TEDSL_NUM_THREADS", given)
    here = as_here(ROW)
    assert (processors.default_threads(), here.cores, here.hardware_threads) == (threads, cores, together)


def test_num_cores_of_a_target_comes_first(eight, monkeypatch):
    monkeypatch.setenv("TEDSL_NUM_THREADS", "2")
    assert Target("llvm -num-cores=6").machine.cores == 6


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "256", "²", "9" * 5000], ids=str.__len__)
def test_a_wrong_number_of_threads_is_named(given, eight, monkeypatch):
    monkeypatch.setenv("TEDSL_NUM_THREADS", given)
    with pytest.raises(ArgumentError, match=f"TEDSL_NUM_THREADS is {given[:20]!r}, not a number from 1 to 255"):
        as_here(ROW)
