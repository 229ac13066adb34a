"""Operators of topi in C against LLVM, many in one file. All of them:

    python -m tests.codegen.c.topi_operators "c -math=own -cc=clang"
"""

import importlib.util
import inspect
import multiprocessing
import os
import pathlib
import sys
from functools import partial

import numpy as np

import tedsl
import topi
from tedsl import te
from tedsl.errors import TedslError

PLACE = pathlib.Path(__file__).parents[3] / "docs" / "operator_examples.py"
ODD = ({2: 5, 3: 7, 4: 9}, {2: 3, 3: 5, 4: 7}, {2: 3, 4: 5}, {3: 5}, {})  # extents of the examples, and what they become
ROOMS = {"": topi, "nn.": topi.nn, "image.": topi.image, "vision.": topi.vision, "random.": topi.random, "sparse.": topi.sparse}
DTYPES = ("float32", "int32", "bool", "uint32", "uint64")


def operators():
    """Every operator: its name, and a small call of it."""
    spec = importlib.util.spec_from_file_location("operator_examples", PLACE)
    known = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(known)
    found = []
    for prefix, room in ROOMS.items():
        for name in sorted(room.__all__):
            one = getattr(room, name)
            if inspect.isfunction(one) and one.__name__ == name and not one.__module__.endswith(".utils"):
                needed = sum(p.default is inspect.Parameter.empty for p in inspect.signature(one).parameters.values())
                found.append((prefix + name, known.EXAMPLES.get(prefix + name) or known.plain(one, needed)))
    return found


def data_of(extents, dtype, *shape):
    """A placeholder of `shape` with some of its extents replaced."""
    return te.placeholder([extents.get(n, n) for n in shape], dtype, name="data")


def scheduled(call):
    """The results of a call and their schedule for processors, for the oddest extents and the first dtype that it takes."""
    for dtype in DTYPES:
        for extents in ODD:
            try:
                made = call(partial(data_of, extents, dtype))
                outs = list(made) if isinstance(made, (list, tuple)) else [made]
                return outs, topi.schedules.schedule(outs, "c")
            except (TedslError, IndexError):
                continue
    raise AssertionError("no call is accepted")


def inputs_of(s):
    """The placeholders that a schedule reads. States of scans are not inputs: their rows are part of the scan's result."""
    ops = [stage.op for stage in s.stages]
    states = {state.op for op in ops if isinstance(op, te.ScanOp) for state in op.state_placeholder}
    return [op.output(0) for op in ops if isinstance(op, te.PlaceholderOp) and op not in states]


def lowered(some):
    """One module with `some` operators as functions, and the arguments of each: how many are inputs, the tensors."""
    functions, arguments = {}, {}
    for number, (name, call) in enumerate(some):
        outs, s = scheduled(call)
        inputs = inputs_of(s)
        args = [*inputs, *(out for out in outs if out not in inputs)]
        key = f"{name.replace('.', '_')}_{number}"
        functions[key] = tedsl.lower(s, args, name=key)[key]
        arguments[key] = (len(inputs), args)
    return tedsl.IRModule(functions), arguments


def values(tensor, seed):
    shape = [int(n) for n in tensor.shape]
    rng = np.random.default_rng(seed)
    if str(tensor.dtype).startswith("float"):
        return rng.uniform(0.1, 2.0, shape).astype(str(tensor.dtype))
    return rng.integers(0, 2, shape).astype(str(tensor.dtype))


def differing(some, target):
    """The names of those of `some` operators whose results in C for `target` are not those of LLVM to the bit."""
    module, arguments = lowered(some)
    with tedsl.transform.PassContext(opt_level=0):
        ways = tedsl.build(module, target="llvm -mcpu=x86-64"), tedsl.build(module, target=target)
    wrong = []
    for key, (count, args) in arguments.items():
        inputs = [values(tensor, k) for k, tensor in enumerate(args[:count])]
        results = []
        for built in ways:
            outs = [np.full([int(n) for n in t.shape], 77).astype(str(t.dtype)) for t in args[count:]]
            built[key](*[x.copy() for x in inputs], *outs)
            results.append(outs)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(*results)):
            wrong.append(key)
    return wrong


def differing_of(target, at):
    """Those of the 32 operators from number `at` on that differ."""
    return differing(operators()[at:at + 32], target)


def main(target):
    every = operators()
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as processes:
        wrong = [name for names in processes.imap(partial(differing_of, target), range(0, len(every), 32)) for name in names]
    print(f"{len(every)} operators of topi in C for {target}: {len(wrong)} differ from LLVM {wrong}")
    return 1 if wrong or len(every) < 192 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "c -math=own"))
