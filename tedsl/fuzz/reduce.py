"""Reduction of failing cases: fewer directives, options, outputs and formulas, as long as they fail in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tedsl.fuzz.case import Case
from tedsl.fuzz.check import expected_arrays
from tedsl.fuzz.run import Outcome, outcome_apart


def reduced(case: Case) -> Case:
    """The smallest case that the steps below reach, in all ways of this machine; the case itself if it does not fail."""
    quick = False
    outcome = outcome_apart(case)
    if outcome is None:  # it may take machine code that LLVM has hardly touched to see it
        quick, outcome = True, outcome_apart(case, quick=True)
    if outcome is None or outcome[0] == "refused":
        return case
    kind = outcome[0]
    options = {"quick": True} if quick else {"interpret": False} if kind in ("crash", "hang") else {
        "compiled": kind in ("machine code", "bits")}

    def fails(smaller: Case) -> bool:
        found: Outcome | None = outcome_apart(smaller, patience=10.0, **options)
        return found is not None and found[0] == kind

    return smallest(case, fails)


def smallest(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that the steps below reach and that fails."""
    changed = True
    while changed:
        changed = False
        for step in (_fewer_directives, _fewer_outputs, _plainer, _simpler):
            while (smaller := next(filter(fails, step(case)), None)) is not None:
                case, changed = smaller, True
    return case


def _fewer_outputs(case: Case) -> Iterator[Case]:
    return filter(_has_its_scans, _with_other_outputs(case))


def _with_other_outputs(case: Case) -> Iterator[Case]:
    if len(case.outputs) > 1:
        for name in case.outputs:
            yield _with_outputs(case, [name])
        for name in case.outputs:
            yield _with_outputs(case, [other for other in case.outputs if other not in _group(case, name)])
    yield from _other_outputs(case)


def _fewer_directives(case: Case) -> Iterator[Case]:
    for size in (len(case.schedule), len(case.schedule) // 2, len(case.schedule) // 4):
        for at in range(0, len(case.schedule), max(size, 1)) if size > 1 else ():
            yield replace(case, schedule=case.schedule[:at] + case.schedule[at + size:])
    for at in reversed(range(len(case.schedule))):
        yield replace(case, schedule=case.schedule[:at] + case.schedule[at + 1:])


def _plainer(case: Case) -> Iterator[Case]:
    for name in case.config:
        yield replace(case, config={k: v for k, v in case.config.items() if k != name})
    if case.target.startswith("llvm -"):
        yield replace(case, target="llvm")
    for name, data in case.data.items():
        if data.layout != "compact" or data.special:
            yield replace(case, data={**case.data, name: replace(data, layout="compact", special=False)})


def _simpler(case: Case) -> Iterator[Case]:
    for number, text in enumerate(case.lines):
        for shorter in _simpler_formulas(text):
            lines = [*case.lines[:number], shorter, *case.lines[number + 1:]]
            try:
                expected_arrays(replace(case, lines=lines))
            except Exception:  # not a program any more
                continue
            yield replace(case, lines=lines, exact=case.exact)


def _group(case: Case, name: str) -> list[str]:
    """The outputs of the operation that makes `name`."""
    heads = [text.split(" = ")[0].split(", ") for text in case.lines]
    return next((head for head in heads if name in head), [name])


def _with_outputs(case: Case, outputs: list[str]) -> Case:
    """The case with these outputs only, and the lines that they need."""
    needed = set(outputs)
    lines: list[str] = []
    for text in reversed(case.lines):
        defined = set(text.split(" = ")[0].split(", "))
        if defined & needed:
            lines.insert(0, text)
            needed |= set(re.findall(r"[A-Za-z_]\w*", text.partition(" = ")[2]))
    outputs = _group(case, outputs[0]) if len(outputs) == 1 else outputs
    args = [a for a in case.args if a in needed and a not in case.outputs] + outputs
    return replace(case, lines=lines, outputs=outputs, args=args,
                   data={k: v for k, v in case.data.items() if k in needed},
                   sizes={k: v for k, v in case.sizes.items() if k in needed})


def _other_outputs(case: Case) -> Iterator[Case]:
    """Variants of the case with an intermediate tensor as the only output."""
    definitions = [text.split(" = ")[0].split(", ") for text in case.lines if " = te.compute(" in text]
    for group in definitions:
        if not set(group) & set(case.outputs):
            yield _with_outputs(case, group)


def _has_its_scans(case: Case) -> bool:
    """Whether each placeholder that is no argument is the state of a scan. Without that scan it would be a tensor of any rows,
    also before the first, and the case fails for that alone.
    """
    scans = " ".join(text for text in case.lines if " = te.scan(" in text)
    names = (text.split(" = ")[0] for text in case.lines if " = te.placeholder(" in text)
    return all(name in case.args or re.search(rf"\b{name}\b", scans) for name in names)


def _simpler_formulas(text: str) -> Iterator[str]:
    """Variants of a line with a part of its formula in place of the whole."""
    head, middle, body = text.partition("lambda")
    if not middle or "comm_reducer" in text:
        return
    for match in re.finditer(r"\((?=[^()]*(?:\([^()]*\)[^()]*)*\))", body):
        end = _closing(body, match.start())
        inside = body[match.start() + 1:end]
        for operator in (" + ", " - ", " * ", ", "):
            for side in inside.split(operator) if operator in inside else ():
                yield head + middle + body[:match.start()] + f"({side})" + body[end + 1:]


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)
