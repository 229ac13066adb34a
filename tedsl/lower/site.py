"""The context in which the statements of a stage are generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir.buffer import Buffer
from tedsl.ir.stmt import Stmt
from tedsl.lower.compute import BufferOf
from tedsl.lower.plan import Guard, Launch, Program, StagePlan
from tedsl.record import record


@record(eq=False)
class Site:
    """The stage `plan` of `program` and the context of its statements: the buffers of its outputs, and of any tensor.

    after_guests(k, body): the body of loop number k after the stages that are computed inside that loop. note: called with each
    Guard around the statements, for explanations.
    """

    plan: StagePlan
    program: Program
    buffers: Sequence[Buffer]
    buffer_of: BufferOf
    analyzer: Analyzer
    after_guests: Callable[[int, Stmt], Stmt]
    note: Callable[[Guard], None]

    @property
    def launch(self) -> Launch | None:
        """The kernel that the stage is part of."""
        return self.program.launches.get(self.plan)

    def guests_at(self, at: int) -> Sequence[StagePlan]:
        """The stages that are computed inside loop number `at`, producers first."""
        return self.program.guests_at(self.plan, at)
