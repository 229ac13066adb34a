"""Reports as tables: in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from tedsl.display.markup import element, joined
from tedsl.display.page import fragment

if TYPE_CHECKING:
    from tedsl.simulate.reports.access import Access
    from tedsl.simulate.reports.report import KernelReport
    from tedsl.simulate.reports.stages import StageReport

MOST_LETTERS = 27  # of the classes of instructions of a stage
MOST_ACCESSES = 12  # instructions that a table shows, those that move the most

Row = Sequence[str]


def text_of(report: KernelReport) -> str:
    """Returns a report as lines of text."""
    lines = [title(report)]
    for name, value in summary(report):
        parts = wrap(value, 84) or [""]
        lines += [f"  {name:<22}{parts[0]}", *[" " * 24 + part for part in parts[1:]]]
    for headings, words, rows in _tables(report):
        lines += ["", *_aligned([headings, *rows], words)]
    lines += ["", *findings(report)]
    return "\n".join(lines)


def listing_of(report: KernelReport) -> str:
    """Returns the lines of the loops of a report, each after the number of instructions that it took."""
    if not report.source:
        return ""
    counts = {line: count for (_, line), count in report.lines.items()}
    width = max([len("instructions"), *(len(str(count)) for count in counts.values())])
    first, last = _lines_of(report, counts)
    rows = [f"{counts.get(number, '')!s:>{width}}  {line.text}".rstrip() for number, line in enumerate(report.source, start=1)]
    return "\n".join([f"{'instructions':>{width}}  loops of {report.kernel}", *rows[first - 1:last]])


def _lines_of(report: KernelReport, counts: Mapping[int, int]) -> tuple[int, int]:
    """The lines of the function that is the kernel of a report: from one that defines a function to that before the next."""
    begins = [number for number, line in enumerate(report.source, start=1) if line.text.startswith("def ")]
    first = max((begin for begin in begins if begin <= min(counts, default=1)), default=1)
    return first, next((begin - 1 for begin in begins if begin > first), len(report.source))


def title(report: KernelReport) -> str:
    """Returns the first line of a report."""
    all_blocks = report.grid[0] * report.grid[1] * report.grid[2]
    sampled = f", from {report.blocks} of {all_blocks} blocks" if report.blocks < all_blocks else ""
    return f"kernel {report.kernel}, grid {report.grid} x block {report.block}, on sim({report.device}){sampled}"


def summary(report: KernelReport) -> list[tuple[str, str]]:
    """Returns the names and values of the lines above the table."""
    total = sum(report.instructions.values())
    found = [("warp instructions", f"{total}: " + ", ".join(
        f"{kind} {count}" for kind, count in sorted(report.instructions.items(), key=lambda pair: -pair[1])))] if total else []
    if total:
        found.append(("active threads", f"{100 * report.activity:.1f} % of those of warps"))
        found.append(("branches", f"{report.branches} of warps, {report.divergent} divergent"))
    for kind in ("load", "store", "atomic"):
        traffic = report.traffic("global", kind)
        if traffic.requests:
            found.append((f"global {kind}s", f"{traffic.asked} bytes asked for, {traffic.moved} moved in {traffic.moved // 32} "
                          f"sectors ({100 * traffic.efficiency:.0f} %)"))
    traffic = report.traffic("shared")
    if traffic.requests:
        found.append(("shared memory", f"{traffic.requests} requests, {traffic.passes} passes where {traffic.ideal} would do; "
                      f"worst conflict {traffic.conflict}-way" if traffic.conflict > 1 else
                      f"{traffic.requests} requests, {traffic.passes} passes, no conflict"))
    found.append(("time by the model", f"{1e6 * report.duration.seconds:.2f} us, bound by {report.duration.bound}"))
    return found


def _tables(report: KernelReport) -> list[tuple[Row, tuple[int, ...], list[Row]]]:
    """Returns the tables of a report that have rows: their headings, their columns of words, their rows."""
    tables: list[tuple[Row, tuple[int, ...], list[Row]]] = [
        (STAGE_HEADINGS, (0, 8), stages(report)), (HEADINGS, (1, 2), accesses(report))]
    return [table for table in tables if table[2]]


STAGE_HEADINGS = ("stage", "instructions", "active", "divergent", "global", "of moved", "passes", "conflict", "classes")


def stages(report: KernelReport) -> list[Row]:
    """Returns the rows of the table of stages: what their instructions are, and what they do to memory."""
    return [_stage_row(stage) for stage in report.stages if any(stage.instructions.values())]


def _stage_row(stage: StageReport) -> Row:
    there, shared = stage.traffic("global"), stage.traffic("shared")
    classes = sorted(stage.instructions.items(), key=lambda pair: -pair[1])
    return (stage.name or "(no stage)", str(sum(stage.instructions.values())), f"{100 * stage.activity:.0f} %",
            f"{stage.divergent} of {stage.branches}" if stage.branches else "", str(there.asked) if there.requests else "",
            f"{100 * there.efficiency:.0f} %" if there.requests else "", str(shared.passes) if shared.requests else "",
            str(shared.conflict) if shared.requests else "", _shortened([f"{kind} {count}" for kind, count in classes]))


def _shortened(words: list[str]) -> str:
    """The first of `words`, as many as a narrow column holds."""
    shown = words[0]
    for word in words[1:]:
        if len(shown) + len(word) > MOST_LETTERS:
            break
        shown += f", {word}"
    return shown


HEADINGS = ("line", "access", "memory", "requests", "asked", "moved", "of moved", "passes", "conflict")


def accesses(report: KernelReport) -> list[Row]:
    """Returns the rows of the table: the instructions that access memory, the costliest first."""
    costliest = sorted(report.accesses, key=lambda a: (-(a.traffic.moved // 32 + a.traffic.passes), a.line))
    rows = [_row(access) for access in costliest[:MOST_ACCESSES]]
    more = len(costliest) - MOST_ACCESSES
    return rows + [("", f"... and {more} more", *[""] * (len(HEADINGS) - 2))] * (more > 0)


def _row(access: Access) -> Row:
    traffic = access.traffic
    there = access.space == "global"
    shared = access.space == "shared"
    return (str(access.line), access.instruction.split()[0], ", ".join(access.memory), str(traffic.requests),
            str(traffic.asked), str(traffic.moved) if there else "", f"{100 * traffic.efficiency:.0f} %" if there else "",
            str(traffic.passes) if shared else "", f"{traffic.conflict}" if shared else "")


def _aligned(rows: Sequence[Row], words: tuple[int, ...]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) if column in words else cell.rjust(width)
                             for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def findings(report: KernelReport) -> list[str]:
    """Returns the lines about what was found."""
    if report.mode == "fast":
        return ["  nothing was counted or checked: the mode was fast"]
    if not report.findings:
        return ["  no findings"]
    return [f"  {line}" for finding in report.findings for line in str(finding).splitlines()]


def markup_of(report: KernelReport) -> str:
    """Returns a report for a notebook."""
    facts = element("table", *[element("tr", element("th", name), element("td", value)) for name, value in summary(report)])
    tables = [element("table", element("tr", *[element("th", name) for name in headings]),
                      *[element("tr", *[element("td", cell) for cell in row]) for row in rows])
              for headings, _, rows in _tables(report)]
    return fragment(title(report), joined(facts, *tables), element("pre", "\n".join(findings(report))))
