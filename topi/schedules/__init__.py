"""Loops for the operators: which stages run together, and how, on which target. `schedule(outs)` is the way in."""

from topi.schedules.schedule import schedule

__all__ = ["schedule"]
