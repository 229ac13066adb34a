"""Random programs under random schedules: interpreter, compiled code and numpy agree; planted faults are found.

`python -m tests.fuzz --count 1000 --seed 0` runs and counts; `python -m tests.fuzz.mutations` plants the faults.
"""
