"""Running operators in the tests: built with the default loops and with every schedule, compared with numpy."""

import numpy as np

import tedsl
import topi
from tedsl import te

SCHEDULES = {
    "plain": lambda outs: te.create_schedule([out.op for out in outs]),
    "generic": topi.generic.schedule_extern,
    "x86": topi.x86.schedule_injective,
    "cuda": topi.cuda.schedule_injective,
}


def run(outs, arrays, schedule="x86", scalars=()):
    """The values of `outs` (a tensor or a tuple of them); arrays: {placeholder: array}, all that is read."""
    single = not isinstance(outs, (tuple, list))
    outs = [outs] if single else list(outs)
    kernel = tedsl.build(SCHEDULES[schedule](outs), [*arrays, *outs])
    results = [np.empty(_shape(out, arrays), np.dtype(str(out.dtype))) for out in outs]
    kernel(*[np.ascontiguousarray(a).reshape(np.shape(a)) for a in arrays.values()], *results)
    return results[0] if single else results


def _shape(out, arrays):
    """The shape of a result, its variables bound by the shapes of the arrays."""
    values = {dim: n for t, array in arrays.items() for dim, n in zip(t.shape, array.shape)}
    return tuple(getattr(dim, "value", None) if hasattr(dim, "value") else values[dim] for dim in out.shape)
