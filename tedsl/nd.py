"""Arrays with a device: `nd.array(x)`, `nd.empty(shape)`. Kernels take numpy arrays as well."""

from tedsl.errors import entries
from tedsl.runtime.array import NDArray, array, empty
from tedsl.runtime.devices.device import Device, cpu, cuda, device, metal, opencl, rocm, sim, vulkan
from tedsl.runtime.foreign import from_dlpack

context = device
gpu, cl, mtl = cuda, opencl, metal
TVMContext = Device  # its name before TVM 0.8

__all__ = ["Device", "NDArray", "TVMContext", "array", "cl", "context", "cpu", "cuda", "device", "empty", "from_dlpack", "gpu",
           "metal", "mtl", "opencl", "rocm", "sim", "vulkan"]


entries(globals(), instead={name: f"nd.array(numpy.{name}(shape, dtype))" for name in ("zeros", "ones", "full")})
