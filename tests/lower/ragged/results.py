"""What a schedule computes, in every way of running it."""

import numpy as np

import tedsl
from tedsl.ir.evaluate import run


def results(s, args, arrays, shape):
    """What the loops, the machine code and the checked machine code compute."""
    found = []
    for call in (lambda *given: run(tedsl.lower(s, args)["main"], given), lambda *given: run(as_written(s, args), given),
                 tedsl.build(s, args), tedsl.build(s, args, checked=True)):
        out = np.full(shape, 77, "int32")
        call(*arrays, out)
        found.append(out)
    return found


def as_written(s, args):
    return tedsl.driver.schedule_to_module(s, args)["main"]
