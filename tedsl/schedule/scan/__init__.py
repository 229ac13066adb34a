"""Recurrences in a schedule: which stages belong to a step, and which directives they allow."""
