"""What programs take from `tvm._ffi`, which is TVM's bridge to C++: `from tvm._ffi.base import TVMError`."""

import sys

from tedsl.aliases import import_as
from tedsl.compat import node
from tedsl.errors import TedslError as TVMError
from tedsl.errors import entries
from tedsl.ir.dtype import DType as TVMType
from tedsl.runtime.devices.device import Device as TVMContext
from tedsl.runtime.functions import get_global_func, register_func

numeric_types = (int, float)
string_types = (str,)


def py_str(x: bytes) -> str:
    """The text of bytes in UTF-8."""
    return x.decode("utf-8")


_OBJECTS = "objects are Python's, and there is no FFI: a class needs no registration"

__all__ = ["TVMContext", "TVMError", "TVMType", "get_global_func", "numeric_types", "py_str", "register_func", "string_types"]

entries(globals(), absent=dict.fromkeys(("register_object", "register_extension", "register_error", "_init_api"), _OBJECTS))
import_as(globals(), "base", "function", "registry")
sys.modules[f"{__name__}.node"] = node
sys.modules[f"{__name__}.runtime_ctypes"] = runtime_ctypes = sys.modules[__name__]
