"""The journal of a schedule: every directive that was applied, in order.

Run over a fresh schedule `s` of the same operations, its text builds the same schedule. It refers to tensors by their own names
where these are unique Python names, else by position (`s.stages[2]`), and to loops by the names given in the text. An argument
that has no text (an intrinsic, a function) is given a name, under which the journal keeps it in `objects`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, SupportsIndex, overload

from tedsl.display.code import code_block
from tedsl.display.page import fragment
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import Var
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.journal_json import json_of, read_json


class Journal(tuple[Directive, ...]):
    """The directives of a schedule in order; printed, a Python program over `s`. `s.replay(journal)` applies it.

    objects: the arguments that have no text, by name, for a replay in this process.
    threads: variables in these objects that belong to thread axes which the text creates, with the names it gives them.
    loose: names of variables in these objects that occur in no shape, formula or statement, so that no other schedule has them.
    """

    objects: Mapping[str, Any]
    threads: Mapping[Var, str]
    loose: frozenset[str]

    def __new__(cls, directives: Sequence[Directive] = (), objects: Mapping[str, Any] | None = None,
                threads: Mapping[Var, str] | None = None, loose: Collection[str] = ()) -> Journal:
        directives = tuple(directives)
        wrong = next((one for one in directives if not isinstance(one, Directive)), None)
        if wrong is not None:
            raise ArgumentTypeError(f"a journal is made of directives, not {wrong!r}", hint="take it from s.journal")
        journal = super().__new__(cls, directives)
        journal.objects, journal.threads, journal.loose = dict(objects or {}), dict(threads or {}), frozenset(loose)
        return journal

    @overload
    def __getitem__(self, index: SupportsIndex) -> Directive: ...
    @overload
    def __getitem__(self, index: slice) -> Journal: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Directive | Journal:
        if isinstance(index, slice):
            return Journal(super().__getitem__(index), self.objects, self.threads, self.loose)
        return super().__getitem__(index)

    def __add__(self, other: object) -> Journal:
        """The directives of both, one after the other."""
        if not isinstance(other, tuple) or not all(isinstance(one, Directive) for one in other):
            return NotImplemented
        objects = dict(other.objects) if isinstance(other, Journal) else {}
        twice = next((name for name, thing in objects.items() if self.objects.get(name, thing) is not thing), None)
        if twice is not None:
            raise ArgumentError(f"both journals speak of {twice}, and mean different objects of this process",
                                hint="replay them one after the other")
        threads, loose = (other.threads, other.loose) if isinstance(other, Journal) else ({}, frozenset())
        return Journal(tuple(self) + tuple(other), {**self.objects, **objects}, {**threads, **self.threads}, self.loose | loose)

    def __mul__(self, times: SupportsIndex) -> Journal:
        return Journal(super().__mul__(times), self.objects, self.threads, self.loose)

    __rmul__ = __mul__

    def __str__(self) -> str:
        return "\n".join(d.text for d in self)

    def __repr__(self) -> str:
        return f"<{self.title.lower()}; print it, or s.replay it>"

    @property
    def title(self) -> str:
        """`Journal of 3 directives`."""
        return f"Journal of {len(self)} directive{'s' * (len(self) != 1)}"

    def commented(self) -> str:
        """The text, with the line of the program that called each directive."""
        return "\n".join(directive.commented for directive in self)

    def _repr_html_(self) -> str:
        return fragment(self.title, code_block(self.commented()))

    def to_json(self, indent: int | None = 2) -> str:
        """The journal as JSON. Refuses a directive with an argument that exists in this process only."""
        if indent is not None and not isinstance(indent, (int, str)):
            raise ArgumentTypeError(f"to_json: indent is a number of blanks, got {indent!r}")
        return json_of(self, self.objects, self.loose, indent)

    @staticmethod
    def from_json(text: str | bytes) -> Journal:
        """The journal that `to_json` wrote; ArgumentError for any other text. Nothing in it is run as Python."""
        return Journal(read_json(text))
