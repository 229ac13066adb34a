"""Calls entry points for C with DLPack's tensors, made of numpy arrays."""

import ctypes

import numpy as np

CODES = {"i": 0, "u": 1, "f": 2, "b": 6, "c": 5}


class DLTensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64))


def tensor(value, **changes):
    """The DLTensor of an array or number. changes: of its fields."""
    array = np.asarray(value)
    code = 4 if array.dtype.name == "bfloat16" else CODES[array.dtype.kind]
    numbers = ctypes.c_int64 * array.ndim
    shape = numbers(*array.shape) if array.ndim else None
    strides = numbers(*[step // array.itemsize for step in array.strides]) if array.ndim else None
    made = DLTensor(array.ctypes.data, 1, 0, array.ndim, code, 8 * array.itemsize, 1, shape, strides, 0)
    for name, change in changes.items():
        setattr(made, name, change)
    made.keep = array
    return made


class Library:
    """A shared library. `library(name, *args)`: the status and the message of a call, whose arguments are arrays, numbers,
    tensors or None.
    """

    def __init__(self, path, prefix):
        self.loaded, self.prefix = ctypes.CDLL(str(path)), prefix

    def __call__(self, name, *args, size=1000, count=None):
        tensors = [a if a is None or isinstance(a, DLTensor) else tensor(a) for a in args]
        addresses = [None if t is None else ctypes.pointer(t) for t in tensors]
        pointers = (ctypes.POINTER(DLTensor) * max(len(tensors), 1))(*addresses)
        message = ctypes.create_string_buffer(b"untouched", 1000)
        function = self.loaded[f"{self.prefix}_{name}"]
        function.argtypes = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t)
        status = function(pointers, len(args) if count is None else count, message if size else None, size)
        return status, message.value.decode()
