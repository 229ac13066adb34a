"""Arrays with a device: `nd.array(x)`, `nd.empty(shape)`. Kernels take numpy arrays as well."""

from typing import Any

from tedsl.errors import entries
from tedsl.runtime.array import NDArray, array, empty
from tedsl.runtime.devices.device import (
    Device,
    cpu,
    cuda,
    device,
    ext_dev,
    hexagon,
    metal,
    opencl,
    rocm,
    sim,
    vpi,
    vulkan,
    webgpu,
)
from tedsl.runtime.foreign import as_array, from_dlpack

context = device
gpu, cl, mtl = cuda, opencl, metal
TVMContext = Device  # its name before TVM 0.8



def numpyasarray(np_data: Any) -> NDArray:
    """Returns an array on the memory of numpy's."""
    return NDArray(as_array(np_data, "numpyasarray", "pass a numpy array"))


__all__ = ["Device", "NDArray", "TVMContext", "array", "cl", "context", "cpu", "cuda", "device", "empty", "ext_dev",
           "from_dlpack", "gpu", "hexagon", "metal", "mtl", "numpyasarray", "opencl", "rocm", "sim", "vpi", "vulkan", "webgpu"]


entries(globals(), instead={name: f"nd.array(numpy.{name}(shape, dtype))" for name in ("zeros", "ones", "full")})
