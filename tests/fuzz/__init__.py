"""Random programs under random schedules: interpreter, compiled code and numpy agree; planted faults are found.

`python -m tedsl fuzz --seconds 60` runs and counts; `python -m tests.fuzz.mutations` plants the faults.
"""
