"""Operators of topi on devices: each builds and gives the values of the processor.

Here every sixth operator on one of two devices; `.ci/cuda` and `.ci/opencl` try all on each.
"""

import pytest

from tests.devices.catalogue import fault, operators
from tests.devices.opencl_device import needs_opencl

pytestmark = pytest.mark.whole

SHARDS = 8
LONG = {"nn.conv3d_transpose_ncdhw"}  # more than a minute in PoCL: 750,141 sums of 3,087 products


@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_in_the_simulator(shard):
    assert [said for name, call in operators()[::6][shard::SHARDS] if (said := fault(name, call, "sim"))] == []


@needs_opencl
@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_in_opencl(shard):
    some = [(name, call) for name, call in operators()[1::6][shard::SHARDS] if name not in LONG]
    assert [said for name, call in some if (said := fault(name, call, "opencl"))] == []
