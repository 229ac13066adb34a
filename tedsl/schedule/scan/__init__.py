"""Recurrences in a schedule: what belongs to a step, and what directives may do to it."""
