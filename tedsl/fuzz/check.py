# mypy: ignore-errors
"""Runs a case in every way there is and compares: loops before and after the passes, machine code, the reference."""

import functools
import re
from dataclasses import replace

import numpy as np

from tedsl import te
from tedsl.codegen.backend import backend_for
from tedsl.driver import schedule_to_module
from tedsl.errors import LoweringError, ScheduleError
from tedsl.fuzz.case import MARGIN, empty_result, laid_out
from tedsl.fuzz.reference import Reference
from tedsl.fuzz.values import is_float
from tedsl.ir.evaluate import run
from tedsl.ir.func import IRModule
from tedsl.ir.verify import verify
from tedsl.passes.context import pass_config
from tedsl.passes.default import lowering_pipeline, target_pipeline
from tedsl.target.current import as_target


class Disagreement(AssertionError):
    """Two ways to run a program differ; `way` says which one left the others."""

    def __init__(self, way, detail):
        super().__init__(f"{way}: {detail}")
        self.way = way


class Refused(Exception):
    """The schedule is one that lowering refuses."""


def expected_arrays(case):
    """The outputs by the reference."""
    reference = Reference(case.sizes, {name: data.values() for name, data in case.data.items()})
    names = {"te": reference}
    for text in case.lines:
        exec(text, names)
    return {name: names[name] for name in case.outputs}


class _Resized(Reference):
    """Notes the shapes that the inputs have with other sizes."""

    def __init__(self, case, sizes):
        super().__init__(sizes, {})
        self.data = dict(case.data)

    def placeholder(self, shape, dtype="float32", name="placeholder"):
        self.data[name] = replace(self.data[name], shape=tuple(int(d) for d in shape))
        self.arrays[name] = self.data[name].values()
        return super().placeholder(shape, dtype, name)


def resized(case, sizes):
    """The case with other values of its variables, and its outputs by the reference."""
    reference = _Resized(case, sizes)
    names = {"te": reference}
    for text in case.lines:
        exec(text, names)
    return replace(case, sizes=sizes, data=reference.data), {name: names[name] for name in case.outputs}


def declared(case):
    """The names that the lines of a case define, as tedsl's objects, with `s` and `loop`."""
    names = {"te": te}
    for text in case.lines:
        exec(text, names)
    names["s"] = te.create_schedule([names[name].op for name in case.outputs])
    names["loop"] = lambda tensor, number: names["s"][tensor].leaf_iter_vars[number]
    return names


def scheduled(case):
    """The names with the schedule applied; directives that are refused are left out."""
    names = declared(case)
    for text in case.schedule:
        try:
            exec(text, names)
        except (ScheduleError, NameError, IndexError):
            continue
    return names


class Run:
    """The arrays of one run, in memory of their own."""

    def __init__(self, case, expected):
        self.case, self.arguments, self.memory = case, [], []
        for name in case.args:
            if name in case.data:
                view, memory = laid_out(case.data[name].values(), case.data[name].layout)
            elif name in expected:
                view, memory = empty_result(expected[name].array.shape, expected[name].dtype)
            else:
                self.arguments.append(case.sizes[name])
                continue
            self.arguments.append(view)
            self.memory.append((name, memory))

    def output(self, name):
        return self.arguments[self.case.args.index(name)]

    def compare(self, way, expected):
        """The outputs against the reference, the memory against what it was."""
        self.check_memory(way)
        for name in self.case.outputs:
            compare(way, name, self.output(name), expected[name], self.case.tolerance.get(name, 0.0))

    def check_memory(self, way):
        """The inputs and what surrounds all arrays must be as they were."""
        for name, memory in self.memory:
            if (memory[:MARGIN] != 0x5A).any() or (memory[-MARGIN:] != 0x5A).any():
                raise Disagreement(way, f"memory around {name} was written")
            if name in self.case.data:
                before = laid_out(self.case.data[name].values(), self.case.data[name].layout)[1]
                if not np.array_equal(before, memory):
                    raise Disagreement(way, f"the input {name} was written")


def compare(way, name, got, expected, tolerance):
    wanted = expected.array
    if is_float(expected.dtype):
        x, y = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= tolerance)
    else:
        same = got == wanted
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        raise Disagreement(way, f"{name}{list(at)} is {got[at]}, not {wanted[at]} ({(~same).sum()} of {same.size} differ)")


# What lowering may say of a schedule that was accepted: facts that only bounds tell. Any other refusal is a finding.
REFUSALS = re.compile(r"is marked (unroll|vectorized) but its extent|would race|both computed inside|gives the start values of")


def lowered_by(step, *args):
    """What `step` returns; Refused if it refuses with good reason."""
    try:
        return step(*args)
    except LoweringError as error:
        if REFUSALS.search(str(error)) is None:
            raise
        raise Refused(str(error)) from error


def loops_of(case, names):
    """The loops before the passes."""
    return lowered_by(schedule_to_module, names["s"], [names[name] for name in case.args])["main"]


def interpreted(case, func, way, expected):
    outcome = Run(case, expected)
    run(func, outcome.arguments)
    outcome.compare(way, expected)
    return outcome


def check(case, *, interpret=True, compiled=True):
    """Raises Disagreement where a way to run `case` differs from the reference, Refused where lowering refuses it.

    interpret=False: machine code only; compiled=False: without it.
    """
    expected = expected_arrays(case)
    names = scheduled(case)
    for name in case.outputs:
        if names[name].dtype != expected[name].dtype:
            raise Disagreement("dtypes", f"{name} is {names[name].dtype}, not {expected[name].dtype}")
    options = pass_config(case.config)
    func = loops_of(case, names)
    if interpret:
        verify(func, flat=False)
        interpreted(case, func, "the loops of the schedule", expected)
    lowered = lowered_by(lowering_pipeline(options, case.simple_mode), func)
    target = as_target(case.target)
    ready = None
    if interpret:
        verify(lowered, flat=True)
        interpreted(case, lowered, "the loops after lower", expected)
        ready = lowered_by(target_pipeline(target, options), lowered)
        verify(ready, flat=True)
        interpreted(case, ready, "the loops for the machine", expected)
    if compiled:
        machine_code(case, lowered, target, options, expected, ready)


def machine_code(case, lowered, target, options, expected, ready):
    """Compiles and compares with the reference; with the interpreter bit by bit, and for larger sizes too."""
    module = backend_for(target).compile([lowered], target, options)
    outcome = Run(case, expected)
    module(*outcome.arguments)
    outcome.compare("machine code", expected)
    if ready is None or not case.exact:
        return
    same_bits(case, ready, outcome, expected, "bits")
    for more in (1, 3):
        sizes = {name: size + more if name.startswith("n") else size for name, size in case.sizes.items()}
        if sizes != case.sizes:
            larger, its = resized(case, sizes)
            outcome = Run(larger, its)
            module(*outcome.arguments)
            outcome.check_memory("machine code for larger sizes")
            same_bits(larger, ready, outcome, its, "bits for larger sizes")


def same_bits(case, ready, outcome, expected, way):
    interpreter = Run(case, expected)
    run(ready, interpreter.arguments)
    for name in case.outputs:
        a, b = outcome.output(name), interpreter.output(name)
        same = (a == b) | ((a != a) & (b != b))
        if not same.all():
            raise Disagreement(way, f"{name}: machine code and the interpreter differ in {(~same).sum()} elements")


def show(case):
    """Prints the schedule and the loops of a case."""
    names = scheduled(case)
    print(names["s"])
    func = loops_of(case, names)
    print(func)
    lowered = lowering_pipeline(pass_config(case.config), case.simple_mode)(func)
    print(IRModule({"main": lowered}))


@functools.cache
def targets_here():
    """Targets whose code runs on this machine, the host first."""
    known = ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"]
    return [target for target in known if as_target(target).runs_here]
