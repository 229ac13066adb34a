"""Passes that depend on the target machine: they run in `build`, after the loops that `lower` prints."""
