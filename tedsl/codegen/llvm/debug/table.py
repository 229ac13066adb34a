"""The line table of a module as metadata of LLVM IR, in the form of DWARF that LLVM reads.

The file is the printed loops. Each function of the machine code is a subprogram; the loops of a stage are a subprogram of that
name, inlined into it, so that profiles and backtraces name stages.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tedsl.codegen.llvm.debug.lines import PrintedLoops
from tedsl.ir.stmt import Stmt

_FLAGS = "spFlags: DISPFlagDefinition | DISPFlagOptimized"


class LineTable:
    """Builds the line table of a module.

    add: adds a metadata node to the module and returns its name. directives: the table is for code that is text, such as PTX,
    and consists of directives in it; stages are not inlined functions there.
    """

    def __init__(self, loops: PrintedLoops, path: Path, add: Callable[[str], str], *, directives: bool = False) -> None:
        self._loops, self._add, self._inlined = loops, add, not directives
        self._file = add(f"!DIFile(filename: {_quoted(path.name)}, directory: {_quoted(str(path.parent))})")
        self._type = add(f"!DISubroutineType(types: {add('!{null}')})")
        kind = "DebugDirectivesOnly" if directives else "LineTablesOnly"
        self._unit = add(f"distinct !DICompileUnit(language: DW_LANG_C99, file: {self._file}, producer: \"tedsl\", "
                         f"isOptimized: true, runtimeVersion: 0, emissionKind: {kind})")
        self._flags = [add('!{i32 7, !"Dwarf Version", i32 4}'), add('!{i32 2, !"Debug Info Version", i32 3}')]
        self._known: dict[tuple[object, ...], str] = {}

    def named_metadata(self) -> str:
        """Returns the named metadata for the end of the module."""
        return f"!llvm.dbg.cu = !{{{self._unit}}}\n!llvm.module.flags = !{{{', '.join(self._flags)}}}"

    def subprogram(self, name: str, line: int) -> str:
        """Returns the node of a function of the machine code, which begins at `line` of the loops."""
        place = f"scope: {self._file}, file: {self._file}, line: {line}, scopeLine: {line}"
        return self._add(f"distinct !DISubprogram(name: {_quoted(name)}, {place}, type: {self._type}, {_FLAGS}, "
                         f"unit: {self._unit})")

    def line_of(self, name: str) -> int:
        """Returns the line of the function in the printed loops from which the symbol `name` was compiled."""
        known = self._loops.functions
        return next((known[function] for function in sorted(known, key=len, reverse=True) if name.startswith(function)), 1)

    def location(self, subprogram: str, statement: Stmt, otherwise: str) -> str:
        """Returns the suffix of instructions that are written for `statement` in the function `subprogram`; `otherwise` if the
        statement has no line.
        """
        line = self._loops.lines.get(statement)
        if line is None:
            return otherwise
        return self.at(subprogram, line, self._loops.stages.get(statement, "") if self._inlined else "")

    def at(self, subprogram: str, line: int, stage: str = "") -> str:
        """Returns the suffix of instructions of `stage` ("": of none) at `line`."""
        key = (subprogram, stage, line)
        if key not in self._known:
            scope, inlined = subprogram, ""
            if stage:
                scope, site = self._stage(subprogram, stage, line)
                inlined = f", inlinedAt: {site}"
            self._known[key] = f", !dbg {self._add(f'!DILocation(line: {line}, column: 1, scope: {scope}{inlined})')}"
        return self._known[key]

    def _stage(self, subprogram: str, stage: str, line: int) -> tuple[str, str]:
        """Returns the nodes of a stage in a function: its subprogram, and the location at which it is inlined."""
        key = (subprogram, stage)
        if key not in self._known:
            self._known[key] = self.subprogram(stage, line)
            self._known[(*key, "site")] = self._add(f"distinct !DILocation(line: {line}, column: 1, scope: {subprogram})")
        return self._known[key], self._known[(*key, "site")]


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else
                         "".join(f"\\{byte:02X}" for byte in c.encode()) for c in text) + '"'
