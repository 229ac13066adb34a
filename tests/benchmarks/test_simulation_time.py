"""The kernels whose simulation is measured are simulated whole, in both modes."""

import numpy as np

import tedsl
from benchmarks.simulation_time import PROGRAMS, TARGET, simulated


def test_a_product_is_measured():
    program, most = PROGRAMS["product (256, 256) x (256, 256)"]
    with tedsl.Target(TARGET):
        schedule, args = program()
    rng = np.random.default_rng(0)
    values = [rng.random((256, 256), "float32") for _ in args]
    arrays = [tedsl.nd.array(value, tedsl.sim(0)) for value in values]
    function = tedsl.build(schedule, args, TARGET)
    assert all(simulated(function, arrays, mode, 1) > 0 for mode in ("report", "fast")) and most == 2
    np.testing.assert_allclose(arrays[2].numpy(), values[0] @ values[1].T, rtol=1e-5)
