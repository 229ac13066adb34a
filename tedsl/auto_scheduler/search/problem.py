"""What is to be scheduled, for a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tedsl.auto_scheduler.sketch.default import Default
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.build import as_int
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.target.target import Target
from tedsl.tune import task_key


class Problem:
    """The tensors of a function, and the processor or device that runs it.

    args: placeholders and results, of constant shapes. key: of its records; "": that of the formulas.
    """

    def __init__(self, args: Sequence[Tensor], target: Target, key: str = "") -> None:
        self.args, self.target = list(args), target
        for arg in self.args:
            if not isinstance(arg, Tensor):
                raise ArgumentTypeError(f"auto_scheduler: the arguments of a function are tensors, not {type_in_words(arg)}",
                                        hint="return [A, B, C]: the placeholders and what is computed from them")
            if any(as_int(extent) is None for extent in arg.shape):
                raise ArgumentError(f"auto_scheduler: the shape of {arg.name} is {list(arg.shape)}, and schedules are measured "
                                    "for constant shapes", hint="make the task for the numbers that occur")
        self.outs = [arg for arg in self.args if not isinstance(arg.op, PlaceholderOp)]
        if not self.outs:
            raise ArgumentError("auto_scheduler: nothing is computed: all arguments are placeholders")
        self.key = key or task_key(self.outs) or str(self.outs)

    @cached_property
    def default(self) -> Default:
        """The schedule that topi chooses by its rules."""
        return Default(self.outs, self.target)
