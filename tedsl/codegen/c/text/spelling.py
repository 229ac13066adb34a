"""The words of a language of the C family for what C says in words of its headers.

Text is written in the words of C: `int64_t`, `UINT64_C(7)`, `fabsf`. A language that has others gives a table of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from tedsl.record import record

_CONSTANT_OR_WORD = re.compile(r"\b(U?)INT64_C\(([^()]*)\)|\bstatic const\b|\b[A-Za-z_]\w*")


@record
class Spelling:
    """The words of a language: those of C, and of our helper functions, that it says otherwise.

    signed, unsigned: what follows a constant of 64 bits. table: what stands before a table of numbers inside a function.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    signed: str = "L"
    unsigned: str = "UL"
    table: str = "const"

    def __call__(self, text: str) -> str:
        """Returns `text`, which is written in the words of C, in those of the language."""
        return _CONSTANT_OR_WORD.sub(self._of, text) if self.words else text

    def _of(self, found: re.Match[str]) -> str:
        if found.group(2) is not None:
            return found.group(2) + (self.unsigned if found.group(1) else self.signed)
        return self.table if found.group() == "static const" else self.words.get(found.group(), found.group())


AS_IN_C = Spelling()
