"""Directives on the memory of a stage, one file each: how it is laid out, and when it is filled."""
