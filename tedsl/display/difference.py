"""Compares two texts line by line: lines kept, removed, added. A line that is only indented otherwise counts as kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tedsl.record import record

LONGEST_MATCH = 2000  # lines: beyond, finding the longest common parts may take minutes


@record
class Row:
    """One line of a comparison. kind: "same", "changed" (both sides), "removed" (left only), "added" (right only), or
    "skipped": `left` then says how many equal lines are left out."""

    kind: str
    left: str = ""
    right: str = ""


def rows(before: Sequence[str], after: Sequence[str], context: int | None = None) -> list[Row]:
    """Returns the lines side by side; with `context`, equal lines further than that from any change are left out."""
    lines = list(_rows(before, after))
    return lines if context is None else near_changes(lines, context)


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    head, tail = _common_ends(before, after)
    yield from map(Row, ["same"] * head, before, after)
    middle = before[head:len(before) - tail], after[head:len(after) - tail]
    for kind, left, right in _blocks(*middle):
        if kind == "equal":
            yield from map(Row, ["same"] * len(left), left, right)
            continue
        both = min(len(left), len(right))
        yield from (Row("changed", a, b) for a, b in zip(left, right))
        yield from (Row("removed", line) for line in left[both:])
        yield from (Row("added", "", line) for line in right[both:])
    yield from map(Row, ["same"] * tail, before[len(before) - tail:], after[len(after) - tail:])


def _common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Returns the numbers of equal lines at the beginning and at the end."""
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    rest = most - head
    tail = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return head, tail


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    if max(len(before), len(after)) > LONGEST_MATCH:
        yield "replace", before, after
        return
    # Of long texts the lines that are everywhere, like }, are no place to begin a match at: that would take seconds.
    from difflib import SequenceMatcher  # few programs show differences, and all load this file

    matcher = SequenceMatcher(None, [line.strip() for line in before], [line.strip() for line in after],
                              autojunk=max(len(before), len(after)) > 300)
    for kind, i, j, k, m in matcher.get_opcodes():
        yield kind, before[i:j], after[k:m]


def near_changes(found: Sequence[Row], context: int) -> list[Row]:
    """Returns the rows `found` without the equal lines further than `context` from any change."""
    near = [False] * len(found)
    for at, row in enumerate(found):
        if row.kind != "same":
            low, high = max(at - context, 0), at + context + 1
            near[low:high] = [True] * len(near[low:high])
    kept: list[Row] = []
    skipped = 0
    for row, keep in zip(found, near):
        if not keep:
            skipped += 1
            continue
        kept += _left_out(skipped)
        kept.append(row)
        skipped = 0
    return kept + _left_out(skipped)


def _left_out(count: int) -> list[Row]:
    return [Row("skipped", f"{count} equal line{'s' * (count != 1)}")] if count else []


def count_changes(found: Sequence[Row]) -> tuple[int, int]:
    """Returns the numbers of lines added and removed."""
    return (sum(row.kind in ("added", "changed") for row in found), sum(row.kind in ("removed", "changed") for row in found))
