"""Assembly as a listing: the lines of the loops as comments above the instructions that implement them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_LEFT_OUT = re.compile(r"\s*\.(file\t\d|cfi_)|\.L(tmp|func_begin|func_end)\d+:")  # func_end: kept where a size needs it
_COMMENT = {"x86-64": "#", "aarch64": "//", "arm": "@", "riscv64": "#"}


def listing(assembly: str, loops: str, arch: str) -> str:
    """Returns `assembly`, which has a line table for the text `loops`, without the table and with the lines in their place."""
    return "\n".join(_lines(assembly, loops.split("\n"), _COMMENT.get(arch, "#"))) + "\n"


def _lines(assembly: str, loops: list[str], comment: str) -> Iterator[str]:
    at = skipping = 0
    for line in assembly.splitlines():
        if line.lstrip().startswith((".section", ".text", ".ident")):
            skipping = ".debug_" in line
        found = _LOCATION.match(line)
        if found:
            number = int(found[1])
            if number != at and 0 < number <= len(loops) and loops[number - 1].strip():
                yield f"{comment} {number:4d}: {loops[number - 1]}"
            at = number
        elif not skipping and not line.startswith((".Ltmp", ".Lfunc_begin")) and not _LEFT_OUT.match(line):
            yield line
