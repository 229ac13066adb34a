"""Loops become machine code."""
