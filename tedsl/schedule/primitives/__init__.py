"""The directives, one file each. A directive looks, checks everything, then changes: when it raises, nothing has changed."""
