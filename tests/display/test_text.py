"""Texts that a console prints as they are and a notebook shows as a block."""

import copy
import pickle

import pytest

import tedsl
from tedsl import te
from tedsl.display.text import Text
from tests.display.structure import checked


def test_the_repr_is_the_text():
    text = Text("a\n  b", "Heading")
    assert repr(text) == str(text) == text == "a\n  b" and text.splitlines() == ["a", "  b"]
    assert type(str(text)) is str and f"{text}" == "a\n  b"


def test_it_is_copied_with_its_heading():
    text = Text("a", "Heading")
    for made in (copy.copy(text), copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert made == "a" and made.heading == "Heading"


def test_a_notebook_shows_it_escaped_and_cut():
    page = checked(Text("<script>\n" + "x" * 300_000, "Some text")._repr_html_()).seen()
    assert "Some text" in page and "<script>" in page and "... and 100009 more characters" in page


@pytest.mark.parametrize("form, heading, words", [("ll", "LLVM IR", "define"), ("asm", "Assembly", "ret"),
                                                  ("tir", "Loops", "primfn(")])
def test_the_sources_of_a_module(form, heading, words):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    source = tedsl.build(te.create_schedule(B.op), [A, B]).get_source(form)
    assert words in source and repr(source) == source and heading in checked(source._repr_html_()).seen()
