"""Random programs under random schedules: interpreter, machine code and numpy agree, or the schedule is refused.

    python -m tedsl fuzz --seconds 60 --seed 0

directives/ draws schedules, one file for each group of directives; malformed/ makes nodes and texts that must be refused;
targets/ runs programs in C and on devices.
"""
