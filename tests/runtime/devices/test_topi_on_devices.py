"""Operators of topi by its schedules for devices, on the simulator of CUDA and on OpenCL, against numpy."""

import numpy as np
import pytest

import tedsl
import tedsl.testing
import topi
from tedsl import te
from tests.devices.opencl_device import needs_opencl

RNG = np.random.default_rng(0)
ROWS, WEIGHTS = RNG.random((8, 50), "float32"), RNG.random((30, 50), "float32")
IMAGE, FILTER = RNG.random((1, 4, 12, 12), "float32"), RNG.random((8, 4, 3, 3), "float32")


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def convolution(image, weights):
    padded, out = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1))), np.zeros((1, 8, 12, 12))
    for i in range(3):
        for j in range(3):
            out += np.einsum("nchw,oc->nohw", padded[:, :, i:i + 12, j:j + 12], weights[:, :, i, j])
    return out


def pooled(image):
    return image.reshape(1, 4, 6, 2, 6, 2).max((3, 5))


CASES = {
    "add": ((ROWS, ROWS), topi.add, topi.cuda.schedule_injective, np.add),
    "relu": ((ROWS - 0.5,), topi.nn.relu, topi.cuda.schedule_injective, lambda x: np.maximum(x, 0)),
    "sum": ((ROWS,), lambda x: topi.sum(x, axis=1), topi.cuda.schedule_reduce, lambda x: x.sum(1)),
    "argmax": ((ROWS,), lambda x: topi.argmax(x, axis=1), topi.cuda.schedule_reduce, lambda x: x.argmax(1)),
    "softmax": ((ROWS,), topi.nn.softmax, topi.cuda.schedule_softmax, softmax),
    "dense": ((ROWS, WEIGHTS), topi.nn.dense, topi.cuda.schedule_dense, lambda x, w: x @ w.T),
    "max_pool": ((IMAGE,), lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"),
                 lambda outs: topi.cuda.schedule_pool(outs, "NCHW"), pooled),
    "conv2d": ((IMAGE, FILTER), lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1, 1), topi.cuda.schedule_conv2d_nchw, convolution),
}


def built(name, kind):
    inputs, formula, schedule, _ = CASES[name]
    with tedsl.Target(kind):
        tensors = [te.placeholder(x.shape, str(x.dtype), name=f"x{k}") for k, x in enumerate(inputs)]
        out = formula(*tensors)
        return tedsl.build(schedule([out]), [*tensors, out], target=kind)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind, device", [
    ("cuda", tedsl.sim(0)), pytest.param("opencl", tedsl.opencl(0), marks=needs_opencl),
    pytest.param("cuda", tedsl.cuda(0), marks=tedsl.testing.requires_cuda())])
def test_an_operator_on_a_device(kind, device, name):
    inputs, _, _, reference = CASES[name]
    wanted = reference(*inputs)
    result = tedsl.nd.empty(wanted.shape, "int32" if name == "argmax" else "float32", device)
    built(name, kind)(*[tedsl.nd.array(x, device) for x in inputs], result)
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_the_simulator_stands_for_cuda_where_the_environment_says_so(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    assert tedsl.cuda(0).exist and tedsl.cuda(0).warp_size == 32
    f, device = built("add", "cuda"), tedsl.cuda(1)
    x, result = tedsl.nd.array(ROWS, device), tedsl.nd.empty(ROWS.shape, "float32", device)
    f(x, x, result)
    np.testing.assert_array_equal(result.numpy(), ROWS + ROWS)
    with pytest.raises(tedsl.errors.ArgumentTypeError, match="a stand-in"):
        x.__dlpack__()
