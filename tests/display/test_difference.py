"""Two texts line by line, and how a terminal shows that."""

import io
import random
import time

import pytest

from tedsl.display.difference import Row, count_changes, rows
from tedsl.display.terminal import painted, unified, wants_colour

BEFORE = ["for i {", "  A", "}", "x", "y"]


def shown(before, after, context=None):
    return list(unified(rows(before, after, context)))


def test_equal_texts():
    assert rows(BEFORE, BEFORE) == [Row("same", line, line) for line in BEFORE]
    assert rows(BEFORE, BEFORE, context=1) == [Row("skipped", "5 equal lines")] and rows([], []) == []


def test_changed_added_and_removed_lines():
    assert rows(["a", "b", "c"], ["a", "B", "B2", "c"]) == [
        Row("same", "a", "a"), Row("changed", "b", "B"), Row("added", "", "B2"), Row("same", "c", "c")]
    assert rows(["a", "b"], ["b"]) == [Row("removed", "a"), Row("same", "b", "b")]
    assert rows([], ["a"]) == [Row("added", "", "a")]


def test_a_line_that_moved_to_the_side_stayed():
    found = rows(["for i {", "  A = 0", "}"], ["for j {", "  for i {", "    A = 0", "  }", "}"])
    assert [row.kind for row in found] == ["added", "same", "same", "added", "same"]
    assert found[2] == Row("same", "  A = 0", "    A = 0") and count_changes(found) == (2, 0)


def test_only_the_neighbourhood_of_changes():
    lines = [str(n) for n in range(20)]
    assert shown(lines, [*lines[:10], "ten", *lines[11:]], context=2) == [
        "  ... 8 equal lines", "  8", "  9", "- 10", "+ ten", "  11", "  12", "  ... 7 equal lines"]


@pytest.mark.parametrize("seed", range(20))
def test_both_texts_can_be_read_from_the_rows(seed):
    rng = random.Random(seed)
    before = [rng.choice("abc {}") for _ in range(30)]
    after = [line for line in before if rng.random() < 0.8] + [rng.choice("xyz") for _ in range(3)]
    found = rows(before, after)
    assert [row.left for row in found if row.kind != "added"] == before
    assert [row.right for row in found if row.kind != "removed"] == after


def test_long_texts_take_no_minutes():
    before = ["A[i] = 0"] * 30_000
    start = time.process_time()
    found = rows(before, ["B[i] = 0", *before[:-1], "x"], context=3)
    assert time.process_time() - start < 5 and found


def test_colour_is_for_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal()) and not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    assert painted("+ a", True) == "\033[32m+ a\033[0m" and painted("+ a", False) == "+ a" and painted("  a", True) == "  a"


def test_names_cannot_write_to_the_terminal():
    assert painted("+ \033[2Jname\r\x07", False) == "+ �[2Jname��"
