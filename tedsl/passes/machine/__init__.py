"""Passes that need to know the machine: they run in `build`, after what `lower` prints."""
