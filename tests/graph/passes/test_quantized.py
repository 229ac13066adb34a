"""Products of dequantized values as products of integers: texts before and after, values, and what stays as it is."""

import numpy as np
import pytest

import tedsl
from tedsl import graph, te
from tedsl.graph import Spec, ops
from tedsl.graph.passes import quantized

WITH_PRODUCTS = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver5"  # of bytes, for texts that depend on no machine


def drawn(shape, dtype="int8", seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def number(value, dtype):
    return graph.constant(np.array(value, dtype))


def dequantized(q, scale, zero, dtype):
    whole = ops.cast(q, "int32") if zero is None else ops.subtract(ops.cast(q, "int32"), number(zero, "int32"))
    return ops.multiply(ops.cast(whole, "float32"), graph.constant(np.asarray(scale, "float32")))


def quantize(x, scale, zero, dtype):
    whole = ops.nearbyint(ops.divide(x, number(scale, "float32")))
    whole = ops.add(whole, number(zero, "float32")) if zero else whole
    limits = np.iinfo(dtype)
    return ops.cast(ops.clip(whole, float(limits.min), float(limits.max)), dtype)


def conv_of(q, weights, zero, padding=1, stride=1, scale=0.05, dtype="uint8", layout="NCHW", dilation=1):
    t = np.linspace(0.01, 0.02, weights.shape["OIHW".index("O") if layout == "NCHW" else 3], dtype="float32")
    w = dequantized(graph.constant(weights, name="w"), t.reshape(-1, 1, 1, 1) if layout == "NCHW" else t, None, "int8")
    return ops.nn.conv2d(dequantized(q, scale, zero, dtype), w, stride, padding, dilation, layout)


def both(fn, *specs, changes=True, exact=False, target=WITH_PRODUCTS, tolerance=1e-5):
    """The graph after, whose values are those of before."""
    before = graph.trace(fn, *specs)
    with tedsl.Target(target):
        after = quantized(before)
    assert (after is not before) == changes
    arrays = [drawn(spec.shape, str(spec.dtype), seed=at) for at, spec in enumerate(specs)]
    for ours, theirs in zip(graph.evaluate(after, *arrays), graph.evaluate(before, *arrays)):
        assert ours.dtype == theirs.dtype
        if exact:
            np.testing.assert_array_equal(ours, theirs)
        elif ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(1, np.abs(theirs).max(initial=0)))
        else:
            assert np.abs(ours.astype(int) - theirs.astype(int)).max(initial=0) <= 1  # a half is rounded up or down
            assert (ours != theirs).mean() < 0.02
    return before, after


def operators(g):
    return [node.operator for node in g.nodes]


def block(q):
    """A convolution, the largest of windows, and a sum with what was there before, each quantized again."""
    y = ops.nn.bias_add(conv_of(q, drawn((4, 4, 3, 3)), 3), graph.constant(np.arange(4, dtype="float32"), name="b"))
    y = quantize(ops.nn.relu(y), 0.1, 0, "uint8")
    z = ops.nn.pool2d(dequantized(y, 0.1, 0, "uint8"), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "max")
    z = quantize(z, 0.1, 0, "uint8")
    return quantize(ops.add(dequantized(z, 0.1, 0, "uint8"), dequantized(q, 0.05, 3, "uint8")), 0.23, 7, "uint8")


def test_a_block_of_a_network(golden):
    before, after = both(block, Spec((1, 4, 6, 5), "uint8"))
    golden.sections(before=str(before), after=str(after))
    assert "divide" not in operators(after)
    conv = next(node for node in after.nodes if node.operator == "nn.conv2d")
    assert [str(value.dtype) for value in (*conv.inputs, *conv.outputs)] == ["uint8", "int8", "int32"]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels, window, padding, stride, dilation", [
    (1, 3, 1, 1, 1), (3, 7, 3, 2, 1), (4, 3, (0, 2), 1, 2), (5, 1, 0, 2, 1), (8, 3, (1, 0, 2, 1), (2, 1), 1)])
@pytest.mark.parametrize("zero, dtype", [(0, "uint8"), (131, "uint8"), (-5, "int8"), (None, "int8")])
def test_convolutions(layout, channels, window, padding, stride, dilation, zero, dtype):
    """With borders that hold the zero point, and channels that are filled up to a multiple of four."""
    weights = drawn((6, channels, window, window))
    shape = (2, channels, 9, 8)
    if layout == "NHWC":
        weights, shape = np.ascontiguousarray(weights.transpose(2, 3, 1, 0)), (2, 9, 8, channels)
    _, after = both(lambda q: conv_of(q, weights, zero, padding, stride, 0.03, dtype, layout, dilation), Spec(shape, dtype))
    (conv,) = [node for node in after.nodes if node.operator == "nn.conv2d"]
    assert conv.inputs[0].shape["NCHW".index("C") if layout == "NCHW" else 3] % 4 == 0
    assert str(conv.outputs[0].dtype) == "int32"


@pytest.mark.parametrize("target", [WITH_PRODUCTS, "llvm -mtriple=x86_64-linux-gnu -mcpu=znver3"])
@pytest.mark.parametrize("results, window, padding, stride", [(1, 3, 1, 1), (2, 3, (0, 1), 2), (1, 7, 3, 1), (1, 23, 11, 1)])
@pytest.mark.parametrize("zero", [0, 131, None])
@pytest.mark.parametrize("exact", [False, True])
def test_depthwise_convolutions(target, results, window, padding, stride, zero, exact):
    """As float32, in which windows of up to 514 elements have exact sums."""
    weights = graph.constant(drawn((5, results, window, window)), name="w")

    def fn(q):
        scale = np.linspace(0.01, 0.02, 5 * results, dtype="float32").reshape(5, results, 1, 1)
        if not exact:
            return ops.nn.depthwise_conv2d_nchw(dequantized(q, 0.1, zero, "uint8"), dequantized(weights, scale, None, "int8"),
                                                stride, padding, 1)
        x = ops.cast(q, "int32") if zero is None else ops.subtract(ops.cast(q, "int32"), number(zero, "int32"))
        return ops.nn.depthwise_conv2d_nchw(x, ops.cast(weights, "int32"), stride, padding, 1, "int32")

    _, after = both(fn, Spec((2, 5, 9, 8), "uint8"), target=target, changes=window < 23 or not exact, exact=exact)
    (conv,) = [node for node in after.nodes if node.operator == "nn.depthwise_conv2d_nchw"]
    assert window == 23 or [value.node.operator for value in conv.inputs if value.node] == ["cast"]


@pytest.mark.parametrize("zero", [0, 9, None])
@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("form", ["dense", "matmul", "turned"])
def test_products_of_matrices(zero, rows, form):
    """Of weights with a scale for each result, and a bias."""
    t = np.linspace(0.01, 0.02, 7, dtype="float32")
    weights = drawn((7, 10)) if form != "matmul" else drawn((10, 7))
    bias = graph.constant(np.arange(7, dtype="float32"), name="b")

    def fn(q):
        w = dequantized(graph.constant(weights, name="w"), t.reshape(-1, 1) if form != "matmul" else t, None, "int8")
        x = dequantized(q, 0.05, zero, "uint8")
        return ops.nn.dense(x, w, bias) if form == "dense" else ops.nn.matmul(x, w, bias, None, False, form == "turned")

    _, after = both(fn, Spec((rows, 10), "uint8"))
    (made,) = [node for node in after.nodes if node.operator in ("nn.dense", "nn.matmul")]
    assert str(made.outputs[0].dtype) == "int32"


@pytest.mark.parametrize("target", [WITH_PRODUCTS, "llvm -mtriple=x86_64-linux-gnu -mcpu=znver3"])
def test_sums_of_integers_less_zero_points(target):
    """Exactly the same, and on all processors; weights of uint8 whose zero point is in their middle are int8."""
    weights = graph.constant(drawn((5, 3, 3, 3), "uint8"), name="w")

    def fn(q):
        x, w = [ops.subtract(ops.cast(one, "int32"), number(zero, "int32")) for one, zero in ((q, 11), (weights, 128))]
        return ops.nn.conv2d(x, w, 1, 1, 1, "NCHW", "int32")

    _, after = both(fn, Spec((1, 3, 5, 6), "uint8"), exact=True, target=target)
    (conv,) = [node for node in after.nodes if node.operator == "nn.conv2d"]
    assert [str(value.dtype) for value in conv.inputs] == ["uint8", "int8"]


def test_a_zero_point_that_is_computed():
    """As that of dynamic quantization: it is multiplied with the sums of the weights."""
    weights = graph.constant(drawn((10, 4)), name="w")

    def fn(q, zero):
        x = ops.subtract(ops.cast(q, "int32"), ops.cast(zero, "int32"))
        return ops.nn.matmul(x, ops.cast(weights, "int32"), None, "int32")

    for shape in ((), (1,)):
        _, after = both(fn, Spec((3, 10), "uint8"), Spec(shape, "uint8"), exact=True)
        (made,) = [node for node in after.nodes if node.operator == "nn.matmul"]
        assert [str(value.dtype) for value in made.inputs] == ["uint8", "int8"]


@pytest.mark.parametrize("why, fn", [
    ("weights that do not fit int8", lambda q: ops.nn.dense(
        dequantized(q, 0.1, 0, "uint8"), dequantized(graph.constant(drawn((4, 10), "uint8")), 0.1, 7, "uint8"))),
    ("weights that are no constant", lambda q: ops.nn.dense(dequantized(q, 0.1, 0, "uint8"), dequantized(q, 0.1, 0, "uint8"))),
    ("scales of the data along the terms", lambda q: ops.nn.dense(
        dequantized(q, np.linspace(0.1, 0.2, 10), 0, "uint8"), dequantized(graph.constant(drawn((4, 10))), 0.1, None, "int8"))),
    ("scales of the weights along the terms", lambda q: ops.nn.dense(
        dequantized(q, 0.1, 0, "uint8"), dequantized(graph.constant(drawn((4, 10))), np.linspace(0.1, 0.2, 10), None, "int8"))),
    ("sums beyond 32 bits", lambda q: ops.nn.matmul(
        dequantized(ops.tile(q, (1, 7000)), 0.1, 0, "uint8"),
        dequantized(graph.constant(drawn((70000, 2))), 0.1, None, "int8"))),
    ("another scale", lambda q: quantize(dequantized(q, 0.1, 4, "uint8"), 0.23, 4, "uint8")),
    ("averages", lambda q: ops.nn.pool2d(ops.reshape(dequantized(q, 0.1, 4, "uint8"), (1, 3, 5, 2)), (2, 2), (1, 1), (1, 1),
                                         (0, 0, 0, 0), "avg")),
])
def test_what_stays(why, fn):
    """Products of float32 stay, of constant weights; views move before them, and divisions before rounding are products."""
    _, after = both(fn, Spec((3, 10), "uint8"), changes=why != "weights that are no constant")
    assert not [node for node in after.nodes if node.operator in ("nn.dense", "nn.matmul") and
                str(node.outputs[0].dtype) == "int32"]


def test_products_of_floats_stay_where_bytes_take_as_long():
    """On Zen 3 four bytes are multiplied as 16-bit integers, and 3x3 convolutions of float32 may go by winograd."""
    _, after = both(lambda q: conv_of(q, drawn((64, 64, 3, 3)), 0), Spec((1, 64, 6, 5), "uint8"), exact=True,
                    target="llvm -mtriple=x86_64-linux-gnu -mcpu=znver3")
    (conv,) = [node for node in after.nodes if node.operator == "nn.conv2d"]
    assert conv.inputs[1].is_constant and str(conv.inputs[1].dtype) == "float32"  # of any size, for passes that pack it


@pytest.mark.parametrize("again", [(0.1, 4, "uint8"), (0.1, 4, "int8"), (0.1, 5, "uint8")])
def test_what_is_quantized_as_it_was_is_left(again):
    _, after = both(lambda q: quantize(ops.transpose(dequantized(q, 0.1, 4, "uint8"), (1, 0)), *again), Spec((3, 10), "uint8"))
    assert (operators(after) == ["transpose"]) == (again == (0.1, 4, "uint8"))


def test_a_quotient_that_others_read_stays():
    def fn(q):
        y = ops.divide(ops.multiply(ops.cast(q, "float32"), number(3, "float32")), number(7, "float32"))
        return ops.nearbyint(y), y

    assert "divide" in operators(both(fn, Spec((3, 10), "uint8"), changes=False)[1])


def scaled(whole, scale=0.1):
    return ops.multiply(ops.cast(whole, "float32"), graph.constant(np.asarray(scale, "float32")))


WEIGHTS = drawn((4, 10))


@pytest.mark.parametrize("why, x", [
    ("a cast to bool tells zeros", lambda q: scaled(ops.cast(q, "bool"))),
    ("differences of uint8 wrap", lambda q: scaled(ops.subtract(ops.cast(q, "uint8"), number(3, "uint8")))),
    ("differences of int16 wrap", lambda q: scaled(ops.subtract(ops.cast(q, "int16"), number(-32768, "int16")))),
])
def test_numbers_that_are_not_those_stored(why, x):
    both(lambda q: ops.nn.dense(x(q), scaled(graph.constant(WEIGHTS))), Spec((3, 10), "int8"))


def test_numbers_that_wrapped_are_those_stored():
    weights = scaled(graph.constant(WEIGHTS))
    _, after = both(lambda q: ops.nn.dense(scaled(ops.cast(q, "uint8")), weights), Spec((3, 10), "int8"))
    (made,) = [node for node in after.nodes if node.operator == "nn.dense"]
    assert [str(value.dtype) for value in made.inputs] == ["uint8", "int8"]


def test_a_border_of_a_zero_point_of_more_than_8_bits_stays():
    both(lambda q: conv_of(q, drawn((4, 4, 3, 3)), 200, dtype="int8"), Spec((1, 4, 6, 5), "int8"))


@pytest.mark.parametrize("scale", [[[0.1]], [[[0.1]]]])
def test_scales_that_add_dimensions(scale):
    """The product takes two dimensions, and those stored have one."""
    both(lambda q: ops.nn.dense(ops.reshape(scaled(q, scale), (1, 10)), scaled(graph.constant(WEIGHTS))), Spec((10,), "int8"))
    both(lambda q: ops.nn.matmul(scaled(q, [[0.1]]), scaled(graph.constant(WEIGHTS.T.copy()))), Spec((10,), "int8"))


def test_scales_and_zero_points_that_repeat_weights():
    scale = np.linspace(0.01, 0.02, 4, dtype="float32")
    window, row = graph.constant(drawn((1, 1, 3, 3))), graph.constant(drawn((1, 10)))
    both(lambda q: ops.nn.depthwise_conv2d_nchw(scaled(q), scaled(window, scale.reshape(4, 1, 1, 1)), 1, 1, 1),
         Spec((1, 4, 6, 5), "int8"), changes=False)
    both(lambda q: ops.nn.dense(scaled(q), scaled(row, scale.reshape(4, 1))), Spec((3, 10), "int8"), changes=False)
    both(lambda q: ops.nn.dense(ops.cast(q, "int32"), ops.subtract(ops.cast(row, "int32"), number([[1], [2], [3]], "int32")),
                                None, "int32"), Spec((2, 10), "int8"), changes=False)


@pytest.mark.parametrize("scale, divisor", [(1e5, 1e-37), (1e-30, 1e15)])
def test_quotients_whose_factor_float32_does_not_hold(scale, divisor):
    """0 * 1e5 / 1e-37 is 0, and 0 times infinity is no number."""
    both(lambda q: ops.nearbyint(ops.divide(scaled(q, scale), number(divisor, "float32"))), Spec((3, 10), "int8"),
         exact=True)


def test_products_whose_extents_are_variables():
    """Scores of attention: both operands are computed, and nobody knows how many numbers they have."""
    n = te.var("n")

    def fn(q):
        x = dequantized(q, 0.1, 3, "uint8")
        return ops.nn.matmul(x, ops.transpose(x, (1, 0)))

    g = graph.trace(fn, Spec((n, 10), "uint8"))
    arrays = [drawn((rows, 10), "uint8") for rows in (1, 5)]
    network = graph.compile(g)
    for array in arrays:
        np.testing.assert_allclose(network(array), graph.evaluate(g, array)[0], rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 1, 3, 3), (4, 0, 3, 3)])
def test_depthwise_convolutions_without_results(shape):
    weights = graph.constant(np.empty(shape, "int8"), name="w")

    def fn(q):
        return ops.nn.depthwise_conv2d_nchw(dequantized(q, 0.1, 3, "uint8"), dequantized(weights, 0.1, None, "int8"), 1, 1, 1)

    both(fn, Spec((1, shape[0], 5, 5), "uint8"))
