"""Calls of operators: what fits."""
