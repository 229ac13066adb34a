"""Journals that are damaged at random are read, replayed and written with errors of ours, never with one of Python's."""

import json

import pytest

from tedsl import te
from tedsl.errors import ArgumentError
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.malformed.journals import journal_script, journal_text, replay_script
from tedsl.fuzz.malformed.run import outcome_of
from tedsl.schedule.journal import Journal

DRAWN = 500  # `python -m tedsl fuzz --malformed` draws more


def test_the_journal_is_replayed_when_it_is_whole():
    assert outcome_of(replay_script(journal_text())) is None


def test_damaged_journals_are_refused_in_our_words():
    outcomes = [outcome_of(journal_script(Draw(seed))) for seed in range(DRAWN)]
    assert [one for one in outcomes if one is not None and one[0] != "refused"] == []
    replayed, here = outcomes.count(None), sum(one is not None and one[1].startswith("replay of") for one in outcomes)
    assert replayed > 10 and here > 25, "the damage is too plain"


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
    A = te.placeholder((8,), name="A")
    C = te.compute((8,), lambda i: A[i] + 1.0, name="C")
    record = {"directive": text.partition("(")[0].rpartition(".")[2], "stage": "C", "text": text}
    with pytest.raises(ArgumentError) as caught:
        journal = Journal.from_json(json.dumps({"format": "tedsl journal", "version": 1, "directives": [record]}))
        te.create_schedule(C.op).replay(journal)
    assert words in str(caught.value)
