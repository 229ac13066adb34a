"""Emits values: one file for each kind of operation, by dtype."""
