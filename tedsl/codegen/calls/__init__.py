"""Calls between functions of one module, for every backend: which function calls which, and whether the arguments fit."""
