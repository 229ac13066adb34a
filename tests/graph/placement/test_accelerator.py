"""Parts on devices of tedsl: they run there, what is sent is copied, and the result is that of the whole."""

import sys

import numpy as np
import pytest

from tedsl import graph
from tedsl.errors import DeviceError
from tedsl.graph import Spec, constant, ops, placement
from tedsl.graph.placement.links import line_through
from tedsl.simulate.options import current_model
from tests.devices.opencl_device import needs_opencl

place = sys.modules["tedsl.graph.placement.place"]  # the module, whose name in the package is that of its function
RNG = np.random.default_rng(0)


def small():
    """A pool, two branches and their concatenation, of few elements: devices are simulated."""
    w = constant(RNG.standard_normal((2, 2, 1, 1)).astype("float32"), name="w")

    def network(x, scale):
        x = ops.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
        return ops.nn.relu(ops.concatenate([ops.nn.conv2d(x, w, 1, 0, 1), ops.tanh(x) * scale], 1)), x + 1

    return graph.trace(network, Spec((1, 2, 4, 4)), Spec((1,)))


def arrays():
    return [RNG.standard_normal((1, 2, 4, 4)).astype("float32"), np.full(1, 2.5, "float32")]


@pytest.mark.parametrize("kind", ["sim", pytest.param("opencl", marks=needs_opencl)])
def test_parts_run_on_a_device_and_give_what_the_whole_gives(kind):
    parts = placement.split(small())
    devices = [placement.Processor("cpu"), placement.Accelerator(kind)]
    profile = placement.profile(parts, devices, repeat=1)
    problem = profile.problem()
    latency, per_byte = devices[1].link
    assert problem.transfers.time(0, 0, 1) == latency >= 0
    if kind == "sim":  # by the clock of its model
        assert (latency, per_byte) == pytest.approx((0, 1 / current_model().host), abs=1e-15)
    else:
        assert per_byte > 0
    assignment = tuple([at % 2 for at in range(len(parts))])
    placed = placement.Placement(problem, assignment, "by hand", profile)
    copies = [task for task in placed.runner.runtime.plan.tasks.values() if task.kind == "copy"]
    assert copies and {register.device for register in placed.runner.runtime.plan.registers.values()} == {"cpu", kind}
    given = arrays()
    for made, expected in zip(placed.run(*given), graph.evaluate(parts.graph, *given)):
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


@needs_opencl
def test_parts_run_on_sub_devices():
    sub_devices = placement.Accelerator.parts_of(0, 1)
    if len(sub_devices) < 2:
        pytest.skip("the OpenCL device has one compute unit")
    devices = [placement.Processor("cpu"), *sub_devices[:2]]
    parts = placement.split(small())
    profile = placement.profile(parts, devices, repeat=1)
    placed = placement.Placement(profile.problem(), tuple([1 + at % 2 for at in range(len(parts))]), "by hand", profile)
    used = {register.device for register in placed.runner.runtime.plan.registers.values()}
    assert used == {"cpu", *[one.memory for one in sub_devices[:2]]}
    given = arrays()
    for made, expected in zip(placed.run(*given), graph.evaluate(parts.graph, *given)):
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


def test_the_whole_is_measured_where_devices_are_real(monkeypatch):
    """On simulated devices the time of the whole is estimated; here a simulated one passes for real: parts run on it."""
    profile = placement.profile(placement.split(small()), [placement.Processor("cpu"), placement.Accelerator("sim")], repeat=1)
    measured = []
    whole = place.measured_whole(profile, repeat=1)
    monkeypatch.setattr(place, "measured_whole", lambda given: lambda assignment: measured.append(assignment) or
                        whole(assignment))
    assert not profile.is_real
    placement.place(profile)
    assert not measured
    monkeypatch.setattr(placement.Profile, "is_real", True)
    placement.place(profile, measure=False)
    assert not measured
    placed = placement.place(profile, rounds=1)
    assert len(set(measured)) == len(measured) > 1 and placed.assignment in measured


def test_the_line_through_a_curve():
    exact = line_through([(size, 2e-5 + size * 1e-10) for size in (1000, 100_000, 10_000_000)])
    assert exact.seconds == pytest.approx(2e-5) and exact.per_byte == pytest.approx(1e-10)
    assert line_through([(1, 3e-6), (1000, 2e-6), (2000, 1e-6)]).per_byte == 0
    assert line_through([(1000, 1e-6), (2000, 3e-6)]).seconds == 0


def test_devices_that_are_not_there():
    with pytest.raises(DeviceError, match=r"there is no device sim\(99\) here"):
        placement.Accelerator("sim", 99)
    with pytest.raises(DeviceError, match="it is the processor itself"):
        placement.Accelerator("cpu")
