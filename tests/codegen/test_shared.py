"""Equal parallel loops are written as one function, and only those."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir


def chain(formulas, size=4096, parallel=True, name="stage"):
    """Stages one after the other, each a formula of the element of the stage before and of one of its own weights."""
    x = te.placeholder((size,), name="x")
    weights = [te.placeholder((size,), name=f"w{k}") for k in range(len(formulas))]
    stages = [x]
    for k, formula in enumerate(formulas):
        stages.append(te.compute((size,), lambda i, f=formula, k=k: f(stages[k][i], weights[k][i]), name=f"{name}{k}"))
    s = te.create_schedule(stages[-1].op)
    for stage in stages[1:]:
        outer, inner = s[stage].split(stage.op.axis[0], 16)
        s[stage].vectorize(inner)
        if parallel:
            s[stage].parallel(outer)
    return tedsl.build(s, [x, *weights, stages[-1]])


def run(module, formulas, size=4096):
    random = np.random.default_rng(0)
    x, *weights = [random.integers(-2, 3, size).astype("float32") for _ in range(len(formulas) + 1)]
    out = np.empty(size, "float32")
    module(x, *weights, out)
    expected = x
    for formula, weight in zip(formulas, weights):
        expected = formula(expected, weight)
    np.testing.assert_array_equal(out, expected)  # of whole numbers: exact


def bodies(module):
    return module.get_source("ll").count("define internal i32 @default_function.kernel.stage")


def launches(module):
    return module.get_source("ll").count("call i32 @tedsl_parallel_launch")


def test_equal_layers_are_one_function():
    formulas = [lambda a, w: a * w + a] * 7
    module = chain(formulas)
    assert launches(module) == 7
    assert bodies(module) == 3  # from the argument to ours, from ours to ours, from ours to the argument
    run(module, formulas)


@pytest.mark.parametrize("formulas, count", [
    ([lambda a, w, k=k: a * w + a * np.float32(k) for k in range(1, 7)], 6),  # other constants
    ([lambda a, w: a * w + w, lambda a, w: a * w + a] * 3, 4),  # other places of the same variables
])
def test_layers_that_differ_are_not(formulas, count):
    module = chain(formulas)
    run(module, formulas)
    assert (bodies(module), launches(module)) == (count, 6)


def test_a_layer_in_place_is_not_one_between_two_arrays():
    """A loop that stores to what it reads has a function of its own."""
    def body(ib, x, y):
        a, b = (ib.allocate("float32", 1 << 14, name=name, scope="global") for name in ("stage_a", "stage_b"))
        for source, out in ((x, a), (a, a), (a, b), (b, b), (b, a), (a, y)):
            with ib.for_range(0, 1 << 14, kind="parallel") as i:
                out[i] = source[i] * 2.0

    x = te.placeholder((1 << 14,), name="x")

    def statement(ins, outs):
        ib = tir.ir_builder.create()
        body(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]))
        return ib.get()

    out = te.extern((1 << 14,), [x], statement, name="stage_y", dtype="float32")
    module = tedsl.build(te.create_schedule(out.op), [x, out])
    assert (launches(module), bodies(module)) == (6, 4)
    values, results = np.arange(1 << 14, dtype="f"), np.zeros(1 << 14, "f")
    module(values, results)
    np.testing.assert_array_equal(results, values * 64)
