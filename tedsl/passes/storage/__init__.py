"""Passes on memory: flatten buffers, share memory, rolling and double buffers, prefetch."""
