"""Loops that are threads of a device, and reductions across them."""
