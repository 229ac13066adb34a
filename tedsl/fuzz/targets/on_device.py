"""python -m tedsl fuzz --target opencl: programs as kernels of a device.

What a schedule binds runs on its threads. What it binds to none becomes kernels of one thread, so that every program runs on
the device as a whole; loops around launches stay on the host, with memory that several kernels use.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tedsl.codegen.device import compiled_for_device
from tedsl.errors import DeviceError, LoweringError
from tedsl.fuzz.applied import scheduled
from tedsl.fuzz.case import Case
from tedsl.fuzz.check import (
    Expected,
    Refused,
    Run,
    check_dtypes,
    expected_arrays,
    iterations,
    loops_of,
    lowered_by,
    same_bits,
)
from tedsl.fuzz.directives.table import BOUND, DIRECTIVES
from tedsl.fuzz.reduce import smallest
from tedsl.fuzz.report import Report
from tedsl.fuzz.run import GROUP, PATIENCE, Group, Outcome, apart, outcome_of_step, run_many
from tedsl.ir import build
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Call, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.ops import ALLREDUCE
from tedsl.ir.stmt import LAUNCH, Allocate, AssertStmt, AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.context import pass_config
from tedsl.passes.default import lowering_pipeline
from tedsl.passes.facts.threads import has_launch, launched, scope_of
from tedsl.passes.machine.choose_fma import choose_fma
from tedsl.runtime.array import array as device_array
from tedsl.runtime.devices.device import device
from tedsl.target.current import as_target, host_target
from tedsl.target.target import Target

MANY = 200_000  # iterations that one thread may take


def run_on_device(seeds: Iterable[int], target: Target, bound: bool = False, **options: Any) -> Report:
    """Runs the sequences `seeds` on device 0 of the kind of `target`. bound: only those whose schedules bind loops to threads.
    options: those of `run_many`.

    Raises DeviceError where there is no device.
    """
    why = _missing(target.kind.device_kind)
    if why:
        raise DeviceError(f"fuzz --target {target.kind}: {why}")
    return run_many(seeds, chunk=80, **options, step=lambda seed, report, group: check_seed(seed, target, report, group, bound))


def _missing(kind: str) -> str:
    """Returns why there is no device 0 of `kind`, as a process of its own finds it: a device that was opened does not survive a
    fork.
    """
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=lambda: queue.put(_why(kind)))
    process.start()
    process.join()
    said: str = queue.get() if not queue.empty() else "the driver crashed"
    return said


def _why(kind: str) -> str:
    return "" if device(kind, 0).exist else f"there is no {kind}(0)"


def check_seed(seed: int, target: Target, report: Report, group: Group | None, bound: bool = False) -> Group:
    """Draws and checks sequence number `seed`; returns the group, for the next one. bound: with more binds, and only
    if its schedule has one.
    """
    if group is None or group.number != seed // GROUP:
        group = Group(seed // GROUP)
    case, scheduler = group.sequence(seed, BOUND if bound else DIRECTIVES)
    if bound and not case.counts["bound"]:
        return group
    case.target = str(target)
    report.counts["sequences"] += 1
    report.drawn(case, scheduler)
    report.outcome(seed, case, outcome_of_step(lambda: check_on_device(case, scheduler.names, group.expected, target)))
    return group


def case_on_device(seed: int, target: Target, bound: bool = False) -> Case:
    """Sequence number `seed` for a device. bound: with more binds."""
    case, _ = Group(seed // GROUP).sequence(seed, BOUND if bound else DIRECTIVES)
    case.target = str(target)
    return case


def outcome_on_device(case: Case, patience: float = PATIENCE) -> Outcome | None:
    """What `check` says of the case, in a process of its own; None if all ways agree."""
    return apart(lambda: outcome_of_step(lambda: check(case)), patience)


def reduced_on_device(case: Case) -> Case:
    """The smallest case that fails on the device as `case` does; the case itself if it does not fail."""
    found = outcome_on_device(case)
    if found is None or found[0] == "refused":
        return case
    return smallest(case, lambda smaller: (outcome_on_device(smaller, 10.0) or ("",))[0] == found[0])


def check(case: Case) -> None:
    """Runs a case on device 0 of the kind of its target; raises as `check_on_device` does."""
    check_on_device(case, scheduled(case), expected_arrays(case), as_target(case.target))


def check_on_device(case: Case, names: Mapping[str, Any], expected: Expected, target: Target) -> None:
    """Raises Disagreement where the outputs differ from the reference, or, of exact programs, from the interpreter; Refused for
    what no device can do.
    """
    check_dtypes(case, names, expected)
    options = pass_config(case.config)
    lowered = lowered_by(lowering_pipeline(options, case.simple_mode), loops_of(case, names))
    lowered = lowered.with_body(in_kernels(lowered.body))
    verify(lowered, flat=True)
    if iterations(lowered.body, case.sizes) > MANY:
        raise Refused("more iterations than one thread should take")
    try:
        module = compiled_for_device([lowered], target, host_target(), options)
    except LoweringError as error:  # memory of threads that a program uses outside of its launches
        raise Refused(str(error)) from error
    outcome, place = Run(case, expected), device(target.kind.device_kind, 0)
    given = [device_array(np.array(a), place) if isinstance(a, np.ndarray) else a for a in outcome.arguments]
    module(*given)
    for here, there in zip(outcome.arguments, given):
        if isinstance(here, np.ndarray):
            here[...] = there.numpy()
    outcome.compare(str(target.kind), expected)
    if case.exact and not (case.tolerance and _adds_across_threads(lowered)):
        same_bits(case, choose_fma(lowered) if target.has_fma else lowered, outcome, expected, str(target.kind))


def _adds_across_threads(func: PrimFunc) -> bool:
    """Whether threads reduce together, in an order of their own: what is rounded differs in last bits from the loops."""
    return any(isinstance(node, Call) and node.op is ALLREDUCE for node in post_order(func.body))


def in_kernels(stmt: Stmt) -> Stmt:
    """Returns `stmt` with what stands outside of its launches as kernels of one thread."""
    if launched(stmt) is not None:
        return stmt
    if isinstance(stmt, SeqStmt):
        return seq(*[in_kernels(part) for part in stmt.seq])
    if has_launch(stmt) or _needs_the_host(stmt):
        if isinstance(stmt, IfThenElse):
            other = None if stmt.else_case is None else in_kernels(stmt.else_case)
            return stmt.replace(then_case=in_kernels(stmt.then_case), else_case=other)
        if isinstance(stmt, (For, LetStmt, AttrStmt, AssertStmt, Allocate)):
            return stmt.replace(body=in_kernels(stmt.body))
    axis = IterVar(None, Var("threadIdx.x", INT32), IterType.THREAD_INDEX, "threadIdx.x")
    return AttrStmt(axis, LAUNCH, build.const(1, "int32"), stmt)


def _needs_the_host(stmt: Stmt) -> bool:
    """Tells whether `stmt` holds what no kernel has: an assertion, or memory in which several kernels meet."""
    return any(isinstance(node, AssertStmt) or (isinstance(node, Allocate) and _is_global(node)) for node in post_order(stmt))


def _is_global(s: Allocate) -> bool:
    return scope_of(s.buffer_var.type_annotation) == "global"
