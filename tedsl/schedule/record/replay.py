"""Replay: the directives of a journal applied to another schedule, all or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tedsl.errors import ArgumentError, ArgumentTypeError, ScheduleError, TedslError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import thread_axis_of
from tedsl.schedule.journal import Journal
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.evaluate import Evaluator
from tedsl.schedule.record.grammar import refused
from tedsl.schedule.record.symbols import symbols_of
from tedsl.schedule.stage import Specialized
from tedsl.schedule.state import describe

if TYPE_CHECKING:
    from tedsl.schedule.handles import Schedule


def replay(schedule: Schedule, journal: Journal) -> None:
    """Applies `journal` to `schedule`. If a directive is refused, those before it are taken back, and the error names it.

    Stages and sizes are found by name, axes by number: see `Schedule.replay`.
    """
    if not isinstance(journal, Journal):
        raise ArgumentTypeError(f"replay takes a journal, not {type(journal).__name__}",
                                hint="s.replay(other.journal), or te.Journal.from_json(text)")
    recorder = schedule.state.recorder
    player = _Player(schedule, journal)
    before = len(recorder.directives)
    for number, directive in enumerate(journal, 1):
        recorder.line = directive.where
        try:
            player.apply(directive)
        except BaseException as error:  # whatever it is, Ctrl-C too: all or none
            recorder.take_back(schedule.state, len(recorder.directives) - before)
            if isinstance(error, TedslError):
                raise _failed(error, number, directive) from error
            raise
        finally:
            recorder.line = None


def _failed(error: TedslError, number: int, directive: Directive) -> TedslError:
    asked = f"replay of directive {number}, {directive.origin}"
    if isinstance(error, ScheduleError):
        return ScheduleError(f"{asked},", error.stage, error.reason, loops=error.loops, hint=error.hint)
    return ArgumentError(f"{asked}: {error.problem}", hint=error.hint)


class _Player:
    """Resolves the names of a journal on one schedule."""

    def __init__(self, schedule: Schedule, journal: Journal) -> None:
        self.schedule, self.objects, self.threads = schedule, journal.objects, journal.threads
        self.made: dict[str, Any] = {}
        recorder, state = schedule.state.recorder, schedule.state
        handles: dict[Any, Any] = {group.state: group for group in schedule.groups}  # what users hold of these
        handles |= {one: Specialized(schedule, one) for one in state.with_versions() if one.version_of is not None}
        for thing, name in recorder.names.items():
            self.made[name] = recorder.objects.get(name, handles.get(thing, thing))

    def apply(self, directive: Directive) -> None:
        value = Evaluator(directive, self.schedule, self.lookup, self.made.__setitem__)
        owner = value(directive.on)
        if directive.name not in getattr(type(owner), "_directives", ()):
            raise refused(directive.text, f"{directive.name} is not a directive of {describe(owner)}")
        arguments = [value(term) for term in directive.arguments]
        named = {name: value(term) for name, term in directive.named}
        self._name(getattr(owner, directive.name)(*arguments, **named), directive)

    def _name(self, results: Any, directive: Directive) -> None:
        """Binds the names that `directive` gives its results to the `results` of applying it here."""
        names = directive.results
        values = list(results) if isinstance(results, (list, tuple)) else [results]
        if names and len(names) != len(values):
            raise refused(directive.text, f"it makes {len(values)} and names {len(names)}")
        self.made.update(zip(names, values))

    def lookup(self, name: str) -> Any:
        """The object called `name`: the result of a directive, a stage, a variable of the shapes, or an object that the journal
        keeps.
        """
        if name in self.made:
            return self.made[name]
        stages = [stage for stage in self.schedule.state.stages if stage.name == name]
        if len(stages) == 1:
            return stages[0].origin_op.output(0)
        kept = self.objects.get(name)
        if isinstance(kept, Expr):
            return self._of_here(kept)
        symbols = [var for var in self._symbols() if var.name == name]
        if len(symbols) == 1:
            return symbols[0]
        if name in self.objects:
            return kept
        if symbols:
            raise _several(name)
        names = ", ".join(stage.name for stage in self.schedule.state.stages)
        raise ArgumentError(f"the journal refers to {name}, and {'several stages have' if stages else 'nothing here has'} "
                            "that name", hint=f"replay it on a schedule of the same operations; the stages here: {names}")

    def _of_here(self, kept: Expr) -> Expr:
        """`kept`, an expression from the journal, over the variables of this schedule.

        Variables of shapes are replaced by those of the same name, and variables of thread axes that the journal creates by the
        new ones.
        """
        known = self._symbols()
        values: dict[Var, Expr] = {}
        for var in variables(kept):
            axis = self.made.get(self.threads.get(var, ""))
            if isinstance(axis, IterVar):
                values[var] = axis.var
            same = [one for one in known if one.name == var.name]
            if var in known or thread_axis_of(var) is not None or not same:
                continue
            if len(same) > 1:
                raise _several(var.name)
            values[var] = same[0] if same[0].dtype is var.dtype or kept is var else build.cast(var.dtype, same[0])
        return substitute(kept, values) if values else kept

    def _symbols(self) -> list[Var]:
        return symbols_of(stage.origin_op for stage in self.schedule.state.stages)


def _several(name: str) -> ArgumentError:
    return ArgumentError(f"the journal refers to {name}, and several variables here have that name",
                         hint="give the variables of the program different names: te.size_var(...)")
