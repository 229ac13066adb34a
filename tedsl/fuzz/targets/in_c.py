"""python -m tedsl fuzz --target c: programs in C, many in one file, for a compiler takes as long for one as for fifty.

Each is compared with the reference, and to the bits with the interpreter where the program is exact; with `-math=own` those
that are not exact, with machine code of LLVM for the same processor.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from tedsl.codegen.backend import backend_for
from tedsl.codegen.c.backend import module_of
from tedsl.codegen.c.running.compiler import compiler_for
from tedsl.codegen.kernels.kernel import Kernel, make_kernel
from tedsl.errors import ArgumentError
from tedsl.fuzz.case import Case
from tedsl.fuzz.check import LARGE, Expected, Run, check_dtypes, iterations, loops_of, lowered_by, same_bits, same_outputs
from tedsl.fuzz.report import Report
from tedsl.fuzz.run import GROUP, Group, Outcome, outcome_of_step, run_many
from tedsl.ir.func import PrimFunc
from tedsl.passes.context import pass_config
from tedsl.passes.default import lowering_pipeline
from tedsl.record import record
from tedsl.runtime.module import Module
from tedsl.target.current import as_target
from tedsl.target.target import Target

BATCH = 50  # programs in one file
_SAME = Target("llvm -mcpu=x86-64")  # a processor without fused multiply-adds, as a target c that names none


@record
class Compiled:
    """A program that was lowered for C, and its outputs by the reference."""

    seed: int
    case: Case
    expected: Expected
    lowered: PrimFunc
    kernel: Kernel


def run_in_c(seeds: Iterable[int], notation: str, **options: Any) -> Report:
    """Runs the sequences `seeds` for a target of kind c. options: those of `run_many`.

    Raises ArgumentError for a target of another kind, TedslError where its compiler is not here.
    """
    target = as_target(notation)
    if target.kind.name != "c":
        raise ArgumentError(f"fuzz --target {notation!r}: programs are compiled in batches for targets of kind c",
                            hint='--target "c -cc=gcc"; without --target, for the processor of this machine')
    compiler_for(target)
    return run_many(_batches(seeds), chunk=8, **options,
                    step=lambda first, report, _: check_batch(range(first, first + BATCH), target, report))


def _batches(seeds: Iterable[int]) -> Iterator[int]:
    """Gives the first of every BATCH seeds, which count up by one."""
    return itertools.islice(iter(seeds), 0, None, BATCH)


def check_batch(seeds: range, target: Target, report: Report) -> None:
    """Draws the sequences `seeds`, compiles them as one module of C, and checks each."""
    waiting = [draw_batch(seeds, target, report)]
    while waiting:
        compiled = waiting.pop()
        module = module_of([program.kernel for program in compiled], target, quick=True) if compiled else None
        if len(compiled) > 1 and module is not None and outcome_of_step(functools.partial(_link, module)) is not None:
            half = len(compiled) // 2  # the compiler refuses one of them: which?
            waiting += [compiled[half:], compiled[:half]]
            continue
        for program in compiled:
            report.outcome(program.seed, program.case, _checked(program, module, target))


def draw_batch(seeds: range, target: Target, report: Report) -> list[Compiled]:
    """Draws the sequences `seeds` and lowers them for `target`; returns those that are neither refused nor findings."""
    compiled: list[Compiled] = []
    group: Group | None = None
    for seed in seeds:
        report.counts["sequences"] += 1
        if group is None or group.number != seed // GROUP:
            group = Group(seed // GROUP)
        made: list[Any] = []
        outcome = outcome_of_step(functools.partial(_draw, made, group, seed))
        if outcome is None:
            case, scheduler = made[0]
            report.drawn(case, scheduler)
            outcome = outcome_of_step(functools.partial(_lower, compiled, seed, case, scheduler.names, group.expected, target))
        if outcome is not None:
            report.outcome(seed, made[0][0] if made else group.case, outcome)
    return compiled


def _draw(made: list[Any], group: Group, seed: int) -> None:
    made.append(group.sequence(seed))


def _link(module: Module) -> None:
    function: Any = module.entry_func
    function.link()


def _lower(compiled: list[Compiled], seed: int, case: Case, names: Any, expected: Expected, target: Target) -> None:
    """Adds the program, lowered for C, to `compiled`."""
    check_dtypes(case, names, expected)
    options = pass_config(case.config)
    lowered = lowered_by(lowering_pipeline(options, case.simple_mode, early_tails=True), loops_of(case, names))
    kernel = lowered_by(make_kernel, lowered.with_attr("global_symbol", f"f{seed}"), target, options)
    module_of([kernel], target)  # what cannot be written in C is refused here, for this program alone
    case.target = str(target)
    compiled.append(Compiled(seed, case, expected, lowered, kernel))


def _checked(program: Compiled, module: Any, target: Target) -> Outcome | None:
    def run() -> None:
        case, expected = program.case, program.expected
        outcome = Run(case, expected)
        module[f"f{program.seed}"](*outcome.arguments)
        outcome.compare("C", expected)
        if case.exact:
            if iterations(program.kernel.general.body, case.sizes) <= LARGE:
                same_bits(case, program.kernel.general, outcome, expected, "C")
        elif target.attrs.get("math") == "own":
            backend, machine = backend_for(_SAME), _SAME
            other = Run(case, expected)
            backend.compile([program.lowered], machine, pass_config(case.config), quick=True)(*other.arguments)
            same_outputs(case, outcome, other, "C and LLVM")

    return outcome_of_step(run)
