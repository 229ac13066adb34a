"""Numbers: ours beside numpy, torch and numba where installed, and the measured limit of the machine."""
