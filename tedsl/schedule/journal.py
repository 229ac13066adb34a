"""The journal of a schedule: every directive that was applied, as a frozen record with its text in Python.

Run over a fresh schedule `s` of the same operations, the texts build the same schedule. They name tensors by their own
names where these are unique Python names, else by position (`s.stages[2]`), and loops by the names given here.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tedsl.ir import build
from tedsl.ir.expr import IntImm, StringImm
from tedsl.ir.iters import IterVar
from tedsl.lang.tensor import Tensor

if TYPE_CHECKING:
    from tedsl.schedule.state import StageState

RESERVED = frozenset(("s", "te"))


@dataclass(frozen=True)
class Directive:
    """One directive that was applied: its name, the name of its stage ("" for the schedule), its text as Python."""

    name: str
    stage: str
    text: str

    def __str__(self) -> str:
        return self.text


class Journal(tuple[Directive, ...]):
    """The directives of a schedule in order; printed, a Python program over `s`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(d.text for d in self)


@dataclass(eq=False)
class Recorder:
    """Writes the journal: gives names to what directives make, and writes arguments as Python."""

    directives: list[Directive] = field(default_factory=list)
    names: dict[Any, str] = field(default_factory=dict)  # IterVar or Tensor → its Python name

    def copy(self) -> Recorder:
        return Recorder(list(self.directives), dict(self.names))

    def record(self, name: str, call: str, stage: StageState, results: Sequence[Any] = (), *,
               on_schedule: bool = False) -> None:
        """Adds the directive `call`, which made `results` (loops or tensors)."""
        made = [self.bind(r, stage) for r in results]
        text = f"{', '.join(made)} = {call}" if made else call
        self.directives.append(Directive(name, "" if on_schedule else stage.name, text))

    def bind(self, made: Any, stage: StageState) -> str:
        """A new Python name for a loop or tensor that a directive made."""
        if made not in self.names:
            stem = re.sub(r"\W", "_", made.name)
            stem = f"_{stem}" if not stem or stem[0].isdigit() or keyword.iskeyword(stem) else stem
            taken = set(self.names.values()) | RESERVED | {s.name for s in stage.schedule.stages}
            choices = (stem if not n else f"{stem}_{n}" for n in range(len(taken) + 1))
            self.names[made] = next(name for name in choices if name not in taken)
        return self.names[made]

    # --- arguments as Python ---

    def stage(self, stage: StageState) -> str:
        """`s[C]`, or `s.stages[2]` where no name tells the stage."""
        first = stage.origin_op.output(0)
        name = self.names.get(first) or self._own_name(stage)
        return f"s[{name}]" if name else f"s.stages[{stage.schedule.position(stage)}]"

    def _own_name(self, stage: StageState) -> str | None:
        name = stage.name
        usable = name.isidentifier() and not keyword.iskeyword(name) and name not in RESERVED \
            and name not in self.names.values() and stage.origin_op.num_outputs == 1 \
            and sum(s.name == name for s in stage.schedule.stages) == 1
        return name if usable else None

    def tensor(self, tensor: Tensor, stage: StageState) -> str:
        """The Python of a tensor whose stage is `stage`."""
        name = self.names.get(tensor) or self._own_name(stage)
        return name or f"s.stages[{stage.schedule.position(stage)}].op.output({tensor.value_index})"

    def axis(self, loop: IterVar, stage: StageState) -> str:
        """The Python of a loop of `stage`."""
        if loop in self.names:
            return self.names[loop]
        for kind in ("axis", "reduce_axis"):
            for at, one in enumerate(getattr(stage.op, kind, ())):
                if one is loop:
                    return f"{self.stage(stage)}.op.{kind}[{at}]"
        return loop.name

    def value(self, value: Any) -> str:
        """The Python of a number, a string, a thread axis or an expression."""
        if isinstance(value, IntImm):
            return str(value.value)
        if isinstance(value, StringImm):
            return repr(value.value)
        if isinstance(value, IterVar):
            known = [build.as_int(end) for end in (value.dom.min, value.dom.extent)] if value.dom is not None else []
            dom = f"({known[0]}, {known[0] + known[1]}), " if known and known[0] is not None and known[1] is not None else ""
            return f"te.thread_axis({dom}{value.thread_tag!r})"
        return repr(value)

    def operations(self, stages: Sequence[StageState]) -> str:
        """A list of stages as arguments: `[B, C]`."""
        return f"[{', '.join(self.operation(s) for s in stages)}]"

    def operation(self, stage: StageState) -> str:
        """The Python of the operation of a stage."""
        name = self.names.get(stage.origin_op.output(0)) or self._own_name(stage)
        return name or f"s.stages[{stage.schedule.position(stage)}].op"
