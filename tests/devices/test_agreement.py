"""What a schedule with blocks and threads computes does not depend on what runs it: see `agreement.py`."""

import numpy as np
import pytest

import tedsl
import tedsl.testing
from tedsl.ir.evaluate import run
from tedsl.target import Target
from tests.devices.agreement import EACH, TOLERANCE
from tests.devices.opencl_device import needs_opencl
from tests.like_devices import LIKE_DEVICES

pytestmark = pytest.mark.sampled(2)


def results_of(arguments, inputs, compute):
    """What `compute`, called with all arrays, leaves in those of the results."""
    sizes = {}
    for tensor, value in zip(arguments, inputs):
        sizes |= dict(zip(tensor.shape, value.shape))
    outs = []
    for tensor in arguments[len(inputs):]:
        shape = [dim.value if hasattr(dim, "value") else sizes[dim] for dim in tensor.shape]
        outs.append(np.full(shape, True if str(tensor.dtype) == "bool" else 77, str(tensor.dtype)))
    return compute([*inputs, *outs])


def on_device(module, device, values):
    arrays = [tedsl.nd.array(value, device) for value in values]
    module(*arrays)
    return [array.numpy() for array in arrays]


def interpreted(func, values):
    run(func, values)
    return values


def compiled(module, values):
    module(*values)
    return values


def compare(name, target, device):
    with Target(target):
        s, arguments, calls = EACH[name]()
    func, processor = tedsl.lower(s, arguments)["main"], tedsl.build(s, arguments, target=LIKE_DEVICES)
    module = tedsl.build(s, arguments, target=target)
    for inputs in calls:
        made = [results_of(arguments, inputs, way) for way in (
            lambda values: interpreted(func, values), lambda values: compiled(processor, values),
            lambda values: on_device(module, device, values))]
        for loops, machine, there in zip(*(values[len(inputs):] for values in made)):
            np.testing.assert_allclose(machine, loops, rtol=TOLERANCE[name], atol=TOLERANCE[name], err_msg="processor")
            np.testing.assert_allclose(there, machine, rtol=TOLERANCE[name], atol=TOLERANCE[name], err_msg=str(device))


@pytest.mark.parametrize("name", EACH)
def test_simulated_ptx(name, monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    compare(name, "cuda", tedsl.cuda(0))


@needs_opencl
@pytest.mark.parametrize("name", EACH)
def test_opencl(name):
    compare(name, "opencl", tedsl.opencl(0))


@tedsl.testing.requires_cuda
@pytest.mark.parametrize("name", EACH)
def test_cuda(name):
    compare(name, "cuda", tedsl.cuda(0))


def test_there_are_enough():
    assert len(EACH) >= 60
