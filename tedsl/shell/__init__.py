"""Commands of `python -m tedsl`, one file each: `configure(parser)` declares the arguments, `run(options)` returns the status.

table: the names, one line of help each, and where the command lives; programs: schedules found in a user's file.
"""
