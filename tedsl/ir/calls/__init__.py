"""Signatures of the operators that expressions call."""
