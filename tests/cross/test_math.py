"""The accuracy of the vector math on other processors, under qemu: at most what is published, as on x86-64."""

import os

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.codegen.formulas.table import MAX_ULP
from tests.codegen.math_harness import floats32, floats64, reference, worst_ulp
from tests.codegen.test_math import LONG_DOUBLE, UNARY
from tests.cross.calls import run
from tests.cross.machines import MACHINES

pytestmark = pytest.mark.skipif(not os.environ.get("TEDSL_CROSS"), reason="TEDSL_CROSS is not set: .ci/cross runs these")
FLOATS = {"float32": (0, floats32(4000), np.float64), "float64": (1, floats64(6000), np.longdouble)}


def over(values, name):
    """The loops of a function of math over as many elements as `values` has."""
    a = te.placeholder(values.shape, str(values.dtype), name="a")
    b = te.compute(values.shape, lambda i: getattr(te, name)(a[i]), name="b")
    return tedsl.lower(te.create_schedule(b.op), [a, b], name=f"{name}_{values.dtype}")


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_functions_are_within_their_bounds(machine, tmp_path):
    if machine.missing():
        pytest.skip(f"not installed: {', '.join(machine.missing())}")
    cases = [(name, "float32") for name in UNARY]
    cases += [(name, "float64") for name in UNARY if LONG_DOUBLE and name != "erf"]  # of erf there is no reference at hand
    module = tedsl.build([over(FLOATS[dtype][1], name) for name, dtype in cases], target=machine.target)
    calls = [(f"{name}_{dtype}", [FLOATS[dtype][1], np.zeros_like(FLOATS[dtype][1])]) for name, dtype in cases]
    beyond = []
    for (name, dtype), (x, got) in zip(cases, run(machine, module, calls, tmp_path)):
        column, _, wider = FLOATS[dtype]
        with np.errstate(invalid="ignore"):  # signalling NaNs among the patterns
            exact = reference(name, x.astype(wider))
        normal = np.ones(x.shape, bool)
        if not machine.exact and dtype == "float32":  # vectors there flush denormal numbers to zero
            least = np.finfo(dtype).tiny
            normal = ~((np.abs(x) > 0) & (np.abs(x) < least)) & ~(np.abs(exact) <= least)
        error, at = worst_ulp(got[normal], exact[normal])
        if error > MAX_ULP[name][column]:
            beyond.append(f"{name}({x[normal][at]!r}) = {got[normal][at]!r} is {error} ulp off")
    assert beyond == [], machine.name
    print(f"{machine.name}: {len(cases)} functions, bounds of ulp")
