"""What programs take from `tvm._ffi`, which is TVM's bridge to C++: `from tvm._ffi.base import TVMError`."""

from tedsl.aliases import import_as
from tedsl.errors import TedslError as TVMError
from tedsl.errors import entries
from tedsl.runtime.functions import get_global_func, register_func

numeric_types = (int, float)
string_types = (str,)


def py_str(x: bytes) -> str:
    """The text of bytes in UTF-8."""
    return x.decode("utf-8")


_OBJECTS = "objects are Python's, and there is no FFI: a class needs no registration"

__all__ = ["TVMError", "get_global_func", "numeric_types", "py_str", "register_func", "string_types"]

entries(globals(), absent=dict.fromkeys(("register_object", "register_extension", "register_error", "_init_api"), _OBJECTS))
import_as(globals(), "base", "function", "node", "registry")
