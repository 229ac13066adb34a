"""What runs: arrays, the check of a call's arguments, compiled modules, threads, workspaces, timing, devices.

    symbols (what machine code may call) <- parallel, workspace, timing (LLVM IR texts that the JIT links once per process)
    device, array -> arguments (what a call accepts) -> module
    functions (by name) <- callbacks (kernels call them)      objects: convert, enabled

The names that programs use are loaded when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "Device": "device", "Module": "module", "NDArray": "array", "Object": "objects", "PackedFunc": "functions",
    "convert": "objects", "enabled": "objects", "get_global_func": "functions", "list_global_func_names": "functions",
    "load_module": "objects", "register_func": "functions", "remove_global_func": "functions",
}


_BELOW = {"DataType": ("dtype", "DType"), "const": ("build", "const")}
String = str  # texts of programs are Python's


def __getattr__(name: str) -> Any:
    if name in _BELOW:
        return getattr(import_module(f"tedsl.ir.{_BELOW[name][0]}"), _BELOW[name][1])
    if name not in _NAMES:
        raise AttributeError(f"module 'tedsl.runtime' has no attribute {name!r}")
    value = getattr(import_module(f"tedsl.runtime.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_BELOW})
