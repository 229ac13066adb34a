"""`ComputeDAG`: the formulas of a program; `State`: a schedule of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tedsl.auto_scheduler.options import check_layout
from tedsl.auto_scheduler.workload import tensors_of, workload_key_to_tensors
from tedsl.autotvm.task.task import compute_flop
from tedsl.errors import ArgumentError, ArgumentTypeError, missing_attribute, type_in_words
from tedsl.ir.expr import Reduce
from tedsl.ir.script import shown
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.regions.bound_map import infer_bound
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.schedule.journal import Journal
from tedsl.schedule.show import schedule_text
from tedsl.tune import task_key


class State:
    """A schedule, as the directives that make it. bounded: its text has the extents of all loops, also of those that are
    computed at a loop of another stage.
    """

    def __init__(self, tensors: Sequence[Tensor], journal: Journal, bounded: bool = False) -> None:
        self.tensors, self.journal, self.bounded = list(tensors), journal, bounded

    def schedule(self) -> Schedule:
        """The schedule. Raises TedslError where a directive does not apply to these tensors."""
        sch = create_schedule([one.op for one in self.tensors if not isinstance(one.op, PlaceholderOp)])
        sch.replay(self.journal)
        return sch

    @property
    def stages(self) -> list[str]:
        """The names of the stages."""
        return [stage.name for stage in self.schedule().stages]

    def __str__(self) -> str:
        sch = self.schedule()
        return schedule_text(sch.state, infer_bound(sch)) if self.bounded else str(sch)


class RecordedState:
    """The schedule of a record: a State as soon as the formulas are known, by the methods of a ComputeDAG or of a task."""

    def __init__(self, applied: Callable[[ComputeDAG], State]) -> None:
        self.applied = applied

    def __call__(self, task: Any) -> State:
        """The schedule, for the task that it was measured for. Raises TedslError if it does not apply."""
        return self.applied(task.compute_dag)


_INSTEAD = {"rewrite_layout_from_state": "apply_steps_from_state, whose schedules pack operands inside of the kernel",
            "access_analyzer": "ops, the operations"}


class ComputeDAG:
    """The formulas of a program.

    compute: a list of placeholders and results, the key of a workload, or a schedule without directives.
    """

    def __init__(self, compute: Any) -> None:
        if isinstance(compute, str):
            self.tensors = workload_key_to_tensors(compute)
        elif isinstance(compute, Schedule):
            outs = [op.output(at) for op in compute.outputs for at in range(op.num_outputs)]
            order = producers_first([out.op for out in outs])
            self.tensors = [op.output(0) for op in order if isinstance(op, PlaceholderOp)] + outs
        elif isinstance(compute, (list, tuple)):
            self.tensors = tensors_of(compute, "of ComputeDAG")
        else:
            raise ArgumentTypeError(f"ComputeDAG takes a list of tensors, the key of a workload or a schedule, not {compute!r}")

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves
        def __getattr__(self, name: str) -> Any:
            raise missing_attribute("a ComputeDAG", name, ComputeDAG, _INSTEAD)

    @property
    def outs(self) -> list[Tensor]:
        """The tensors that are computed."""
        return [one for one in self.tensors if not isinstance(one.op, PlaceholderOp)]

    @cached_property
    def ops(self) -> list[Operation]:
        """The operations, producers first."""
        return producers_first([one.op for one in self.tensors])

    @cached_property
    def flop_ct(self) -> float:
        """The operations of one call; -1 where statements, and not formulas, compute something."""
        try:
            return float(compute_flop(create_schedule([out.op for out in self.outs])))
        except ArgumentError:
            return -1.0

    def get_init_state(self) -> State:
        """The schedule without directives."""
        return State(self.tensors, Journal())

    @property
    def init_state(self) -> State:
        """The schedule without directives."""
        return self.get_init_state()

    def infer_bound_from_state(self, state: State | RecordedState) -> State:
        """The schedule of a state, whose text has the extents of all loops. Raises TedslError where a directive does not apply
        to these formulas, or where no loops compute what is needed.
        """
        known = State(self.tensors, self._known(state).journal, bounded=True)
        infer_bound(known.schedule())
        return known

    def apply_steps_from_state(self, state: State | RecordedState, layout_rewrite: Any = None) -> tuple[Schedule, list[Tensor]]:
        """The schedule of a state, and the arguments of its function, which keep their layout. layout_rewrite: see
        LayoutRewriteOption.
        """
        check_layout("apply_steps_from_state", layout_rewrite)
        return State(self.tensors, self._known(state).journal).schedule(), list(self.tensors)

    def print_python_code_from_state(self, state: State | RecordedState) -> str:
        """The schedule of a state as Python over the schedule `s`."""
        return str(self._known(state).journal)

    def _known(self, state: State | RecordedState) -> State:
        if isinstance(state, RecordedState):
            return state.applied(self)
        if not isinstance(state, State):
            raise ArgumentTypeError(f"a ComputeDAG takes states, not {type_in_words(state)}",
                                    hint="dag.get_init_state(), the state of a MeasureInput, or those of generate_sketches()")
        return state

    def hash_key(self) -> str:
        """A text that is equal for equal formulas, in any process."""
        return task_key(self.outs)

    def workload_key(self) -> str:
        """The key of a SearchTask of these formulas, which `register_workload_tensors` takes."""
        return json.dumps([self.hash_key()])

    def print(self, simple_mode: bool = False) -> None:
        """Prints the formulas."""
        print(self)

    def __str__(self) -> str:
        return "\n".join(line for op in self.ops for line in _lines(op))


def _lines(op: Operation) -> list[str]:
    """An operation as a formula: `C(i, j) += A[i, k]*B[k, j]`."""
    if isinstance(op, PlaceholderOp):
        return [f"{op.name} = PLACEHOLDER {[int(n) if str(n).isdigit() else str(n) for n in op.output(0).shape]}"]
    if not isinstance(op, ComputeOp):
        return [f"{op.name} = {type(op).__name__}({', '.join(tensor.name for tensor in op.input_tensors)})"]
    axes = ", ".join(axis.var.name for axis in op.axis)
    found = []
    for number, body in enumerate(op.body):
        name = op.name if op.num_outputs == 1 else f"{op.name}.v{number}"
        if isinstance(body, Reduce) and number == body.value_index:
            terms = ", ".join(map(shown, body.source))
            found.append(f"{name}({axes}) {_sign(body)} {terms}")
        else:
            found.append(f"{name}({axes}) = {shown(body)}")
    return found


def _sign(body: Reduce) -> str:
    """The assignment of a reduction: `+=`, or `max=`, or the text of another reducer."""
    kind = type(body.combiner.result[0]).__name__ if len(body.combiner.result) == 1 else ""
    return {"Add": "+=", "Mul": "*=", "Max": "max=", "Min": "min="}.get(kind, "reduce=")
