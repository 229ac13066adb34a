"""Loops: cut in parts, copied, turned into vectors, and freed of conditions that do not change."""
