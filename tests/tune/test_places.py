"""A kernel is measured at several places in memory: at some it may be faster than another one, and slower at the others."""

import mmap
from pathlib import Path

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.runtime.timing import Turns
from tedsl.target import Target
from tedsl.tune.measure import RunOption, running
from tedsl.tune.measure.places import PLACES, Place, moved


def _kernel():
    A = te.placeholder((5,), name="A")
    B = te.compute((5,), lambda i: A[i] * 2.0, name="B")
    return tedsl.build(te.create_schedule(B.op), [A, B], "llvm").save_to_bytes()


@pytest.mark.parametrize("place", PLACES)
def test_copies_stand_where_the_place_says(place):
    first, second = np.arange(12.0).reshape(3, 4), np.ones(7, "int8")
    copies = moved([first, second, first], place)
    assert copies[0] is copies[2] and not np.shares_memory(copies[0], first)
    assert all((copy == given).all() and copy.dtype == given.dtype for copy, given in zip(copies, (first, second)))
    begins = [copy.ctypes.data % 4096 for copy in copies[:2]]
    assert {begin % 64 for begin in begins} == {place.offset}
    assert (begins[0] != begins[1]) == place.is_staggered


def test_what_cannot_be_copied_stays(monkeypatch):
    strided, empty = np.ones((4, 6))[:, ::2], np.ones((0, 3))
    assert all(a is b for a, b in zip(moved([strided, empty, 3, None], PLACES[0]), [strided, empty, 3, None]))

    def full(*_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", full)
    given = np.ones(3)
    assert moved([given], PLACES[0])[0] is given


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say how large pages are")
def test_small_pages_are_small():
    array = moved([np.ones(1 << 20)], Place(False, 0, False))[0]
    blocks = Path("/proc/self/smaps").read_text().split("VmFlags:")
    begin = array.ctypes.data
    for block in blocks:
        for line in block.splitlines():
            if "-" in line.split(" ")[0] and not line.startswith("Vm"):
                low, high = (int(end, 16) for end in line.split(" ")[0].split("-"))
                if low <= begin < high:
                    assert int(block.split("AnonHugePages:")[1].split()[0]) == 0
                    return
    raise AssertionError("no mapping holds the array")


def test_the_interval_reaches_over_all_places(monkeypatch):
    """At three places a kernel is 5 % faster than the reference, at one 10 % slower: it is not surely faster."""
    of_places = iter([0.95, 0.95, 1.1, 0.95])
    seconds = []

    def turns(run, reference, allowed):
        seconds.append(allowed)
        return Turns((next(of_places),) * 9, (1.0,) * 9)

    monkeypatch.setattr(running, "measure_in_turns", turns)
    monkeypatch.setattr(running, "set_num_threads", lambda threads: None)  # of this process, which is not one of a measurer
    code, option = _kernel(), RunOption(precise=True, precise_seconds=2.0, many_places=True)
    costs = running.costs_of(code, Target("llvm"), option, 1, None, None, running.Reference(code, None, 2.0))
    assert costs == (1.9, 1.9, 2.2) and seconds == [0.5] * 4
