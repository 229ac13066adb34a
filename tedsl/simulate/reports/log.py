"""The reports of the launches of this process."""

from __future__ import annotations

from collections import deque

from tedsl.simulate.reports.report import KernelReport

MOST = 1000  # that are kept
_log: deque[KernelReport] = deque(maxlen=MOST)


class Reports(tuple[KernelReport, ...]):
    """Reports of launches, in order; printed one below the other."""

    def __str__(self) -> str:
        return "\n\n".join(str(one) for one in self) or "no kernel has been simulated"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self)


def keep(report: KernelReport) -> None:
    """Adds a report."""
    _log.append(report)


def report() -> Reports:
    """Returns the reports of all launches since the start, or since `reset`; of many the last 1000."""
    return Reports(_log)


def last_report() -> KernelReport | None:
    """Returns the report of the last launch; None before the first."""
    return _log[-1] if _log else None


def reset() -> None:
    """Forgets all reports."""
    _log.clear()
