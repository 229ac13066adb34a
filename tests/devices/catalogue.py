"""Every operator of topi by its schedule for devices, against its schedule for processors. All of them, on one device:

    python -m tests.devices.catalogue sim        or: opencl
"""

import multiprocessing
import os
import sys
from functools import partial

import numpy as np

import tedsl
import topi
from tedsl import te
from tedsl.errors import LoweringError, TedslError
from tests.codegen.c.topi_operators import DTYPES, ODD, data_of, inputs_of, operators, values

TOLERANCE = 1e-5  # sums are added in another order


def results_of(call):
    """The results of a call, for the oddest extents and the first dtype that it takes."""
    for dtype in DTYPES:
        for extents in ODD:
            try:
                made = call(partial(data_of, extents, dtype))
            except (TedslError, IndexError):
                continue
            return list(made) if isinstance(made, (list, tuple)) else [made]
    raise AssertionError("no call is accepted")


def computed(outs, inputs, arguments, target, device):
    """What the results are for `arguments`, by the schedule for `target`."""
    built = tedsl.build(topi.schedules.schedule(outs, target), [*inputs, *outs], target=target)
    empty = [np.full([int(n) for n in out.shape], 77).astype(str(out.dtype)) for out in outs]
    arrays = [tedsl.nd.array(value, device) for value in [*arguments, *empty]]
    built(*arrays)
    return [array.numpy() for array in arrays[len(inputs):]]


def fault(name, call, place):
    """What is wrong with an operator on the device `place`, "sim" or "opencl"; None if nothing is."""
    target, device = ("opencl", tedsl.opencl(0)) if place == "opencl" else ("cuda", tedsl.sim(0))
    outs = results_of(call)
    inputs = inputs_of(te.create_schedule([out.op for out in outs]))
    outs = [out for out in outs if out not in inputs]
    arguments = [values(tensor, seed) for seed, tensor in enumerate(inputs)]
    try:
        made = computed(outs, inputs, arguments, target, device)
    except LoweringError as error:
        return f"{name}: {error}"
    expected = computed(outs, inputs, arguments, "llvm", tedsl.cpu(0))
    same = all(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=a.dtype.kind == "f") for a, b in zip(made, expected))
    return None if same else f"{name}: other values"


def fault_of(place, number):
    """What is wrong with the operator of that number; None if nothing is."""
    return fault(*operators()[number], place)


def main(place):
    every = operators()
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as processes:
        said = list(processes.imap(partial(fault_of, place), range(len(every))))
    wrong = [words for words in said if words is not None]
    print(f"{len(every)} operators of topi on {place}: {len(wrong)} differ or are refused", *wrong, sep="\n")
    return 1 if wrong or len(every) < 192 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "sim"))
