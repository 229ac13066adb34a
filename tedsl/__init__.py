"""tedsl: tensor expressions, schedules and a compiler to machine code, in Python."""
