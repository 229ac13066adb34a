"""Random programs under random schedules: interpreter, machine code and numpy agree, or the schedule is refused.

    python -m tedsl fuzz --seconds 60 --seed 0
"""
