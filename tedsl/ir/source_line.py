"""Where in the user's program something was written: for errors and for the journal."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

STAGE_SOURCE = "stage_source"  # AttrStmt key: the name of the stage that the body computes, and the line that wrote its formula
READ_SOURCE = "read_source"  # AttrStmt key: the name and line of the stage, inlined into that of the body, that reads a buffer
SCRIPT_LINE = "script_line"  # AttrStmt key: the line of a hybrid script that the body was written as; gone once it is checked
OURS = tuple(str(Path(__file__).parents[2] / package) + "/" for package in ("tedsl", "topi"))


@dataclass(frozen=True)
class SourceLine:
    """A line of a file. `str` names the file as tracebacks do."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """`prog.py:12`, without the folder."""
        return f"{Path(self.file).name}:{self.line}"


def user_line() -> SourceLine | None:
    """The innermost line outside of tedsl and topi that led here; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OURS):
            return SourceLine(file, frame.f_lineno)
        frame = frame.f_back
    return None
