"""What is to be scheduled, for a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    args: placeholders and results, of constant shapes. key: of its records; "": that of the formulas. limits: of a block of a
    device, by the names of `verify_gpu_code`, beside those that the target says.
    """

    def __init__(self, args: Sequence[Tensor], target: Target, key: str = "", limits: Mapping[str, int] | None = None) -> None:
        self.args, self.target, self.limits = list(args), target, dict(limits or {})
        for arg in self.args:
            if not isinstance(arg, Tensor):
                raise ArgumentTypeError(f"auto_scheduler: the arguments of a function are tensors, not {type_in_words(arg)}",
                                        hint="return [A, B, C]: the placeholders and what is computed from them")
            if any(as_int(extent) is None for extent in arg.shape):
                raise ArgumentError(f"auto_scheduler: the shape of {arg.name} is {list(arg.shape)}, and schedules are measured "
                                    "for constant shapes",
                                    hint="make a task for each size that occurs, or for a typical one, and replay what it "
                                         "finds on the symbolic formulas: s.replay(task.best_state(file).journal)")
        self.outs = [arg for arg in self.args if not isinstance(arg.op, PlaceholderOp)]
        if not self.outs:
            raise ArgumentError("auto_scheduler: nothing is computed: all arguments are placeholders")
        self.key = key or task_key(self.outs) or str(self.outs)

    @cached_property
    def default(self) -> Default:
        """The schedule that topi chooses by its rules."""
        return Default(self.outs, self.target)
