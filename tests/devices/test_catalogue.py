"""Operators of topi on devices: each builds and gives the values of the processor, or stands in the table of `catalogue.py`.

Here every third operator on one of two devices; `.ci/cuda` and `.ci/opencl` try all on each.
"""

import pytest

from tests.devices.catalogue import REFUSED, fault, operators
from tests.devices.opencl_device import needs_opencl

SHARDS = 8


@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_in_the_simulator(shard):
    assert [said for name, call in operators()[::3][shard::SHARDS] if (said := fault(name, call, "sim"))] == []


@needs_opencl
@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_in_opencl(shard):
    assert [said for name, call in operators()[1::3][shard::SHARDS] if (said := fault(name, call, "opencl"))] == []


def test_what_is_refused_is_refused_with_its_sentence():
    known = dict(operators())
    assert [said for name in REFUSED if (said := fault(name, known[name], "sim"))] == []
