"""Derivatives checked by central differences in float64."""

import numpy as np

import tedsl
from tedsl import te


def compiled(inputs, outputs):
    """A function of arrays that returns the arrays of `outputs`, whose shapes are constants."""
    kernel = tedsl.build(te.create_schedule([tensor.op for tensor in outputs]), [*inputs, *outputs])

    def call(*arrays):
        results = [np.full([int(extent) for extent in tensor.shape], np.nan, tensor.dtype) for tensor in outputs]
        kernel(*arrays, *results)
        return results

    return call


def drawn(tensor, rng, low=-2.0, high=2.0):
    """Random values for a placeholder, of its dtype."""
    shape = [int(extent) for extent in tensor.shape]
    if tensor.dtype.is_float:
        return rng.uniform(low, high, shape).astype(tensor.dtype)
    return rng.integers(0, 3, shape).astype(tensor.dtype)


def check(output, inputs, arrays=None, *, by=None, seed=0, low=-2.0, high=2.0, tolerance=1e-6, step=1e-6):
    """The derivatives of `output` by its float inputs (or `by`) agree with central differences, for a random head; and forwards
    with those in reverse, for random tangents.
    """
    rng = np.random.default_rng(seed)
    arrays = [drawn(tensor, rng, low, high) for tensor in inputs] if arrays is None else arrays
    by = [tensor for tensor in inputs if tensor.dtype.is_float] if by is None else by
    head = te.placeholder(output.shape, output.dtype, name="head")
    weights = drawn(head, rng)
    found = compiled([*inputs, head], te.gradient(output, by, head))(*arrays, weights)
    forward = compiled(inputs, [output])
    for tensor, derivative in zip(by, found):
        expected = differences(lambda *a: float((forward(*a)[0] * weights).sum()), arrays, inputs.index(tensor), step)
        scale = tolerance * np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(derivative, expected, rtol=tolerance, atol=scale, err_msg=f"by {tensor.name}")
    tangents = [te.placeholder(tensor.shape, tensor.dtype, name=f"d{n}") for n, tensor in enumerate(by)]
    directions = [drawn(tangent, rng) for tangent in tangents]
    change, = compiled([*inputs, *tangents], [te.jvp(output, by, tangents)])(*arrays, *directions)
    along = sum((derivative * direction).sum() for derivative, direction in zip(found, directions))
    np.testing.assert_allclose((change * weights).sum(), along, rtol=1e-9, atol=1e-9, err_msg="forwards")


def differences(function, arrays, position, step):
    """The central differences of a function of arrays by the elements of one of them."""
    moved = [array.copy() for array in arrays]
    target = moved[position]
    result = np.zeros_like(target)
    for place in np.ndindex(*target.shape):
        kept = target[place]
        target[place] = kept + step
        above = function(*moved)
        target[place] = kept - step
        below = function(*moved)
        target[place] = kept
        result[place] = (above - below) / (2 * step)
    return result
