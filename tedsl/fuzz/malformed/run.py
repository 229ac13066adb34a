"""Runs drawn scripts of malformed input: each is refused by a TedslError, or works."""

from __future__ import annotations

import resource
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from tedsl.errors import TedslError
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.malformed.journals import journal_script
from tedsl.fuzz.malformed.nodes import PRELUDE, node_script
from tedsl.fuzz.malformed.texts import intrinsic_script, name_script, target_script
from tedsl.fuzz.report import Finding, Report
from tedsl.tune.measure.process import address_space_taken

KINDS: dict[Callable[[Draw], str], int] = {node_script: 60, journal_script: 15, target_script: 10, name_script: 10,
                                           intrinsic_script: 5}
MEMORY = 4 << 30  # bytes of address space: what multiplies a text by a large number must not take the machine's


def script_of(seed: int) -> str:
    """Script number `seed`; it stands after PRELUDE."""
    draw = Draw(f"malformed {seed}")
    return draw.weighted(KINDS)(draw)


def outcome_of(script: str) -> tuple[str, str] | None:
    """None if the script works, ("refused", words) if a TedslError refuses it, else the error's kind and words."""
    scope: dict[str, Any] = {}
    exec(PRELUDE, scope)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(script, "<malformed>", "exec"), scope)
    except TedslError as refusal:
        return "refused", str(refusal)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.filename.rpartition('/')[2]}:{place.name}", str(error)
    return None


def run_script(seed: int, report: Report, limited: bool | None = None) -> bool:
    """Draw and run script number `seed`, and count what happens. The process may take MEMORY more from then on."""
    if not limited:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = address_space_taken() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    script = script_of(seed)
    outcome = outcome_of(script)
    report.counts["sequences"] += 1
    if outcome is None:
        report.counts["accepted"] += 1
    elif outcome[0] == "refused":
        report.counts["refused"] += 1
    else:
        report.findings.append(Finding(seed, outcome[0], outcome[1], script))
    return True


def summary(report: Report) -> str:
    """The counts of a report, as one line of text."""
    counts = report.counts
    return (f"{counts['sequences']} malformed inputs, {len(report.findings)} findings: {counts['refused']} refused, "
            f"{counts['accepted']} accepted")
