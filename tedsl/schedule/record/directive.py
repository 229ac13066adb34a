"""A directive that was applied, as data: its name, what it was called on, its arguments, its results and its line.

The tables name all directives. Each is a method with the decorator `directive` (applied.py) of the class that its
table is for; a test holds that both agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property

from tedsl.ir.source_line import SourceLine
from tedsl.record import record
from tedsl.schedule.record.term import SCHEDULE, Term, enclosed, names_defined, names_used, text_of

# Of a stage; each version that specialize makes has them for itself.
OF_LOOPS = frozenset(("split", "fuse", "reorder", "tile", "decompose_reduction", "vectorize", "unroll", "parallel", "tensorize",
                      "pragma", "skip_zeros"))
# Of a stage as a whole, with its versions.
OF_WHOLE_STAGES = frozenset((
    "bind", "by_threads", "compute_at", "compute_inline", "compute_root", "compute_with", "double_buffer", "env_threads",
    "nontemporal", "prefetch", "reverse_compute_at", "rolling_buffer", "set_scope", "set_store_predicate",
    "specialize", "storage_align", "transform_layout"))
OF_STAGES = OF_LOOPS | OF_WHOLE_STAGES
OF_GROUPS = frozenset(("compute_at", "compute_root"))
OF_SCHEDULES = frozenset(("cache_read", "reindex_cache_read", "cache_write", "rfactor", "pad_sum", "create_group"))


@record
class Directive:
    """`results = on.name(*arguments, **named)`.

    on: the schedule `s`, a stage, a version or a group. stage: the name of its stage, "" without one. several: the call
    returned a list or tuple, which `results` unpacks. where: the source line of the call, ignored when directives are compared.
    """

    name: str
    stage: str
    on: Term
    arguments: tuple[Term, ...] = ()
    named: tuple[tuple[str, Term], ...] = ()
    results: tuple[str, ...] = ()
    several: bool = False
    where: SourceLine | None = field(default=None, compare=False)

    @property
    def on_schedule(self) -> bool:
        return self.on == SCHEDULE

    @cached_property
    def call(self) -> str:
        """The call as Python: `s[B].split(s[B].op.axis[0], factor=8)`."""
        given = [*map(text_of, self.arguments), *(f"{name}={enclosed(term)}" for name, term in self.named)]
        return f"{text_of(self.on)}.{self.name}({', '.join(given)})"

    @cached_property
    def text(self) -> str:
        """The call with the names of its results: `i_outer, i_inner = s[B].split(s[B].op.axis[0], factor=8)`."""
        comma = "," * (self.several and len(self.results) == 1)
        return f"{', '.join(self.results)}{comma} = {self.call}" if self.results else self.call

    def __str__(self) -> str:
        return self.text

    @property
    def origin(self) -> str:
        """The directive for errors and pages, its text and line: `s[B].compute_inline()  (prog.py:12)`."""
        return self.text + (f"  ({self.where.short})" if self.where is not None else "")

    @property
    def commented(self) -> str:
        """Its text with the line as a comment: `s[B].compute_inline()  # prog.py:12`."""
        return self.text + (f"  # {self.where.short}" if self.where is not None else "")

    def terms(self) -> Iterator[Term]:
        """The terms of the call: the object that it is on, and its arguments."""
        yield self.on
        yield from self.arguments
        yield from (term for _, term in self.named)

    def names_used(self) -> set[str]:
        """The names in the call that were defined before it."""
        return {name for term in self.terms() for name in names_used(term)}

    def names_said(self) -> set[str]:
        """The names that the call uses or defines."""
        return self.names_used() | {name for term in self.terms() for name in names_defined(term)}
