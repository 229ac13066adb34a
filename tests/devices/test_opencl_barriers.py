"""Conditions of single threads on both sides of barriers, which the optimiser of PoCL 3 with LLVM 14 does not keep apart."""

import numpy as np

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from tests.devices.opencl_device import needs_opencl


@needs_opencl
def test_tiles_that_stick_out_of_a_product():
    """Blocks of 4 x 8 results of 17 x 21, whose operands go through shared memory 32 terms of 33 at a time."""
    a, b = te.placeholder((17, 33), name="a"), te.placeholder((21, 33), name="b")
    out = topi.nn.relu(topi.nn.dense(a, b))
    with Target("opencl"):
        s = topi.cuda.schedule_dense([out])
    x, y = (np.random.default_rng(k).integers(-4, 5, shape).astype("float32") for k, shape in enumerate(((17, 33), (21, 33))))
    device = tedsl.opencl(0)
    arrays = [tedsl.nd.array(value, device) for value in (x, y, np.full((17, 21), 77, "float32"))]
    tedsl.build(s, [a, b, out], target="opencl")(*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), np.maximum(x @ y.T, 0))
