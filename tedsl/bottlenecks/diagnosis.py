"""why_slow: a call is measured, its loops and its machine code are read, and rules say what it loses and why."""

from __future__ import annotations

from typing import Any

from tedsl.bottlenecks.causes import Cause, Machinery, causes_of
from tedsl.bottlenecks.clock import stage_times
from tedsl.bottlenecks.program import program_of
from tedsl.bottlenecks.report import Report
from tedsl.bottlenecks.sites import nests_of, sites_of
from tedsl.bottlenecks.stages import stages_of
from tedsl.errors import entry
from tedsl.graph.network.limits import current_limits
from tedsl.runtime.parallel import get_num_threads

_REPEAT, _MILLISECONDS = 3, 5  # repetitions of a measurement, and how long each is at least


@entry
def why_slow(kernel: Any, *arrays: Any) -> Report:
    """Why a call of `kernel`, a module of `build`, takes the time that it takes, and which directives would change that.

    arrays: the arguments of a call, which is made some times: results are written. Returns a Report; its text begins with what
    loses most. Times are measured, bytes by level and losses estimated; what machine code has is read on x86-64.
    Raises ArgumentTypeError for what is not a module, ArgumentError for one that is not machine code of this machine,
    ModuleError where its loops are not known (of a module from a file), and what a call raises.
    """
    program = program_of(kernel, arrays)
    timed = kernel.time_evaluator(kernel.entry_name, number=1, repeat=_REPEAT, min_repeat_ms=_MILLISECONDS)
    seconds = timed(*arrays).min
    limits = current_limits(program.target)
    nests = nests_of(sites_of(program.func.body, program.known), program.target.machine.line)
    stages = stages_of(program, nests, stage_times(program, seconds), seconds, limits) if nests else []
    here = Machinery(program.target.machine, limits, get_num_threads(), program.target.vector_bits)
    causes: list[Cause] = [cause for stage in stages for cause in causes_of(stage, here)]
    return Report(kernel.entry_name, seconds, tuple(sorted(causes, key=lambda cause: -cause.seconds)), tuple(stages),
                  get_num_threads())
