"""The runtime: arrays, the check of a call's arguments, compiled modules, threads, workspaces, timing, devices.

    symbols (what machine code may call) <- parallel, workspace, timing (LLVM IR texts that the JIT links once per process)
    array -> arguments/ (what a call accepts) -> module; modules/: files of modules
    devices/: `device`, where arrays are; those beside the processor: drivers, arrays there, calls that launch kernels
    functions (by name) <- callbacks (kernels call them)      objects: convert, enabled

The names that programs use are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tedsl.absent import answer_in
from tedsl.aliases import import_as
from tedsl.errors import missing_name, public

if TYPE_CHECKING:
    from tedsl.ir.dtype import DataTypeCode as DataTypeCode
    from tedsl.ir.dtype import DType
    from tedsl.runtime.array import NDArray as NDArray
    from tedsl.runtime.devices.device import Device as Device
    from tedsl.runtime.devices.device import cpu as cpu
    from tedsl.runtime.devices.device import cuda as cuda
    from tedsl.runtime.devices.device import device as device
    from tedsl.runtime.devices.device import metal as metal
    from tedsl.runtime.devices.device import opencl as opencl
    from tedsl.runtime.devices.device import rocm as rocm
    from tedsl.runtime.devices.device import vulkan as vulkan
    from tedsl.runtime.functions import PackedFunc as PackedFunc
    from tedsl.runtime.functions import get_global_func as get_global_func
    from tedsl.runtime.functions import list_global_func_names as list_global_func_names
    from tedsl.runtime.functions import register_func as register_func
    from tedsl.runtime.functions import remove_global_func as remove_global_func
    from tedsl.runtime.module import Module as Module
    from tedsl.runtime.modules.files import load_module as load_module
    from tedsl.runtime.modules.files import system_lib as system_lib
    from tedsl.runtime.modules.params import load_param_dict as load_param_dict
    from tedsl.runtime.modules.params import save_param_dict as save_param_dict
    from tedsl.runtime.modules.protocol import RuntimeModule as RuntimeModule
    from tedsl.runtime.objects import convert as convert
    from tedsl.runtime.objects import enabled as enabled

    DataType, gpu, cl, mtl, convert_to_object = DType, cuda, opencl, metal, convert

_NAMES = {
    "Device": "devices.device", "device": "devices.device", "cpu": "devices.device", "cuda": "devices.device",
    "metal": "devices.device", "opencl": "devices.device", "rocm": "devices.device", "vulkan": "devices.device",
    "vpi": "devices.device", "ext_dev": "devices.device",
    "TVMContext": "devices.device:Device", "cl": "devices.device:opencl", "gpu": "devices.device:cuda",
    "mtl": "devices.device:metal",
    "convert_to_object": "objects:convert",
    "Module": "module", "NDArray": "array", "Object": "objects", "PackedFunc": "functions",
    "convert": "objects", "enabled": "objects", "get_global_func": "functions", "list_global_func_names": "functions",
    "load_module": "modules.files", "system_lib": "modules.files", "RuntimeModule": "modules.protocol",
    "register_func": "functions", "remove_global_func": "functions", "load_param_dict": "modules.params",
    "save_param_dict": "modules.params",
}


_BELOW = {"DataType": ("dtype", "DType"), "DataTypeCode": ("dtype", "DataTypeCode")}
_ABOVE = dict.fromkeys(("ADT", "ShapeTuple", "tuple_object"), "tedsl.compat.adt")
String = str  # texts of programs are Python's


if not TYPE_CHECKING:  # for type checkers a misspelled name is an error
    def __getattr__(name: str) -> Any:
        if name == "ndarray":
            return import_module("tedsl.nd")  # it and the next stand above; programs also look for them here
        if name == "const":
            return import_module("tedsl.te").const
        if name in _BELOW:
            return getattr(import_module(f"tedsl.ir.{_BELOW[name][0]}"), _BELOW[name][1])
        if name in _ABOVE:
            return getattr(import_module(_ABOVE[name]), name)
        if name not in _NAMES:
            raise missing_name(__name__, name, _NAMES)
        home, _, own = _NAMES[name].partition(":")
        value = getattr(import_module(f"tedsl.runtime.{home}"), own or name)
        globals()[name] = public(value, __name__, name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_BELOW, *_ABOVE, "const", "ndarray"})
import_as(globals(), "container", "object", "object_generic", "packed_func")
answer_in(globals())
