"""Modules built on top of the language, such as shipped tensor intrinsics (`intrinsics/`).

Its modules are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tedsl.absent import answer_in, instead_in
from tedsl.errors import missing_name

if TYPE_CHECKING:
    from tedsl.contrib import cblas as cblas
    from tedsl.contrib import cc as cc
    from tedsl.contrib import clang as clang
    from tedsl.contrib import dlpack as dlpack
    from tedsl.contrib import download as download
    from tedsl.contrib import intrinsics as intrinsics
    from tedsl.contrib import nvcc as nvcc
    from tedsl.contrib import pickle_memoize as pickle_memoize
    from tedsl.contrib import random as random
    from tedsl.contrib import sparse as sparse
    from tedsl.contrib import tar as tar
    from tedsl.contrib import tedd as tedd
    from tedsl.contrib import utils as utils

_MODULES = ("cblas", "cc", "clang", "dlpack", "download", "intrinsics", "nvcc", "pickle_memoize", "random", "sparse", "tar",
            "tedd", "utils")
_OLDER = {"util": "utils"}  # names in TVM 0.6 and 0.7


if not TYPE_CHECKING:  # for type checkers a misspelled name is an error
    def __getattr__(name: str) -> Any:
        name = _OLDER.get(name, name)
        if name not in _MODULES:
            raise missing_name(__name__, name, _MODULES, absent=instead_in("contrib"))
        return import_module(f"tedsl.contrib.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


answer_in(globals())
