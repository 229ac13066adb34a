"""Recurrences: `te.scan`, and the order in which its steps depend on each other."""
