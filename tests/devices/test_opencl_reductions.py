"""Reductions across the threads of a block on an OpenCL device, through local memory: a device without warps."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tests.devices.opencl_device import needs_opencl
from tests.devices.test_opencl_programs import floats, on_device
from tests.passes.threads.programs import row_sums, softmax, whole_numbers

pytestmark = needs_opencl


@pytest.mark.parametrize("threads, rows", [(8, 4), (12, 2), (64, 1)])
def test_row_sums(threads, rows):
    x = whole_numbers(13, 100)
    for factored in (True, False):
        built = tedsl.build(*row_sums(13, 100, threads, rows, factored), "opencl")
        np.testing.assert_array_equal(on_device(built, [x], (13,)), x.sum(1))


def test_row_sums_of_symbolic_size():
    built = tedsl.build(*row_sums(te.var("n"), te.var("m")), "opencl")
    for shape in ((13, 100), (1, 1), (5, 13), (4, 0)):
        x = whole_numbers(*shape)
        np.testing.assert_array_equal(on_device(built, [x], shape[:1]), x.sum(1))


def test_maximum_has_the_bits_of_the_processor():
    x, program = floats(5, 19), row_sums(5, 19, reduce=te.max)
    np.testing.assert_array_equal(on_device(tedsl.build(*program, "opencl"), [x], (5,)), x.max(1))


def sum_over_two_axes(n, m, threads=8):
    """All elements of a matrix, by the threads of one block along one axis, and those of its columns along another."""
    a = te.placeholder((n, m), name="A")
    i, j = te.reduce_axis((0, n), name="i"), te.reduce_axis((0, m), name="j")
    b = te.compute((1,), lambda _: te.sum(a[i, j], axis=[i, j]), name="B")
    s = te.create_schedule(b.op)
    _, y = s[b].split(s[b].op.reduce_axis[0], factor=4)
    _, x = s[b].split(s[b].op.reduce_axis[1], factor=threads)
    s[b].bind(s[b].op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].bind(y, te.thread_axis("threadIdx.y"))
    s[b].bind(x, te.thread_axis("threadIdx.x"))
    return s, [a, b]


def test_sum_over_two_axes():
    x = whole_numbers(11, 30)
    np.testing.assert_array_equal(on_device(tedsl.build(*sum_over_two_axes(11, 30), "opencl"), [x], (1,)), [x.sum()])


@pytest.mark.parametrize("n, m", [(3, 16), (4, 13), (1, 1)])
def test_softmax(n, m):
    x = floats(n, m)
    e = np.exp(x - x.max(1, keepdims=True))
    got = on_device(tedsl.build(*softmax(n, m), "opencl"), [x], (n, m))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_largest_element_and_its_place():
    argmax = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    a = te.placeholder((5, 13), name="A")
    k = te.reduce_axis((0, 13), name="k")
    index, value = te.compute((5,), lambda i: argmax((k.var, a[i, k]), axis=k), name="B")
    s = te.create_schedule(index.op)
    _, inner = s[index].split(s[index].op.reduce_axis[0], factor=4)
    s[index].bind(s[index].op.axis[0], te.thread_axis("blockIdx.x"))
    s[index].bind(inner, te.thread_axis("threadIdx.x"))
    x, place = floats(5, 13), tedsl.device("opencl", 0)
    given, found, best = (tedsl.nd.array(array, place) for array in (x, np.zeros(5, "int32"), np.zeros(5, "float32")))
    tedsl.build(s, [a, index, value], "opencl")(given, found, best)
    np.testing.assert_array_equal(best.numpy(), x.max(1))
    np.testing.assert_array_equal(found.numpy(), x.argmax(1))
