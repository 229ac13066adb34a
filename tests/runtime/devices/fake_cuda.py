"""What stands for libcuda in tests: functions by the same names, on memory of this process; `calls` is what was asked.

fails: function -> the number of the error that it returns. Results go where the caller says, as from the library.
"""

import ctypes

NAMES = {2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"), 100: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
         209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available"), 218: ("CUDA_ERROR_INVALID_PTX", "bad PTX"),
         700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered")}
ATTRIBUTES = {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 10: 32, 12: 65536, 13: 1_755_000,
              16: 132, 75: 9, 76: 0}


class FakeCuda:
    def __init__(self, devices=2):
        self.devices, self.calls, self.fails, self.blocks, self.kernels = devices, [], {}, {}, []
        self.next = 100

    def handle(self):
        self.next += 1
        return self.next

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*args):
            shown = tuple(arg for arg in args if isinstance(arg, (int, bytes, type(None))))
            if not name.startswith("cuGetError"):
                self.calls.append((name, *shown))
            if name in self.fails:
                if name == "cuModuleLoadDataEx":
                    log = (ctypes.c_void_p * 2).from_address(args[4])[0]
                    ctypes.memmove(log, b"ptxas error : line 3\0", 21)
                return self.fails[name]
            return getattr(self, f"do_{name}", self.do_nothing)(*args) or 0

        return call

    def asked(self, *names):
        return [call for call in self.calls if call[0] in names]

    def do_nothing(self, *args):
        if args and hasattr(args[0], "_obj"):
            args[0]._obj.value = self.handle()

    def do_cuDeviceGetCount(self, place):
        place._obj.value = self.devices

    def do_cuDeviceGet(self, place, number):
        place._obj.value = number + 7

    def do_cuDeviceGetName(self, place, size, device):
        place.value = b"Imagined 100"

    def do_cuDeviceGetAttribute(self, place, which, device):
        place._obj.value = ATTRIBUTES[which]

    def do_cuDeviceTotalMem_v2(self, place, device):
        place._obj.value = 1 << 36

    def do_cuMemAlloc_v2(self, place, size):
        block = ctypes.create_string_buffer(size + 256)
        address = ctypes.addressof(block) + -ctypes.addressof(block) % 256
        self.blocks[address] = block
        place._obj.value = address

    def do_cuMemFree_v2(self, address):
        del self.blocks[address]

    def do_cuMemcpyHtoDAsync_v2(self, target, source, size, stream):
        ctypes.memmove(target, source, size)

    do_cuMemcpyDtoHAsync_v2 = do_cuMemcpyDtoDAsync_v2 = do_cuMemcpyHtoDAsync_v2

    def do_cuMemcpyPeerAsync(self, target, context, source, of, size, stream):
        ctypes.memmove(target, source, size)

    def do_cuEventElapsedTime(self, place, start, end):
        place._obj.value = 2.5

    def do_cuLaunchKernel(self, function, *rest):
        self.kernels.append((rest[:6], *rest[6:8], rest[8], rest[9]))

    def do_cuGetErrorName(self, status, place):
        place._obj.value = NAMES[status][0].encode()

    def do_cuGetErrorString(self, status, place):
        place._obj.value = NAMES[status][1].encode()
