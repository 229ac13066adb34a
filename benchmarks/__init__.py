"""Numbers: ours beside numpy, torch and numba where installed, and the measured limit of the machine."""

import os

os.environ["TEDSL_CACHE_DIR"] = "off"  # times of builds are those of builds
