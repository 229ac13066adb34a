"""Checked mode: every access of memory is checked while the kernel runs, for `build(..., checked=True)`."""
