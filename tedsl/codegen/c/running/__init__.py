"""The C compiler of this machine, and modules that it has compiled."""
