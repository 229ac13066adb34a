"""Journals that are damaged at random are read, replayed and written with errors of ours, never with one of Python's."""

import copy
import json
import random
import re

import pytest

from tedsl import te
from tedsl.errors import ArgumentError, TedslError
from tedsl.schedule.journal import Journal

DRAWN = 2000
VALUES = [None, True, False, 0, -1, 1, 2**31, 2**64, 10**400, 0.5, 1e308,
          float("inf"), float("nan"), "", "s", "split", "\ud800",
          "s[C].\udfff", "\0", "x" * 20_000, [], {}, [[]], {"a": {}}, [None] * 3, {"text": "s"}, "tedsl journal", "é" * 5]
WORDS = ["s", "te", "C", "B", "A", "op", "axis", "stages", "[", "]", "(", ")", ".", ",", "=", ":=", "lambda i:", "0", "-1", "9",
         "0x" + "f" * 5000, "1e999", "'", '"', "\ud800", "\0", "\n", " ", "*", "**", "//", "%", "&", "~", ">>", "<", "==",
         "not", "te.const(1, 'int32')", "te.const('a', 3)", "te.thread_axis('threadIdx.x')", "te.thread_axis(3)",
         "te.min(1, s)",
         "s.stages[7]", "s[0]", "s[[]]", ".astype('what')", ".output(9)", ".var", "None", "True", "b'x'", "1j", "...", "f'{s}'",
         "{}", "[i for i in s]", "(" * 60, "-" * 200, "(i := 3)", "yield", "await x", "s.copy()", "__import__('os')"]


def program():
    n = te.size_var("n")
    A = te.placeholder((n, 16), name="A")
    B = te.compute((n, 16), lambda y, x: A[y, x] + 1.0, name="B")
    k = te.reduce_axis((0, 16), "k")
    C = te.compute((n,), lambda y: te.sum(B[y, k], axis=k), name="C")
    return n, A, B, k, C


def written():
    """A journal with every kind of argument, as JSON."""
    n, A, B, k, C = program()
    s = te.create_schedule(C.op)
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
    return s.journal.to_json(indent=None)


def damaged(text, draw):
    """`text` with one or two entries of its JSON, or words of its directives, that are others."""
    data = json.loads(text)
    for _ in range(draw.randint(1, 2)):
        if draw.random() < 0.5 and isinstance(data, dict) and isinstance(data.get("directives"), list) and data["directives"]:
            record = draw.choice(data["directives"])
            if isinstance(record, dict) and isinstance(record.get("text"), str):
                record["text"] = other_words(record["text"], draw)
                continue
        data = other_entry(data, draw)
    made = json.dumps(data)
    return made[:draw.randrange(len(made))] if draw.random() < 0.05 else made


def other_words(text, draw):
    """`text` with a number or name that is another, or with a word put in anywhere."""
    if draw.random() < 0.6:
        word = draw.choice(list(re.finditer(r"\w+", text)) or [None])
        if word is not None:
            return text[:word.start()] + draw.choice(["0", "1", "3", "9", "A", "B", "C", "n", "axis"]) + text[word.end():]
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(WORDS) + text[at + draw.choice([0, 0, 1, 3, 10]):]


def other_entry(value, draw):
    """`value` with one entry, at any depth, that is another, gone, or there twice."""
    if not isinstance(value, (list, dict)) or not value or draw.random() < 0.15:
        return copy.deepcopy(draw.choice(VALUES))
    key = draw.choice(list(value)) if isinstance(value, dict) else draw.randrange(len(value))
    kind = draw.random()
    if kind < 0.1:
        del value[key]
    elif kind < 0.2 and isinstance(value, list):
        value.insert(draw.randrange(len(value)), value[key])
    elif kind < 0.2:
        value[draw.choice(["where", "text", "\ud800", "line"])] = value.pop(key)
    else:
        value[key] = other_entry(value[key], draw)
    return value


def outcome(text):
    """What reading, replaying and writing a journal ends with: "refused", "not replayed" or "replayed"."""
    try:
        journal = Journal.from_json(text)
    except ArgumentError as error:
        str(error).encode()
        return "refused"
    assert Journal.from_json(journal.to_json()) == journal, "what was read is written as it was"
    s = te.create_schedule(program()[-1].op)
    before = str(s)
    try:
        s.replay(journal)
    except TedslError as error:
        str(error).encode()
        assert str(s) == before and not s.journal
        return "not replayed"
    str(s), str(s.journal).encode()
    return "replayed"


def test_damaged_journals_are_refused_in_our_words():
    text = written()
    assert outcome(text) == "replayed"
    seen = [outcome(damaged(text, random.Random(seed))) for seed in range(DRAWN)]
    assert min(seen.count(kind) for kind in ("refused", "not replayed", "replayed")) > DRAWN // 40, "the damage is too plain"


@pytest.mark.parametrize("text, words", [
    ("s[C].split(s[C].op.axis[0], factor=0x" + "f" * 5000 + ")", "nothing that a journal may say"),
    ("s[C].split(s[C].op.axis[0], factor=(18446744073709551615 * 18446744073709551615))", "an integer of more than 64 bits"),
    ("s[C].split(s[C].op.axis[0], factor=1e999)", "nothing that a journal may say"),
    ("s[C].split(s[C].op.axis[0], factor=" + "-" * 150 + "1)", "expressions stand in one another"),
    ("s[C].split(s[C].op.axis[0], factor=4, factor=8)", "an argument is given twice"),
    ("(i := 3).split(s[C].op.axis[0], factor=4)", "(i := 3) has no directives"),
    ("s[C].unroll((3).var)", "nothing that a journal may say"),
    ("s[C].transform_layout(lambda i, i: [i])", "nothing that a journal may say"),
    ("s[C].transform_layout(lambda i=1: [i])", "nothing that a journal may say"),
    ("s[C].pragma(s[C].op.axis[0], '\ud800')", "half of a surrogate pair")])
def test_texts_that_python_itself_would_stumble_over(text, words):
    record = {"directive": text.partition("(")[0].rpartition(".")[2], "stage": "C", "text": text}
    with pytest.raises(ArgumentError) as caught:
        journal = Journal.from_json(json.dumps({"format": "tedsl journal", "version": 1, "directives": [record]}))
        te.create_schedule(program()[-1].op).replay(journal)
    assert words in str(caught.value)
