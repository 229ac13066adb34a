"""The protocol of modules: the interface of compiled code that other packages bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class RuntimeModule(Protocol):
    """Functions by name, and a form in which they can be kept.

    A module that was imported into another (`Module.import_module`) is saved with it by `save_to_bytes` and comes back through
    the function registered as `runtime.module.loadbinary_<type_key>`, which takes those bytes.
    """

    @property
    def type_key(self) -> str:
        """The name of this kind of module, an identifier: "dnnl", "json_rt"."""
        ...

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Returns the function called `name`; raises an AttributeError if there is none.
        query_imports: look into imported modules, too.
        """
        ...

    def get_source(self, fmt: str = "") -> str:
        """Returns the module as text, in the form `fmt`; "" is the form that its kind prefers."""
        ...

    def save_to_bytes(self) -> bytes:
        """Returns the module as bytes, from which its kind's loader makes an equal one."""
        ...
