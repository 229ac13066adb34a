"""The text of one function: its header, and its lines without what nothing uses."""

from __future__ import annotations

import re
from collections import Counter

from tedsl.codegen.c.emitter import Emitter

WORD = re.compile(r"[A-Za-z_]\w*")
_CONSTANT = re.compile(r"\s*(?:(?:static )?const [\w ]*?(?:\*(?:\w+ )?const )?|\w+ \*(?:\w+ )?const )(\w+)(?:\[\d+\])? = (.*);")
_DECLARED = re.compile(r"\s*(?!return\b)\w+ \*?(\w+);")
_FOREIGN_CALL = re.compile(r"\b(?!tedsl_|sizeof\b)[A-Za-z_]\w*\(")
_ARRAY = re.compile(r"\s*(?:TEDSL_ALIGNED )?(\w+) (\w+)\[\d+\](?: = \{0\})?;")


def finished(out: Emitter, header: str, parameters: list[str]) -> list[str]:
    """Returns the lines of the function `header` that `out` has written; compilers have nothing to warn of in them.

    parameters: their names, of which those that are not used are said to be so.
    """
    lines = without_unused(out.blocks[0].lines)
    used = {word for line in lines for word in WORD.findall(line)}
    unused = [f"    (void){name};" for name in parameters if name not in used]
    return [header, "{", *unused, *("    " + line if line else line for line in lines), "}"]


def without_unused(lines: list[str]) -> list[str]:
    """Returns `lines` without the constants that no other line uses, and then those that only they used.
    Of one that calls a function of others the call is left.
    """
    lines, counts = _without_unread(lines)
    kept: list[str] = []
    for line in reversed(lines):
        match = _CONSTANT.fullmatch(line) or _ARRAY.fullmatch(line)
        name = match.group(match.lastindex if match.re is _ARRAY else 1) if match and match.lastindex else ""
        words = Counter(WORD.findall(line))
        if not name or counts[name] != words[name]:
            kept.append(line)
        elif match is not None and match.re is _CONSTANT and _FOREIGN_CALL.search(match.group(2)):
            kept.append(f"{line[:len(line) - len(line.lstrip())]}(void)({match.group(2)});")
        else:
            counts.subtract(words)
    return kept[::-1]


def _without_unread(lines: list[str]) -> tuple[list[str], Counter[str]]:
    """Returns `lines` without the variables that are only assigned to, and the words that are left with their counts.
    The sides of a choice assign to one, which is not read where a comparison with it is decided.
    """
    while True:
        counts = Counter(word for line in lines for word in WORD.findall(line))
        declared = [match.group(1) for line in lines if (match := _DECLARED.fullmatch(line))]
        assigned = Counter(line.split(" = ")[0].strip() for line in lines if " = " in line)
        unread = {name for name in declared if counts[name] == 1 + assigned[name]}
        if not unread:
            return lines, counts
        lines = [line for line in lines if line.split(" = ")[0].strip() not in unread and not (
            (match := _DECLARED.fullmatch(line)) and match.group(1) in unread)]
