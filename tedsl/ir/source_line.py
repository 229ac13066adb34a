"""Lines of the user's program, for errors and for the journal."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType
from typing import Any

from tedsl.errors import OURS
from tedsl.record import record

STAGE_SOURCE = "stage_source"  # AttrStmt key: the name of the stage that the body computes, and the line that wrote its formula
READ_SOURCE = "read_source"  # AttrStmt key: the name and line of the stage, inlined into that of the body, that reads a buffer
SCRIPT_LINE = "script_line"  # AttrStmt key: the line of a hybrid script that the body was written as; gone once it is checked
_INSIDE = (*OURS, functools.__file__)  # files whose frames are not the user's: functools calls properties of ours


@record
class SourceLine:
    """A line of a file. `str` names the file as tracebacks do."""

    file: str
    line: int

    def __str__(self) -> str:
        return self.short if _notebook_cell(self.file) else f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """`prog.py:12`, without the folder; `Cell In[3], line 2` in a notebook."""
        cell = _notebook_cell(self.file)
        return f"{cell}, line {self.line}" if cell else f"{os.path.basename(self.file)}:{self.line}"


def user_line() -> SourceLine | None:
    """The innermost line outside of tedsl and topi on the call stack; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_INSIDE):
            return SourceLine(file, frame.f_lineno)
        frame = frame.f_back
    return None


def user_level() -> int:
    """The `stacklevel` with which the caller warns about the innermost line outside of tedsl and topi."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    return level


def _notebook_cell(file: str) -> str:
    """`Cell In[3]` for the file name that IPython gave to a cell; "" for files."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    label = name_of(file) if name_of is not None else None  # ("Cell", "In[3]"), or None for what is not a cell
    return " ".join(label) if label else ""
