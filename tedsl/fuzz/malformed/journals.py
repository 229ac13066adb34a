"""Scripts that read, write and replay damaged journals: JSON with changed entries, directives with changed words."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from tedsl import te
from tedsl.fuzz.draw import Draw

# The program of the journal, and directives with every kind of argument.
_PROGRAM = """\
n = te.size_var("n")
A = te.placeholder((n, 16), name="A")
B = te.compute((n, 16), lambda y, x: A[y, x] + 1.0, name="B")
k = te.reduce_axis((0, 16), "k")
C = te.compute((n,), lambda y: te.sum(B[y, k], axis=k), name="C")
s = te.create_schedule(C.op)
"""
_DIRECTIVES = """\
s[B].transform_layout(lambda y, x: [x // 4, te.AXIS_SEPARATOR, y, x % 4])
CC = s.cache_write(C, "local")
AA = s.cache_read(A, "local", [B])
_, inner = s[CC].split(s[CC].op.reduce_axis[0], nparts=4)
s.rfactor(CC, inner)
outer, _ = s[C].split(s[C].op.axis[0], te.max(n // 4, 1), tail="mask")
s[C].bind(outer, te.thread_axis((0, n), "blockIdx.x", name="bx"))
s[AA].storage_align(s[AA].op.axis[0], 8, 1)
s.create_group([B], [A]).compute_at(s[CC], s[CC].op.axis[0])
version = s[AA].specialize(te.all(n % 4 == 0, ~(n > 9)))
version.pragma(version.op.axis[0], "auto_unroll_max_step", te.const(4, "int64"))
"""
_REPLAY = """\
before = str(s)
try:
    s.replay(journal)
except tedsl.errors.TedslError:
    assert str(s) == before and not s.journal, "all or none"
    raise
str(s).encode(), str(s.journal).encode()
"""
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 2**31, 2**64, 10**400, 0.5, 1e308, float("inf"), float("nan"), "", "s", "B", "i.outer",
    "split", "\ud800", "s[C].\udfff", "\0", "x" * 20_000, "tedsl journal", "é" * 5, [], ["B"], [[]], [None] * 3, {}, {"a": {}},
    {"text": "s"})
_WORDS = (
    "s", "te", "C", "op", "axis", "stages", "[", "]", "(", ")", ".", ",", "=", ":=", "lambda i:", "0", "-1", "0x" + "f" * 5000,
    "1e999", "'", '"', "\ud800", "\0", "\n", " ", "*", "**", "//", "%", "&", "~", ">>", "<", "==", "not",
    "te.const(1, 'int32')", "te.const('a', 3)", "te.thread_axis('threadIdx.x')", "te.thread_axis(3)", "te.min(1, s)",
    "s.stages[7]", "s[0]", "s[[]]", ".astype('what')", ".output(9)", ".var", "None", "True",
    "b'x'", "1j", "...", "f'{s}'", "{}", "[i for i in s]",
    "(" * 60, "-" * 200, "(i := 3)", "yield", "await x", "s.copy()", "__import__('os')")
_NAMES = ("0", "1", "3", "9", "A", "B", "C", "n", "axis")
_PIECES = ("", "[", "}", '"', "null", "9", ",", "\\ud800", "NaN", "-")


@functools.cache
def journal_text() -> str:
    """The journal, undamaged, as JSON."""
    names: dict[str, Any] = {"te": te}
    exec(_PROGRAM + _DIRECTIVES, names)  # our own
    return str(names["s"].journal.to_json(indent=None))


def replay_script(text: str | bytes) -> str:
    """A script that reads the journal `text`, writes it again, which must give the same, and replays it."""
    return (f"journal = te.Journal.from_json({text!r})\nassert te.Journal.from_json(journal.to_json()) == journal\n"
            f"str(journal).encode(), repr(journal)\n{_PROGRAM}{_REPLAY}")


def journal_script(draw: Draw) -> str:
    """The journal with one or two things in it changed, read and replayed."""
    text = journal_text()
    if draw.chance(10):
        at = draw.which(len(text))
        text = text[:at] + draw.choice(_PIECES) + text[at + draw.which(3):]
    else:
        data = json.loads(text)
        for _ in range(draw.between(1, 2)):
            data = _other_text(data, draw) if draw.chance(50) else _other_entry(data, draw)
        text = json.dumps(data)
    return replay_script(text.encode("utf-8", "replace") if draw.chance(5) else text)


def _other_text(data: Any, draw: Draw) -> Any:
    """The journal with another text of one directive, if it still has some."""
    records = data.get("directives") if isinstance(data, dict) else None
    record = draw.choice(records) if isinstance(records, list) and records else None
    if isinstance(record, dict) and isinstance(record.get("text"), str):
        record["text"] = _other_words(record["text"], draw)
    return data


def _other_words(text: str, draw: Draw) -> str:
    """`text` with a number or name that is another, or with a word put in anywhere."""
    words = list(re.finditer(r"\w+", text))
    if words and draw.chance(60):
        word = draw.choice(words)
        return text[:word.start()] + draw.choice(_NAMES) + text[word.end():]
    at = draw.which(len(text) + 1)
    return text[:at] + draw.choice(_WORDS) + text[at + draw.choice((0, 0, 1, 3, 10)):]


def _other_entry(data: Any, draw: Draw) -> Any:
    """JSON data with one entry, at any depth, that is another, gone, renamed or there twice."""
    if draw.chance(20) or not data or not isinstance(data, (dict, list)):
        return draw.choice(_VALUES)
    if isinstance(data, dict):
        key = draw.choice(list(data))
        if draw.chance(15):
            return {k: v for k, v in data.items() if k != key}
        renamed = draw.choice(("", "stage", "where", "line", "\ud800", "x")) if draw.chance(10) else key
        return {renamed if k == key else k: _other_entry(v, draw) if k == key else v for k, v in data.items()}
    at = draw.which(len(data))
    if draw.chance(15):
        return data[:at] + data[at + 1:] if draw.chance(50) else [*data, data[at]]
    return [_other_entry(v, draw) if k == at else v for k, v in enumerate(data)]
