"""Lines that TVM's auto_scheduler wrote: `line.py` reads and writes them, `steps.py` makes schedules of their steps."""
