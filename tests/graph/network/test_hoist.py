"""What kernels compute of constants alone is computed once."""

import numpy as np
import pytest

from tedsl import graph, te
from tedsl.driver import schedule_to_module
from tedsl.graph import Spec, constant, ops
from tedsl.graph.network import compile
from tedsl.graph.network.hoist import divided


def packed(apart=0):
    """A function that reads w in another order, which it stores first. apart: the elements from one row of that to the next."""
    x, w = te.placeholder((8, 16), name="x"), te.placeholder((16, 4), name="w")
    turned = te.compute((4, 16), lambda j, k: w[k, j] * 2.0, name="turned")
    y = te.compute((8, 4), lambda i, j: x[i, j] + turned[j, i], name="y")
    s = te.create_schedule(y.op)
    if apart:
        s[turned].storage_align(turned.op.axis[0], apart, 0)
    (func,) = schedule_to_module(s, [x, w, y], "f").functions.values()
    return func


def test_a_buffer_that_is_filled_from_constants_becomes_an_argument():
    whole, before = divided(packed(), [1])
    assert [buffer.name for buffer in whole.buffers] == ["x", "y", "turned"]
    assert [buffer.name for buffer in before.buffers] == ["w", "turned"]
    assert before.name == "f_prepare_0" and "realize" not in str(whole)


def test_rows_apart_of_a_buffer_that_becomes_an_argument_follow_each_other():
    assert "buffer_dim_align" in str(packed(24))
    assert all("buffer_dim_align" not in str(func) for func in divided(packed(24), [1]))


def test_what_depends_on_other_inputs_stays():
    func = packed()
    assert divided(func, [0])[0] is func
    assert divided(func, [])[0] is func


@pytest.mark.parametrize("shape, weight, stride, pad", [
    ((1, 64, 14, 14), (64, 64, 3, 3), 1, 1), ((1, 512, 7, 7), (64, 512, 3, 3), 1, 1), ((1, 3, 32, 32), (16, 3, 7, 7), 2, 3),
    ((2, 32, 9, 9), (48, 32, 1, 1), 2, 0), ((1, 3, 32, 32), (8, 3, 7, 7), 2, 3),
])
def test_convolutions_with_prepared_weights(shape, weight, stride, pad):
    rng = np.random.default_rng(0)
    w, x = (rng.standard_normal(of).astype("float32") for of in (weight, shape))
    g = graph.trace(lambda x: ops.nn.conv2d(x, constant(w), stride, pad, 1), Spec(shape))
    network = compile(g, opt_level=0)
    np.testing.assert_array_equal(network(x), graph.evaluate(g, x)[0])


def test_a_kernel_for_two_layers_has_weights_for_each():
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((64, 64, 3, 3)).astype("float32") / 24 for _ in range(2))

    def fn(x):
        for w in (first, second, first):
            x = ops.nn.conv2d(x, constant(w), 1, 1, 1)
        return x

    g = graph.trace(fn, Spec((1, 64, 28, 28)))
    network = compile(g, opt_level=0)
    x = rng.standard_normal((1, 64, 28, 28)).astype("float32")
    assert len(network.modules) == 1 and len(next(iter(network.modules.values())).function_names) == 2
    np.testing.assert_array_equal(network(x), graph.evaluate(g, x)[0])


def test_weights_that_are_inputs_are_not_prepared():
    g = graph.trace(lambda x, w: ops.nn.conv2d(x, w, 1, 1, 1), Spec((1, 64, 28, 28)), Spec((64, 64, 3, 3)))
    assert [len(module.function_names) for module in compile(g, opt_level=0).modules.values()] == [1]
