"""Loops for the operators: which stages run together, and how, on which target. `schedule(outs)` is the way in.

cpu/ holds the schedules for processors, gpu/ those for graphics processors.
"""

from topi.schedules.schedule import schedule

__all__ = ["schedule"]
