"""The pages under docs/ that teach: their programs run, and print what stands below them."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["reading_the_loops.md", "concepts.md", "autodiff.md", "runtime.md", "placement.md",
                                  "networks.md", "byoc.md", "tuning.md"])
def test_the_programs_of_a_page_print_what_stands_below_them(page):
    """One after the other, as a reader would type them; a program without a text below it prints nothing. Pieces of programs,
    under the language "py", are not run.
    """
    names, expected = {}, None
    for language, text in FENCE.findall((DOCS / page).read_text()):
        if language == "py":
            continue
        if language == "python":
            assert not expected, f"the page says nothing of what is printed: {expected}"
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, page, "exec"), names)
            expected = printed.getvalue()
        else:
            assert text == expected
            expected = None
    assert not expected


def test_each_concept_of_actors_has_a_class_and_a_test_that_exist():
    """Names of tests, and of classes with a capital, in the table of the page of pipelines."""
    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", (DOCS / "runtime.md").read_text(), re.MULTILINE)[1:]
    root = DOCS.parent
    tests = {name for file in (root / "tests").rglob("test_*.py")
             for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}
    code = "".join(file.read_text() for file in (root / "tedsl" / "actors").rglob("*.py"))
    assert len(rows) > 15
    for concept, here, shown in rows:
        for name in re.findall(r"\b(test_\w+)\b(?!\.py)", shown):
            assert name in tests, (concept, name)
        for path in re.findall(r"\b(?:tests|tedsl)/[\w/]+\.py", here + shown):
            assert (root / path).is_file(), (concept, path)
        for name in re.findall(r"`(?:\w+\.)*(\w+)(?:=True)?`", here):
            assert re.search(rf"\b{name}\b", code), (concept, name)


def test_each_word_of_the_loops_is_explained():
    page = (DOCS / "reading_the_loops.md").read_text()
    table = page.partition("| In TVM's notation")[2]
    for word in ("A_1", "A_2", "handle", "ramp", "broadcast", "@tir.likely", "0f32", "x if (m)"):
        assert f"`{word}" in table or f"{word}`" in table or word in table, word


@pytest.mark.parametrize("page", ["reading_the_loops.md", "concepts.md", "speed.md"])
def test_the_drawings_and_pages_that_a_page_names_are_there(page):
    text = (DOCS / page).read_text()
    for drawing in re.findall(r"!\[[^]]*\]*[^]]*\]\(([^)]*)\)", text):
        assert (DOCS / drawing).is_file(), drawing
    for path in re.findall(r"`((?:docs|tutorials|tedsl)/[^`]*)`", text):
        assert (DOCS.parent / path).exists(), path


def test_each_concept_has_a_drawing():
    text = (DOCS / "concepts.md").read_text()
    for section in text.split("\n## ")[1:]:
        assert re.search(r"!\[.*\]\(concepts/\w+\.svg\)", section), section.partition("\n")[0]
