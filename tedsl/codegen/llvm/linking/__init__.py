"""Linking of machine code into the process: objects are read, linked, and turned into functions."""
