"""`te.hybrid.build`: a schedule as a hybrid script, to read, to save and to run as Python."""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Callable, Sequence
from functools import partial
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


class _Load:
    """`load` of the class, which makes a module, and of a module, which becomes the one that it loads, as in TVM."""

    def __get__(self, module: HybridModule | None, cls: type[HybridModule]) -> Callable[..., HybridModule]:
        return partial(_loaded, HybridModule() if module is None else module)


class HybridModule:
    """A hybrid script as text, `src`, and as a function of tensors or of arrays: that called `name`, else the last of the text.
    Without `src` it is empty, until `load`.

    load(path, name=None): reads the module that was saved at `path`. Loading executes the file as Python code.
    """

    load = _Load()

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        if src is not None:
            self._take(src, name)

    def _take(self, source: str, name: str | None) -> None:
        functions = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        name = self.name = name or (functions or ["hybrid_func"])[-1]
        self._source = source
        file = f"<hybrid module {next(_count)}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # so that the script can be read again
        scope: dict[str, Any] = {}
        exec(compile(source, file, "exec"), scope)
        if not callable(scope.get(name)):
            raise ArgumentError(f"the script defines no function {name}")
        self._function = scope[name]

    def __call__(self, *args: Any) -> Any:
        if not hasattr(self, "_function"):
            raise ArgumentError("this hybrid module is empty", hint="module.load(path)")
        return self._function(*args)

    def get_source(self) -> str:
        """The text of the script."""
        return self._source

    def save(self, path: str | Path) -> None:
        """Write the script into a file, which ends in .py."""
        Path(_python_file(path)).write_text(self._source)


def _loaded(module: HybridModule, path: str | Path, name: str | None = None) -> HybridModule:
    """Returns `module`, which now is what was saved at `path`."""
    module._take(Path(_python_file(path)).read_text(), name)
    return module


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
