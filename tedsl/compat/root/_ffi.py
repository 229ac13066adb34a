"""What programs take from `tvm._ffi`, which is TVM's bridge to C++: `from tvm._ffi.base import TVMError`."""

import sys
from typing import Any

from tedsl.aliases import import_as
from tedsl.compat import node
from tedsl.error import register_error
from tedsl.errors import TedslError as TVMError
from tedsl.errors import entries
from tedsl.ir.dtype import DataTypeCode
from tedsl.ir.dtype import DataTypeCode as TypeCode
from tedsl.ir.dtype import DType as DataType
from tedsl.ir.dtype import DType as TVMType
from tedsl.runtime.devices.device import Device as TVMContext
from tedsl.runtime.functions import get_global_func, list_global_func_names, register_func, remove_global_func

numeric_types = (int, float)
string_types = (str,)


def py_str(x: bytes) -> str:
    """The text of bytes in UTF-8."""
    return x.decode("utf-8")



def register_object(type_key: Any = None) -> Any:
    """Returns a class as it is: objects are Python's. Also a decorator with a name."""
    return type_key if isinstance(type_key, type) else lambda cls: cls


def register_extension(cls: Any, fcreate: Any = None) -> Any:
    """Returns a class as it is: a call takes its objects where they have DLPack, the buffer protocol, or a `_tvm_handle`, an
    NDArray.
    """
    return cls


def _init_api(namespace: str, target_module_name: str | None = None) -> None:
    """Does nothing: functions of modules are Python's."""


__all__ = ["DataType", "DataTypeCode", "TVMContext", "TVMError", "TVMType", "TypeCode", "get_global_func",
           "list_global_func_names", "numeric_types", "py_str", "register_error", "register_extension", "register_func",
           "register_object", "remove_global_func", "string_types"]

entries(globals())
import_as(globals(), "base", "function", "registry")
sys.modules[f"{__name__}.node"] = node
sys.modules[f"{__name__}.runtime_ctypes"] = runtime_ctypes = sys.modules[__name__]
