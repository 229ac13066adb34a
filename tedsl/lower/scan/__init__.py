"""Lowering of recurrences: the loop over the steps, and the part of each stage that a step needs."""
