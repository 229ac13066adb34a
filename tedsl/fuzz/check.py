"""Runs a case in several ways and compares the outputs: loops before and after the passes, machine code, the reference."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tedsl.codegen.backend import backend_for
from tedsl.driver import build, schedule_to_module
from tedsl.errors import LoweringError, ScheduleError
from tedsl.fuzz.applied import scheduled
from tedsl.fuzz.case import MARGIN, Case, empty_result, laid_out
from tedsl.fuzz.reference import Reference
from tedsl.fuzz.values import Array, is_float
from tedsl.ir.evaluate import evaluate, run
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import For, IfThenElse, SeqStmt, Stmt
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import variables
from tedsl.passes.config import PassConfig
from tedsl.passes.context import pass_config
from tedsl.passes.default import lowering_pipeline, target_pipeline
from tedsl.target.current import as_target
from tedsl.target.target import Target

Expected = Mapping[str, Any]  # name of an output → its Tensor of the reference
SMALL = 500  # iterations: what the interpreter does in about two milliseconds
LARGE = 2_000_000  # iterations: seconds of the interpreter; splits of splits of a symbolic extent make many that do nothing


class Disagreement(AssertionError):
    """Raised if a way to run a program gives other outputs than the reference; `way` names it."""

    def __init__(self, way: str, detail: str) -> None:
        super().__init__(f"{way}: {detail}")
        self.way = way


class Refused(Exception):
    """Raised if lowering refuses the schedule for an expected reason."""


def expected_arrays(case: Case) -> Expected:
    """The outputs that the numpy reference computes: name to array."""
    reference = Reference(case.sizes, {name: data.values() for name, data in case.data.items()})
    names: dict[str, Any] = {"te": reference}
    for text in case.lines:
        exec(text, names)
    return {name: names[name] for name in case.outputs}


class _Resized(Reference):
    """A `te` that records the shapes of the inputs for other sizes."""

    def __init__(self, case: Case, sizes: dict[str, float]) -> None:
        super().__init__(sizes, {})
        self.data = dict(case.data)

    def placeholder(self, shape: Any, dtype: str = "float32", name: str = "placeholder") -> Any:
        if name in self.data:
            self.data[name] = replace(self.data[name], shape=tuple(int(d) for d in shape))
            self.arrays[name] = self.data[name].values()
        return super().placeholder(shape, dtype, name)


def resized(case: Case, sizes: dict[str, float]) -> tuple[Case, Expected]:
    """A copy of the case with other values of its variables, and its outputs by the reference."""
    reference = _Resized(case, sizes)
    names: dict[str, Any] = {"te": reference}
    for text in case.lines:
        exec(text, names)
    return replace(case, sizes=sizes, data=reference.data), {name: names[name] for name in case.outputs}


class Run:
    """The arrays of one run, in fresh memory with guard values around them."""

    def __init__(self, case: Case, expected: Expected) -> None:
        self.case = case
        self.arguments: list[Any] = []
        self.memory: list[tuple[str, Array]] = []
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

    def output(self, name: str) -> Array:
        found: Array = self.arguments[self.case.args.index(name)]
        return found

    def compare(self, way: str, expected: Expected) -> None:
        """Raise Disagreement unless the outputs equal the reference and no other memory was written."""
        self.check_memory(way)
        for name in self.case.outputs:
            compare(way, name, self.output(name), expected[name], self.case.tolerance.get(name, 0.0))

    def check_memory(self, way: str) -> None:
        """Raise Disagreement if an input or the memory around an array was written."""
        for name, memory in self.memory:
            if (memory[:MARGIN] != 0x5A).any() or (memory[-MARGIN:] != 0x5A).any():
                raise Disagreement(way, f"memory around {name} was written")
            if name in self.case.data:
                before = laid_out(self.case.data[name].values(), self.case.data[name].layout)[1]
                if not np.array_equal(before, memory):
                    raise Disagreement(way, f"the input {name} was written")


def compare(way: str, name: str, got: Array, expected: Any, tolerance: float) -> None:
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


# What lowering must not say of a schedule that was accepted: the formulas are right, the directives saw their stages.
FAULTS = re.compile(r"outside of|no argument gives|not among the arguments|in a circle|nothing reads it there"
                    r"|no such loop any more|cannot be proved to lie|find nothing there|is inlined and has no loops")


def lowered_by(step: Callable[..., Any], *args: Any) -> Any:
    """The result of `step()`; raises Refused if it fails with one of the expected reasons of lowering."""
    try:
        return step(*args)
    except (LoweringError, ScheduleError) as error:
        if FAULTS.search(error.problem):
            raise
        raise Refused(str(error)) from error


def loops_of(case: Case, names: Mapping[str, Any]) -> PrimFunc:
    """The loops of the case before the passes, as a PrimFunc."""
    func: PrimFunc = lowered_by(schedule_to_module, names["s"], [names[name] for name in case.args])["main"]
    return func


def interpreted(case: Case, func: PrimFunc, way: str, expected: Expected) -> None:
    outcome = Run(case, expected)
    run(func, outcome.arguments)
    outcome.compare(way, expected)


def check(case: Case, *, interpret: bool = True, compiled: bool = True, quick: bool = False,
          expected: Expected | None = None) -> None:
    """Raises Disagreement where a way to run `case` differs from the reference, Refused where lowering refuses it.

    interpret=False, and where there are more than LARGE iterations: machine code only; compiled=False: without it; quick: as
    check_quickly. expected: the outputs by the reference, if they are known.
    """
    expected = expected_arrays(case) if expected is None else expected
    names = scheduled(case)
    if quick:
        check_quickly(case, names, expected)
        return
    check_dtypes(case, names, expected)
    options = pass_config(case.config)
    func = loops_of(case, names)
    interpret = interpret and iterations(func.body, case.sizes) <= LARGE
    lowered = lowered_by(lowering_pipeline(options, case.simple_mode, early_tails=True), func)
    target = as_target(case.target)
    ready = None
    if interpret:
        ready = lowered_by(target_pipeline(target, options), lowered)  # first: it may refuse what only looks as if it worked
        for way, loops in (("the loops of the schedule", func), ("the loops after lower", lowered),
                           ("the loops for the machine", ready)):
            verify(loops, flat=loops is not func)
            interpreted(case, loops, way, expected)
    if compiled:
        machine_code(case, lowered, target, options, expected, ready)


def check_quickly(case: Case, names: Mapping[str, Any], expected: Expected) -> None:
    """Checks the loops before the passes if they have few iterations, and machine code at LLVM's lowest optimisation level."""
    check_dtypes(case, names, expected)
    options = pass_config(case.config)
    func = loops_of(case, names)
    verify(func, flat=False)
    lowered = lowered_by(lowering_pipeline(options, case.simple_mode, early_tails=True), func)
    verify(lowered, flat=True)
    target = as_target(case.target)
    module = lowered_by(functools.partial(backend_for(target).compile, quick=True), [lowered], target, options)
    if iterations(func.body, case.sizes) <= SMALL:
        interpreted(case, func, "the loops of the schedule", expected)
    outcome = Run(case, expected)
    module(*outcome.arguments)
    outcome.compare("machine code", expected)


def check_built(case: Case, *, checked: bool, expected: Expected | None = None) -> None:
    """Builds the case as users do and compares its outputs with the reference. checked: in checked mode."""
    expected = expected_arrays(case) if expected is None else expected
    names = scheduled(case)
    module = lowered_by(functools.partial(build, target=case.target, checked=checked), names["s"],
                        [names[name] for name in case.args])
    outcome = Run(case, expected)
    module(*outcome.arguments)
    outcome.compare("machine code in checked mode" if checked else "the built function", expected)


def check_dtypes(case: Case, names: Mapping[str, Any], expected: Expected) -> None:
    for name in case.outputs:
        if names[name].dtype != expected[name].dtype:
            raise Disagreement("dtypes", f"{name} is {names[name].dtype}, not {expected[name].dtype}")


def iterations(stmt: Stmt, sizes: Mapping[str, float], outer: int = 1) -> int:
    """An estimate of how often the innermost statements of `stmt` run; loops whose extent depends on others count as 8."""
    if isinstance(stmt, For):
        try:
            extent = int(evaluate(stmt.extent, {v: int(sizes[v.name]) for v in _sizes_in(stmt.extent, sizes)}))
        except Exception:  # an extent that follows from outer loops
            extent = 8
        return iterations(stmt.body, sizes, outer * max(extent, 0))
    parts = [child for child in stmt.child_nodes() if isinstance(child, Stmt)]
    if isinstance(stmt, (SeqStmt, IfThenElse)) or parts:
        return sum(iterations(part, sizes, outer) for part in parts)
    return outer


def _sizes_in(extent: Any, sizes: Mapping[str, float]) -> list[Any]:
    return [v for v in variables(extent) if v.name in sizes]


def machine_code(case: Case, lowered: PrimFunc, target: Target, options: PassConfig, expected: Expected,
                 ready: PrimFunc | None) -> None:
    """Compiles and compares with the reference, bit by bit with the interpreter, and for larger sizes too."""
    module = lowered_by(backend_for(target).compile, [lowered], target, options)
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


def same_bits(case: Case, ready: PrimFunc, outcome: Run, expected: Expected, way: str) -> None:
    interpreter = Run(case, expected)
    run(ready, interpreter.arguments)
    same_outputs(case, outcome, interpreter, f"{way}: machine code and the interpreter")


def same_outputs(case: Case, one: Run, other: Run, ways: str) -> None:
    """Raise Disagreement unless two runs have equal outputs to the bit; NaN equals NaN. ways: both, in words."""
    for name in case.outputs:
        a, b = one.output(name), other.output(name)
        same = (a == b) | ((a != a) & (b != b))
        if not same.all():
            raise Disagreement(ways, f"{name} differs in {(~same).sum()} elements")


def show(case: Case) -> None:
    """Prints the schedule and the loops of a case, for the script of a finding."""
    names = scheduled(case)
    print(names["s"])
    func = loops_of(case, names)
    print(func)
    lowered = lowering_pipeline(pass_config(case.config), case.simple_mode)(func)
    print(IRModule({"main": lowered}))


@functools.cache
def targets_here() -> list[str]:
    """Targets whose code runs on this machine, the host first."""
    known = ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"]
    return [target for target in known if as_target(target).runs_here]
