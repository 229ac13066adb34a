"""Recurrences: the loop over the steps, and which part of each stage a step needs."""
