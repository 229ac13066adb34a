"""The text of a file in C: expressions as text, names, types, helper functions in order, the header."""
