"""tedsl.trace: the loops after each directive and after each pass, as differences in a terminal or on a page.

    t = tedsl.trace(s, [A, B, C])
    t.show()                    # what each step changed, in colour on a terminal
    t.save("trace.html")        # the same side by side, one file

A step is lowered when it is looked at, so that a trace costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from tedsl.display.difference import rows
from tedsl.display.markup import Markup
from tedsl.display.notebook import in_notebook, show_in_notebook
from tedsl.display.page import Panel, document, folded_panels, fragment, panel_markup
from tedsl.display.terminal import output, painted, unified, wants_colour
from tedsl.errors import ArgumentTypeError, TedslError, type_in_words
from tedsl.ir.func import PrimFunc
from tedsl.lower.lower import lower_schedule
from tedsl.passes.context import current_options
from tedsl.passes.default import device_pipeline, kernel_pipeline, lowering_pipeline, target_pipeline
from tedsl.passes.device.split_kernels import split_kernels
from tedsl.passes.simplify import simplify
from tedsl.record import record
from tedsl.schedule.causes import blaming
from tedsl.schedule.handles import Schedule
from tedsl.schedule.picture import picture
from tedsl.schedule.state import ScheduleState
from tedsl.target.current import as_target

MOST_DIRECTIVES = 100  # shown one by one; those before them are one step
MOST_STAGES = 2000  # lowered for them, all steps together: of a schedule of many stages fewer steps are shown
MOST_LINES = 1000  # of the loops of a step
SPLIT = "split_kernels"
DIRECTIVES, PASSES, MACHINE, KERNELS, REPORTS = "directives", "passes", "machine passes", "passes on kernels", "simulated"


def trace(sch: Schedule, args: Sequence[Any], name: str = "main", binds: Mapping[Any, Any] | None = None,
          target: Any = None, reports: Sequence[Any] = ()) -> Trace:
    """The trace of `sch` on its way to machine code: one step for each directive of its journal and each pass of `build`.

    Parameters as of tedsl.build; options come from the current PassContext. Later directives do not change the trace.
    reports: of launches of its kernels, by `tedsl.simulate.report()`, to be shown behind the steps.
    """
    if not isinstance(sch, Schedule):
        raise ArgumentTypeError(f"trace takes a schedule, not {type(sch).__name__}", hint="tedsl.trace(s, [A, B])")
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise ArgumentTypeError(f"args is a list of tensors, variables and buffers, not {args!r}", hint="write [A, B]")
    if not isinstance(reports, (list, tuple)) or not all(callable(getattr(one, "listing", None)) for one in reports):
        raise ArgumentTypeError(f"reports are those of the simulator, not {type_in_words(reports)}",
                                hint="trace(s, [A, B], target=\"cuda\", reports=tedsl.simulate.report())")
    return Trace(sch, list(args), name, binds, target, tuple(reports))


@record
class Loops:
    """The loops after a step, as lines and as a function, or the reason why there are none."""

    lines: tuple[str, ...]
    problem: str = ""
    program: PrimFunc | None = None


class Step:
    """One directive or pass of a trace. Its `loops` are computed at the first access."""

    def __init__(self, trace: Trace, group: str, title: str, number: int, before: Step | None, *, short: str = "",
                 note: str = "") -> None:
        self._trace, self.group, self.title, self.number, self.before = trace, group, title, number, before
        self.short, self.note = short, note

    @cached_property
    def loops(self) -> Loops:
        if self.group == DIRECTIVES:
            return self._trace._after_directives(self.number)
        if self.group == REPORTS:
            report = self._trace.reports[self.number]
            return Loops((*str(report).splitlines(), "", *report.listing().splitlines()))
        return self._trace._after_passes[self.number]

    @property
    def loops_before(self) -> Loops:
        """The loops of the nearest earlier step that has some."""
        step = self.before
        while step is not None and step.loops.problem:
            step = step.before
        return Loops(()) if step is None else step.loops

    @property
    def lines_before(self) -> tuple[str, ...]:
        return self.loops_before.lines

    @property
    def unchanged(self) -> str:
        """The text shown if the lines are the same as before."""
        return "No change." if self.loops_before.program is self.loops.program else "A change that this notation does not show."

    def panel(self) -> Panel:
        problem = self.loops.problem
        before = self.lines_before
        after = before if problem else self.loops.lines
        return Panel(self.group, self.title, before, after, self.note, problem, self.short, self.unchanged)

    def __str__(self) -> str:
        return "\n".join(self.text())

    def __repr__(self) -> str:
        return f"<step {self.title!r} of a trace; print it>"

    def _repr_html_(self) -> str:
        return fragment(self.title, panel_markup(self.panel()))

    def text(self) -> Iterator[str]:
        """The title and the difference to the loops before, line by line."""
        yield f"== {self.title}"
        if self.loops.problem:
            yield from (f"  {line}" for line in self.loops.problem.splitlines())
            return
        before = self.lines_before
        if before == self.loops.lines:
            yield f"  ({self.unchanged[0].lower()}{self.unchanged[1:-1]})"
        elif not before:
            yield from (f"  {line}" for line in self.loops.lines)
        else:
            yield from unified(rows(before, self.loops.lines, context=2))


class Trace:
    """The steps of a schedule on its way to machine code: `steps`, `print(trace)`, `show()`, `html()`, `save(path)`."""

    def __init__(self, sch: Schedule, args: list[Any], name: str, binds: Mapping[Any, Any] | None, target: Any,
                 reports: tuple[Any, ...] = ()) -> None:
        self._state: ScheduleState = sch.state.copy()
        self._args, self._name, self._binds = args, name, binds
        self._target, self._config = as_target(target), current_options()
        self._lowering = lowering_pipeline(self._config, accesses=self._config.accesses)
        self._on_device = bool(self._target.kind.device_backend)
        self._machine = (device_pipeline if self._on_device else target_pipeline)(self._target, self._config)
        self._kernels = kernel_pipeline(self._target, self._config)
        self.reports = reports
        self.title = f"{', '.join(op.name for op in self._state.outputs)}: from formulas to loops for {self._target.kind}"
        self.steps: tuple[Step, ...] = tuple(self._steps())

    def _steps(self) -> Iterator[Step]:
        directives = list(self._state.recorder.directives)
        shown = min(MOST_DIRECTIVES, max(MOST_STAGES // len(self._state.stages), 5))
        first = max(len(directives) - shown, 0)
        title = f"the schedule after its first {first} directives" if first else "the schedule without directives"
        note = f"Only the last {shown} of {len(directives)} directives are shown one by one." if first else ""
        last = Step(self, DIRECTIVES, title, first, None, short="at first", note=note)
        yield last
        for number in range(first + 1, len(directives) + 1):
            said = directives[number - 1]
            last = Step(self, DIRECTIVES, f"{number}. {said.origin}", number, last, short=f"{number}. {said.stage} {said.name}")
            yield last
        for number, name in enumerate((*self._lowering.names, *self._machine.names)):
            last = Step(self, PASSES if number < len(self._lowering.passes) else MACHINE, name, number, last)
            yield last
        number = len(self._lowering.passes) + len(self._machine.passes)
        for name in (SPLIT, *self._kernels.names) if self._on_device else ():
            last, number = Step(self, KERNELS, name, number, last), number + 1
            yield last
        for number, report in enumerate(self.reports):
            yield Step(self, REPORTS, f"{number + 1}. {report.kernel} on sim({report.device})", number, None)

    # --- what the steps are made of ---

    def _put_back(self, number: int) -> None:
        """Restores the schedule to its state after `number` directives; after all of them if -1."""
        self._state.recorder.history.return_to(self._state, number)

    def _after_directives(self, number: int) -> Loops:
        """The loops after the first `number` directives, before any pass, with simplified indices."""
        self._put_back(number)
        try:
            return _lines(simplify(self._lowered()))
        except TedslError as error:
            return Loops((), f"Not to be lowered to loops as it stands here: {error}")

    @cached_property
    def _after_passes(self) -> list[Loops]:
        """The loops after each pass of build."""
        steps: list[Loops] = []

        def seen(name: str, func: PrimFunc) -> None:
            """Most passes leave a function as it is: its text is that of the step before."""
            steps.append(steps[-1] if steps and steps[-1].program is func else _lines(func))

        self._put_back(-1)
        try:
            with blaming(self._state):
                func = (self._lowering + self._machine)(self._lowered(), seen)
                steps += self._after_split(func) if self._on_device else []
        except TedslError as error:
            steps.append(Loops((), str(error)))
        wanted = len(self._lowering.passes) + len(self._machine.passes)
        wanted += 1 + len(self._kernels.passes) if self._on_device else 0
        return steps + [Loops((), "Not reached.")] * (wanted - len(steps))

    def _after_split(self, func: PrimFunc) -> Iterator[Loops]:
        """The host function and the kernels of a function for a device, and the kernels after each pass on them."""
        split = split_kernels(func, self._target)
        yield _lines(split.host, *split.kernels)
        for after in zip(*(self._passed(kernel) for kernel in split.kernels)):
            yield _lines(*after)

    def _passed(self, kernel: PrimFunc) -> list[PrimFunc]:
        """The kernel after each pass on kernels."""
        after: list[PrimFunc] = []
        self._kernels(kernel, lambda name, func: after.append(func))
        return after

    def _lowered(self) -> PrimFunc:
        with blaming(self._state):
            return lower_schedule(Schedule(self._state), self._args, self._name, self._binds, to_run=False,
                                  accesses=self._config.accesses)

    # --- how it is shown ---

    def __str__(self) -> str:
        return "\n".join([self.title, *(line for step in self.steps for line in step.text())])

    def __repr__(self) -> str:
        return f"<trace of {len(self.steps)} steps; print it, or show(), save('trace.html')>"

    def show(self, file: TextIO | None = None, colour: bool | None = None) -> None:
        """Print what each step changed, in colour on a terminal unless `colour` says otherwise; in a notebook, display it."""
        if file is None and colour is None and in_notebook():
            show_in_notebook(self)
            return
        out = output(file, hint="trace.save(path) writes the page")
        coloured = wants_colour(out) if colour is None else colour
        print(self.title, file=out)
        for step in self.steps:
            for line in step.text():
                print(painted(line, coloured), file=out)

    def html(self) -> str:
        """One page with the graph of the stages and the loops of each step side by side. It has no external resources."""
        note = f"{self._name}: what each directive and each pass changed. Lines that went are marked −, lines that came +."
        return document(self.title, self._picture(), [step.panel() for step in self.steps], [note])

    def save(self, path: str | Path) -> None:
        """Write `html()` to a file."""
        if not isinstance(path, (str, Path)):
            raise ArgumentTypeError(f"save takes the path of a file, got {path!r}", hint='trace.save("trace.html")')
        Path(path).write_text(self.html(), encoding="utf-8")

    def _picture(self) -> Markup:
        self._put_back(-1)
        return picture(self._state)

    def _repr_html_(self) -> str:
        return fragment(self.title, self._picture(), folded_panels([step.panel() for step in self.steps]))


def _lines(*funcs: PrimFunc) -> Loops:
    lines = "\n\n".join(func.readable() for func in funcs).splitlines()
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} more lines, which are left out here"]
    return Loops(tuple(lines), program=funcs[0])
