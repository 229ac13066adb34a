"""Modules built on top of the language, such as shipped tensor intrinsics (`intrinsics/`).

Its modules are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tedsl.errors import missing_name

if TYPE_CHECKING:
    from tedsl.contrib import cc as cc
    from tedsl.contrib import clang as clang
    from tedsl.contrib import intrinsics as intrinsics
    from tedsl.contrib import sparse as sparse
    from tedsl.contrib import utils as utils

_MODULES = ("cc", "clang", "intrinsics", "sparse", "utils")
_OLDER = {"util": "utils"}  # names in TVM 0.6 and 0.7


if not TYPE_CHECKING:  # for type checkers a misspelled name is an error
    def __getattr__(name: str) -> Any:
        name = _OLDER.get(name, name)
        if name not in _MODULES:
            raise missing_name(__name__, name, _MODULES)
        return import_module(f"tedsl.contrib.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
