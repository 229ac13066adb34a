"""Checks the arguments of a call, each alone and against the others; errors say what to do instead."""
