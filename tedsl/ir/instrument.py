"""Instruments of passes: objects that watch every pass inside `with PassContext(instruments=[...])`.

    @tedsl.ir.instrument.pass_instrument
    class Count:
        def run_before_pass(self, mod, info): print(info.name)

`mod` is a module of the function being compiled; `info` has `name`, `opt_level` and `required`.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass, field
from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir.func import IRModule


class PassInstrument:
    """Base class of instruments, whose methods do nothing: subclasses override those that they need."""

    @property
    def name(self) -> str:
        return type(self).__name__

    def enter_pass_ctx(self) -> None:
        """Called at the beginning of the `with` block."""

    def exit_pass_ctx(self) -> None:
        """Called at the end of the `with` block."""

    def should_run(self, mod: IRModule, info: Any) -> bool:
        """Whether a pass runs at all; one that is required, or that correct code needs, runs anyway."""
        return True

    def run_before_pass(self, mod: IRModule, info: Any) -> None:
        """Called before a pass with its input module."""

    def run_after_pass(self, mod: IRModule, info: Any) -> None:
        """Called after a pass with its output module."""


# The methods of an instrument, each with its arguments beside self.
METHODS = {"enter_pass_ctx": (), "exit_pass_ctx": (), "should_run": ("mod", "info"), "run_before_pass": ("mod", "info"),
           "run_after_pass": ("mod", "info")}


def pass_instrument(pi_cls: Any = None) -> Any:
    """Make an instrument of a class that has some of its methods; a decorator, with or without parentheses."""
    if pi_cls is None:
        return pass_instrument
    if not isinstance(pi_cls, type):
        raise ArgumentTypeError(f"pass_instrument decorates a class, not {pi_cls!r}", hint="@pass_instrument above a class")
    if not any(hasattr(pi_cls, name) for name in METHODS):
        raise ArgumentTypeError(f"the instrument {pi_cls.__name__} has none of the methods {', '.join(METHODS)}",
                                hint="write for example: def run_after_pass(self, mod, info): print(mod)")
    if issubclass(pi_cls, PassInstrument):
        return pi_cls
    return type(pi_cls.__name__, (pi_cls, PassInstrument), {"__doc__": pi_cls.__doc__, "__module__": pi_cls.__module__})


def refuse_misfit(instrument: PassInstrument) -> None:
    """Raises ArgumentTypeError for a method of `instrument` that cannot be called with the arguments that it gets."""
    for name, arguments in METHODS.items():
        method = getattr(instrument, name)
        try:
            inspect.signature(method).bind(*arguments)
        except ValueError:
            pass  # a builtin without a signature
        except TypeError:
            raise ArgumentTypeError(f"the method {name} of the instrument {type(instrument).__name__} does not take "
                                    f"{len(arguments)} arguments",
                                    hint=f"write def {name}({', '.join(('self', *arguments))})") from None


@dataclass
class _Timed:
    """The time of one run of a pass, in seconds, and the passes that ran inside it."""

    name: str
    began: float
    seconds: float = 0.0
    inner: list[_Timed] = field(default_factory=list)

    def lines(self, depth: int, whole: float) -> list[str]:
        own = self.seconds - sum(one.seconds for one in self.inner)
        share = 100 * self.seconds / whole if whole else 0.0
        line = f"{'    ' * depth}{self.name}: {self.seconds * 1e6:.0f}us [{own * 1e6:.0f}us] ({share:.2f}%)"
        return [line, *(inner for one in self.inner for inner in one.lines(depth + 1, whole))]


class PassTimingInstrument(PassInstrument):
    """Measures each pass; `render()` inside the `with` block gives a line for each: its time, [without the passes inside of
    it], (its share of the whole)."""

    def __init__(self) -> None:
        self._runs: list[_Timed] = []
        self._open: list[_Timed] = []

    def enter_pass_ctx(self) -> None:
        self._runs.clear()
        self._open.clear()

    def run_before_pass(self, mod: IRModule, info: Any) -> None:
        self._open.append(_Timed(info.name, time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: Any) -> None:
        run = self._open.pop()
        run.seconds = time.perf_counter() - run.began
        (self._open[-1].inner if self._open else self._runs).append(run)

    def render(self) -> str:
        """A line for each pass, in the order in which they ran."""
        whole = sum(run.seconds for run in self._runs)
        lines = [line for run in self._runs for line in run.lines(0, whole)]
        return "\n".join([*lines, f"Total: {whole * 1e6:.0f}us"]) + "\n"


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, mod: IRModule, info: Any) -> None:
        print(f"Before Running Pass: {info.name}", mod, sep="\n")


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, mod: IRModule, info: Any) -> None:
        print(f"After Running Pass: {info.name}", mod, sep="\n")
