"""The OpenCL device of the machine, for tests that run kernels on it; without one they are left out with a line.

PoCL keeps what it compiles in a folder of this process, not in the home of the user.
"""

import atexit
import os
import shutil
import tempfile

import pytest

if "POCL_CACHE_DIR" not in os.environ:
    os.environ["POCL_CACHE_DIR"] = tempfile.mkdtemp(prefix="tedsl-pocl-")
    atexit.register(shutil.rmtree, os.environ["POCL_CACHE_DIR"], ignore_errors=True)

from tedsl.runtime.devices.table import driver_of

DRIVER = driver_of("opencl")
MISSING = DRIVER.missing(0)
needs_opencl = pytest.mark.skipif(bool(MISSING), reason=MISSING or "there is one")
