"""What the tests of lowering share: running a schedule in the interpreter, and the meaning of a program without schedule."""

import itertools

import numpy as np

from tedsl.ir.evaluate import evaluate, run
from tedsl.ir.verify import verify
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp
from tedsl.lower.lower import lower_schedule


def meaning(outputs, inputs, sizes=None):
    """The values of all tensors below `outputs`, element by element as the formulas say."""
    sizes = dict(sizes or {})
    known = dict(inputs)
    for op in producers_first([t.op for t in outputs]):
        if not isinstance(op, ComputeOp):
            continue
        shape = [int(evaluate(d, sizes)) for d in op.shape]
        arrays = [np.zeros(shape, np.dtype(str(op.dtype_of(i)))) for i in range(op.num_outputs)]
        for point in itertools.product(*map(range, shape)):
            env = {**sizes, **{t: known[t] for t in op.input_tensors}, **{a.var: p for a, p in zip(op.axis, point)}}
            for array, body in zip(arrays, op.body):
                array[point] = evaluate(body, env)
        known.update({op.output(i): array for i, array in enumerate(arrays)})
    return known


def execute(s, args, values, sizes=None):
    """Lowers `s` for `args` and runs it. values: arrays of inputs, numbers of variables; returns the arrays of the others."""
    func = lower_schedule(s, args)
    verify(func, flat=False)
    given, results = [], {}
    for arg in args:
        if arg in values:
            given.append(values[arg])
            continue
        shape = [int(evaluate(d, sizes or {})) for d in arg.shape]
        results[arg] = np.full(shape, 77, np.dtype(str(arg.dtype)))
        given.append(results[arg])
    run(func, given)
    return results


def check(s, args, values, sizes=None):
    """The lowered program computes what the formulas mean. Returns the arrays."""
    results = execute(s, args, values, sizes)
    expected = meaning(list(results), values, sizes)
    for tensor, array in results.items():
        np.testing.assert_array_equal(array, expected[tensor], err_msg=tensor.name)
    return results


def whole_numbers(shape, dtype="float32", seed=0):
    """Small integers, so that sums of floats are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)
