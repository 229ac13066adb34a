"""Runs operators of topi and compares with numpy: one module for several results of the same placeholders."""

import numpy as np

import tedsl
import topi
from tedsl import te

MEASURE = 1e-6


def plain(outs):
    """The loops of te.create_schedule."""
    return te.create_schedule([tensor.op for tensor in outs])


BOTH = (plain, topi.x86.schedule_injective)


def check(made, feeds, expected, rtol=MEASURE, atol=MEASURE, schedule=None):
    """Asserts shape, dtype and values of the tensors `made`, with arrays for the placeholders.

    schedule: a function of outs such as topi.generic.schedule_injective; None runs BOTH, one module each.
    """
    made, expected = (list(one) if isinstance(one, (list, tuple)) else [one] for one in (made, expected))
    assert len(made) == len(expected)
    for one in BOTH if schedule is None else [schedule]:
        results = run(made, feeds, [np.shape(e) for e in expected], one)
        _compare(made, results, expected, rtol, atol)


def _compare(made, results, expected, rtol, atol):
    for tensor, result, wanted in zip(made, results, expected):
        wanted = np.asarray(wanted)
        constant = [getattr(extent, "value", None) for extent in tensor.shape]
        assert all(c is None or c == n for c, n in zip(constant, wanted.shape, strict=True)), (tensor, wanted.shape)
        assert str(tensor.dtype) == str(wanted.dtype), (tensor.op, tensor.dtype, wanted.dtype)
        np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol, err_msg=repr(tensor.op))


def run(made, feeds, shapes, schedule=plain):
    """The values of tensors as arrays of `shapes`."""
    function = tedsl.build(schedule(made), [*feeds, *made])
    results = [np.full(shape, 77, str(tensor.dtype)) for tensor, shape in zip(made, shapes)]
    function(*feeds.values(), *results)
    return results


def numbers(shape, dtype="float32", seed=0):
    """Arrays without two equal elements, where the dtype allows it."""
    count = int(np.prod(shape))
    values = np.random.default_rng(seed).permutation(count) - count // 3
    if dtype == "bool":
        return (values % 2 == 0).reshape(shape)
    return (values / 4 if dtype.startswith("float") else values).astype(dtype).reshape(shape)


def tensor(shape, dtype="float32", name="a"):
    """A placeholder and the array to feed it with; symbolic dimensions are given as (te.var, size)."""
    declared = [extent[0] if isinstance(extent, tuple) else extent for extent in shape]
    sizes = [extent[1] if isinstance(extent, tuple) else extent for extent in shape]
    return te.placeholder(declared, dtype, name=name), numbers(sizes, dtype)
