"""The printed loops of a module and the line of each statement, for line tables."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from tedsl.errors import ModuleError
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import script_with_lines
from tedsl.ir.stmt import Stmt, Store
from tedsl.ir.walk.visitor import statements
from tedsl.record import record
from tedsl.runtime.devices.code import LoopLine


@record
class PrintedLoops:
    """The text of functions, the line of each statement in it counted from 1, and the line of each function by its name.

    stages: the stage of a statement, by the buffer that it writes; a statement that writes several has none.
    """

    text: str
    lines: dict[Stmt, int] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    stages: dict[Stmt, str] = field(default_factory=dict)


def print_loops(funcs: Sequence[PrimFunc]) -> PrintedLoops:
    """Prints functions one below the other and records the lines of their statements."""
    scripts = [script_with_lines(func, func.name) for func in funcs]
    loops = PrintedLoops("\n\n".join(text for text, _ in scripts) + "\n")
    first = 1
    for func, (text, lines) in zip(funcs, scripts):
        loops.functions[func.name] = first
        loops.lines.update({statement: first + line for statement, line in lines.items()})
        loops.stages.update(_stages(func.body))
        first += text.count("\n") + 2
    return loops


def line_stages(loops: PrintedLoops) -> tuple[LoopLine, ...]:
    """Returns the lines of printed loops, each with the stage whose statement begins there; "" where none does, and where a
    statement is of several.
    """
    stages = {line: loops.stages.get(statement, "") for statement, line in loops.lines.items()}
    return tuple(LoopLine(text, stages.get(number, "")) for number, text in enumerate(loops.text.split("\n"), start=1))


def stage_of(body: Stmt) -> str:
    """Returns the name of the buffer that the last store in `body` writes, which names the stage of the loops around it; "" if
    there is none.
    """
    stack = [body]
    while stack:
        statement = stack.pop()
        if isinstance(statement, Store):
            return statement.buffer_var.name
        stack += [child for child in statement.child_nodes() if isinstance(child, Stmt)]
    return ""


def _stages(body: Stmt) -> dict[Stmt, str]:
    """For each statement that writes a single buffer, the name of that buffer."""
    written: dict[Stmt, str | None] = {}
    for statement in reversed(list(statements(body))):
        names = {written[child] for child in statement.child_nodes() if isinstance(child, Stmt) and child in written}
        if isinstance(statement, Store):
            names.add(statement.buffer_var.name)
        if names:
            written[statement] = names.pop() if len(names) == 1 else None
    return {statement: name for statement, name in written.items() if name is not None}


_FILE = re.compile(r'!DIFile\(filename: "([^"\\]*)", directory: "([^"\\]*)"\)')


def with_loops_beside(source: str, library: Path) -> str:
    """Returns the LLVM IR `source` with its line table, if it has one, for a file beside `library`, to which it copies the
    printed loops: `libkernels.loops.py` for `libkernels.so`.
    """
    place = _FILE.search(source)
    if place is None:
        return source
    loops = Path(place[2], place[1])
    if not loops.is_file():
        return source
    beside = library.absolute().with_suffix(".loops.py")
    beside.write_text(loops.read_text())
    return _FILE.sub(f'!DIFile(filename: "{beside.name}", directory: "{beside.parent}")', source)


class LoopsFile:
    """Printed loops in a file for debuggers, at `path`, which is there as long as something refers to this, and at the latest
    until the process ends.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        path.write_text(text)
        weakref.finalize(self, _remove, path, os.getpid())

    def keep_with(self, library: object) -> None:
        """Keeps the file as long as `library` is there."""
        weakref.finalize(library, _nothing, self).atexit = False


def _nothing(file: LoopsFile) -> None:
    """Does nothing: what is kept for this call goes after it."""


def _remove(path: Path, process: int) -> None:
    """Removes a file of this process, and the folder with its last one; not in the child of a fork."""
    if os.getpid() == process:
        with suppress(OSError):
            path.unlink()
            path.parent.rmdir()


_files: weakref.WeakValueDictionary[Path, LoopsFile] = weakref.WeakValueDictionary()


def write_loops(text: str, name: str) -> LoopsFile:
    """Writes printed loops to a file for debuggers.

    There is one file of this process for each text, in a folder of this user inside the folder for temporary files. Raises
    ModuleError if it cannot be written.
    """
    folder = Path(tempfile.gettempdir()) / f"tedsl-{os.getuid()}"
    safe = "".join(c if c.isalnum() else "_" for c in name)[:40]
    path = folder / f"{safe}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}-{os.getpid()}.py"
    known = _files.get(path)
    if known is not None:
        return known
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise PermissionError(13, "it belongs to another user")
        return _files.setdefault(path, LoopsFile(path, text))
    except OSError as error:
        raise ModuleError(f"the printed loops cannot be written to {folder}: {error.strerror}",
                          hint="set TMPDIR to a folder where files can be written") from error
