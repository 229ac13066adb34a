"""Stores of several vectors of the machine: one by one, in the order of memory."""

import itertools
import re

import numpy as np
import pytest

import tedsl
from tedsl import te


def four_vectors(target, lanes):
    """B = A * 2, a loop whose steps compute so many lanes."""
    n = 8 * lanes
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(B.op.axis[0], factor=lanes)
    s[B].vectorize(lane)
    return tedsl.build(s, [A, B], target), n


@pytest.mark.parametrize("cpu, lanes, apart", [
    ("znver5", 64, 64), ("sapphirerapids", 64, 64), ("znver3", 32, 32), ("znver3", 64, 32)])
def test_they_follow_each_other_in_memory(cpu, lanes, apart):
    """Where each lies in two lines of memory, processors join the parts of a line if they follow each other."""
    kernel, _ = four_vectors(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}", lanes)
    stores = re.findall(r"vmovu?p[sd]\s+%[yz]mm\d+, (-?\d*)\(%(\w+)(?:,%(\w+))?", kernel.get_source("asm"))
    places = [int(place or 0) for place, *_ in stores]
    assert len(places) >= lanes * 4 // apart
    assert all(b - a == apart for a, b in itertools.pairwise(places[:lanes * 4 // apart])), stores


@pytest.mark.parametrize("lanes", [3, 16, 24, 40, 64, 100])
def test_any_number_of_lanes(lanes):
    kernel, n = four_vectors("llvm", lanes)
    data, out = np.random.default_rng(0).random(n, "float32"), np.zeros(n, "float32")
    kernel(data, out)
    np.testing.assert_array_equal(out, data * 2)
