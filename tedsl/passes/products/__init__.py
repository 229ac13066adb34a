"""Passes that take sums of products at once, by the instructions of a machine."""
