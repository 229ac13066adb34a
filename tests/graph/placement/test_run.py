"""Placed networks run, and give what the whole gives."""

import json
import os

import numpy as np
import pytest

from tedsl import graph
from tedsl.errors import ArgumentError
from tedsl.graph import Spec, constant, ops, placement
from tests.graph.placement.table import NAMES, makespans

rng = np.random.default_rng(3)
DEVICES = [placement.Processor("cpu"), placement.Simulated("gpu", 2e11, 2e10, launch=1e-9, link_latency=1e-9)]


def small():
    """Two branches between pools, and a residual join."""
    w = constant(rng.standard_normal((4, 4, 3, 3)).astype("float32"), name="w")
    conv = lambda x: ops.nn.conv2d(x, w, 1, 1, 1)

    def network(x, scale):
        x = ops.nn.pool2d(conv(x), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
        x = x + conv(ops.nn.relu(x))
        y = ops.concatenate([ops.tanh(conv(x)), ops.nn.relu(x) * scale], 1)
        return ops.nn.relu(y), ops.nn.global_pool(x, "avg")

    return graph.trace(network, Spec((2, 4, 8, 8)), Spec((1,)))


@pytest.fixture(scope="module")
def placed():
    return placement.place(placement.split(small()), DEVICES, method="moves")


def arrays(number=0):
    return [np.random.default_rng(number).standard_normal((2, 4, 8, 8)).astype("float32"), np.full(1, 2.5, "float32")]


def test_one_input(placed):
    assert len(set(placed.assignment)) == 1 or set(placed.devices.values()) == {"cpu", "gpu"}
    for made, expected in zip(placed.run(*arrays()), graph.evaluate(placed.profile.parts.graph, *arrays())):
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


def test_a_pipeline_of_inputs(placed):
    got = []

    def feed(number, *outs):
        for out, array in zip(outs, arrays(number)):
            out[...] = array
        return number < 5

    report = placed.run(feed=feed, fetch=lambda number, *results: got.append([result.copy() for result in results]))
    assert len(got) == 5 and report.shares["part0"].acts == 5
    for number, results in enumerate(got):
        for made, expected in zip(results, graph.evaluate(placed.profile.parts.graph, *arrays(number))):
            np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


def test_arrays_that_do_not_fit(placed):
    x, scale = arrays()
    with pytest.raises(ArgumentError, match=r"takes 2 arrays \(x, scale\), and 1 are given"):
        placed.run(x)
    with pytest.raises(ArgumentError, match=r"x is float32\[2, 4, 8, 8\], and the array has shape \(1, 4, 8, 8\)"):
        placed.run(x[:1], scale)
    with pytest.raises(ArgumentError, match="how many batches"):
        placed.run(x, scale, fetch=print)
    with pytest.raises(ArgumentError, match="arrays and feed are given"):
        placed.run(x, scale, feed=lambda *outs: False)


def test_a_profile_is_kept(tmp_path, monkeypatch):
    parts, file = placement.split(small()), tmp_path / "profile.json"
    first = placement.profile(parts, DEVICES, repeat=3, file=file)
    assert len(first.times[0][0].seconds) == 3 and "±" in str(first)
    monkeypatch.setattr(placement.Processor, "measure", None)
    assert placement.profile(parts, DEVICES, repeat=3, file=file).times == first.times
    with pytest.raises(TypeError):
        placement.profile(parts, DEVICES, repeat=4, file=file)  # other times: they are measured
    for text in ("{", "[]", json.dumps({"tedsl placement profile": True, "seconds": {}}),
                 json.dumps({"tedsl placement profile": 1, "seconds": {}, "more": 1}),
                 json.dumps({"tedsl placement profile": 2, "seconds": {}}),
                 json.dumps({"tedsl placement profile": 1, "seconds": {"a": [-1.0]}})):
        file.write_text(text)
        with pytest.raises(ArgumentError, match="does not hold a profile"):
            placement.profile(parts, DEVICES, file=file)


def test_devices_and_profiles_are_checked():
    parts = placement.split(small())
    with pytest.raises(ArgumentError, match="bandwidth is a number above 0, not 0"):
        placement.Simulated("gpu", 1e9, 0)
    with pytest.raises(ArgumentError, match="names of their own"):
        placement.profile(parts, [DEVICES[1], DEVICES[1]])
    with pytest.raises(ArgumentError, match="repeat is an int"):
        placement.profile(parts, DEVICES, repeat=0)
    with pytest.raises(ArgumentError, match="place: devices are one or more"):
        placement.place(parts)


@pytest.mark.parametrize("name", NAMES)
def test_networks_on_a_processor_and_an_accelerator(name):
    """No method is worse than those that it starts from or better than the optimum, and two devices are better than one."""
    times = makespans(name)
    assert times["optimal"] <= min(times.values()) * (1 + 1e-9)
    assert times["moves"] <= times["critical_path"] <= times["fastest"]
    assert times["moves"] < times["single"] <= min(times["cpu"], times["gpu"]) * (1 + 1e-9)


class Watched(placement.Processor):
    """Cores of the processor. seen: those that its parts were held to."""

    def compiled(self, part):
        network, self.seen = super().compiled(part), set()

        def call(*arrays):
            self.seen |= os.sched_getaffinity(0)
            return network(*arrays)

        return call


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_cores_of_the_processor_are_devices():
    there = os.sched_getaffinity(0)
    one, other = sorted(there)[:2]
    devices = [Watched("one", cores=[one]), Watched("other", cores={other})]
    parts = placement.split(small())
    profile = placement.profile(parts, devices, repeat=2)
    assert [device.seen for device in devices] == [{one}, {other}] and os.sched_getaffinity(0) == there
    assert all(len(measured.seconds) == 2 for row in profile.times for measured in row)
    placed = placement.Placement(profile.problem(), tuple([at % 2 for at in range(len(parts))]), "by hand", profile)
    for got, wanted in zip(placed.run(*arrays()), graph.evaluate(parts.graph, *arrays())):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    assert [device.seen for device in devices] == [{one}, {other}]
    assert profile.devices[0].text.endswith(f"-num-cores=1 on cores {one}")
