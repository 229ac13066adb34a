"""`te.hybrid.build`: a schedule as a hybrid script, to read, to save and to run as Python."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import Var
from tedsl.ir.script import shown
from tedsl.lang.tensor import Tensor
from tedsl.lower.hybrid.source import hybrid_source
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import Schedule

_count = itertools.count()


class HybridModule:
    """A hybrid script as text, and as a function of tensors or of arrays."""

    def __init__(self, source: str, name: str = "hybrid_func") -> None:
        self.name = name
        self._source = source
        file = f"<hybrid module {next(_count)}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # so that the script can be read again
        scope: dict[str, Any] = {}
        exec(compile(source, file, "exec"), scope)
        if not callable(scope.get(name)):
            raise ArgumentError(f"the script defines no function {name}")
        self._function = scope[name]

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def get_source(self) -> str:
        """The text of the script."""
        return self._source

    def save(self, path: str | Path) -> None:
        """Write the script into a file, which ends in .py."""
        Path(_python_file(path)).write_text(self._source)

    @staticmethod
    def load(path: str | Path, name: str = "hybrid_func") -> HybridModule:
        """Returns the module that was saved at `path`. Loading executes the file as Python code."""
        return HybridModule(Path(_python_file(path)).read_text(), name)


def _python_file(path: str | Path) -> str:
    text = str(path)
    return text if text.endswith(".py") else text + ".py"


def build_hybrid(sch: Schedule, inputs: Sequence[Tensor | Var], outputs: Sequence[Tensor],
                 name: str = "hybrid_func") -> HybridModule:
    """The loops of `sch` as a hybrid script of `inputs` that returns `outputs`."""
    if not isinstance(sch, Schedule):
        raise ArgumentTypeError(f"hybrid.build takes a schedule first, not {type(sch).__name__}")
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentTypeError(f"hybrid.build: {name!r} cannot be the name of a Python function")
    for tensor in (*inputs, *outputs):
        if not isinstance(tensor, (Tensor, Var)):
            raise ArgumentTypeError(f"hybrid.build: the inputs and outputs are tensors, not {shown(tensor)}")
    func = lower_schedule(sch, [*inputs, *outputs], name)
    return HybridModule(hybrid_source(func, sum(isinstance(source, Tensor) for source in inputs), name), name)
