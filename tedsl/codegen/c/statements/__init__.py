"""Statements in C: loops, parallel loops, allocations, assertions."""
