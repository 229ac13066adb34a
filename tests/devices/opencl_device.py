"""The OpenCL device of the machine, for tests that run kernels on it; without one they are left out with a line, and where its
compiler does not know the processor (PoCL's LLVM may be older than that).

    python -m tests.devices.opencl_device        says why they are left out, if they are

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


def why_missing() -> str:
    """Why no kernel can run on the device; "" where one can."""
    missing = DRIVER.missing(0)
    if missing:
        return missing
    import pyopencl

    context = pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]])
    try:
        pyopencl.Program(context, "kernel void nothing(global float* a) { a[0] = 1.0f; }").build()
    except pyopencl.Error as error:
        unknown = "unknown target CPU" in str(error)
        return "the compiler of the OpenCL device does not know this processor" if unknown else ""
    return ""


MISSING = why_missing()
needs_opencl = pytest.mark.skipif(bool(MISSING), reason=MISSING or "there is one")

if __name__ == "__main__":
    print(MISSING)
