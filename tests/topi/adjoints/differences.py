"""Central differences in float64: the oracle of adjoints."""

import numpy as np

import tedsl
import topi
from tedsl import te

STEP = 1e-5


def distinct(shape, dtype="float64", seed=0, low=-1.0, high=1.0):
    """An array whose elements differ from each other by more than differences step, so that no two of them tie."""
    count = int(np.prod(shape))
    places = np.random.default_rng(seed).permutation(count)
    return (low + (high - low) * (places + 0.5) / max(count, 1)).astype(dtype).reshape(shape)


def compiled(outs, arguments, scheduled=True):
    schedule = topi.schedules.schedule(outs) if scheduled else te.create_schedule([out.op for out in outs])
    return tedsl.build(schedule, [*arguments, *outs])


def shape_of(tensor):
    return tuple(int(extent.value) for extent in tensor.shape)


def values(outs, feeds, scheduled=True):
    """The values of tensors, with arrays for placeholders."""
    kernel = compiled(outs, list(feeds), scheduled)
    results = [np.empty(shape_of(out), str(out.dtype)) for out in outs]
    kernel(*feeds.values(), *results)
    return results


def differences(out, feeds, wanted, head):
    """The derivative of sum(head * out) with respect to each element of the placeholder `wanted`."""
    kernel, result = compiled([out], list(feeds)), np.empty(shape_of(out), str(out.dtype))
    arrays = {tensor: array.copy() for tensor, array in feeds.items()}
    moved, found = arrays[wanted], np.empty_like(arrays[wanted])
    for at in np.ndindex(moved.shape):
        sides = []
        for step in (STEP, -STEP):
            before = moved[at]
            moved[at] = before + step
            kernel(*arrays.values(), result)
            sides.append(float(np.sum(result * head)))
            moved[at] = before
        found[at] = (sides[0] - sides[1]) / (2 * STEP)
    return found


def check_record(out, feeds, tolerance=1e-7, scheduled=True, inputs=None):
    """Holds the adjoint that the record of `out.op` gives against central differences."""
    wanted = [tensor for tensor in feeds if tensor.dtype.is_float] if inputs is None else inputs
    head = te.placeholder(out.shape, out.dtype, name="head")
    given = distinct(shape_of(out), seed=99)
    found = out.op.info.adjoint(out.op, head, wanted)
    assert found is not None and set(found) == set(wanted), found
    made = values([topi.identity(found[tensor]) if found[tensor] is head else found[tensor] for tensor in wanted],
                  {**feeds, head: given}, scheduled)
    for tensor, adjoint in zip(wanted, made):
        expected = differences(out, feeds, tensor, given)
        assert found[tensor].dtype == tensor.dtype and adjoint.shape == expected.shape
        np.testing.assert_allclose(adjoint, expected, rtol=tolerance, atol=tolerance * max(1, np.abs(expected).max()),
                                   err_msg=f"{out.op.name}: {tensor.name}")
