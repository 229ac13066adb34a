"""A schedule run in both ways: in the interpreter and as machine code. Each must give what the formulas mean."""

from textwrap import dedent

import numpy as np

import tedsl
from tedsl.ir.evaluate import evaluate, run
from tests.lower.programs import meaning


def check_both(s, args, values, sizes=None):
    """The loops before and after all passes, and the machine code, compute what the formulas mean."""
    check_calls(s, args, [(values, sizes)])


def check_calls(s, args, calls):
    """As `check_both`, for several calls of one kernel: pairs of values and sizes."""
    lowered = tedsl.driver.schedule_to_module(s, args)["main"], tedsl.lower(s, args)["main"]
    kernel = tedsl.build(s, args)
    for values, sizes in calls:
        expected = meaning([t for t in args if t not in values], values, sizes)
        for name, call in (("before the passes", lambda given: run(lowered[0], given)),
                           ("after the passes", lambda given: run(lowered[1], given)),
                           ("compiled", lambda given: kernel(*given))):
            given = [values[arg] if arg in values else empty(arg, sizes) for arg in args]
            call(given)
            for arg, array in zip(args, given):
                if arg not in values:
                    np.testing.assert_array_equal(array, expected[arg], err_msg=f"{arg.name} {name}")


def empty(tensor, sizes):
    """An array for an output, full of values that should be overwritten."""
    return np.full([int(evaluate(d, sizes or {})) for d in tensor.shape], 77, np.dtype(str(tensor.dtype)))


def loops(s, args, passes=False):
    """The text of the loops, without the head of the function."""
    module = tedsl.lower(s, args, simple_mode=True) if passes else tedsl.driver.schedule_to_module(s, args)
    lines = str(module["main"]).split("buffer_map", 1)[1].split("{\n", 1)[1].splitlines()[:-1]
    return dedent("\n".join(lines)) + "\n"
