"""Passes: loops → loops, one file each. `default.py` reads as the table of contents; `machine/` fits loops to a target,
`facts/` is what passes ask about a program."""
