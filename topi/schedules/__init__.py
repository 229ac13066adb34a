"""Schedules for operators: which stages form a loop nest, and their loops for each target. The entry point is `schedule(outs)`.

cpu/ holds the schedules for processors, gpu/ those for graphics processors.
"""

from topi.schedules.schedule import schedule

__all__ = ["schedule"]
