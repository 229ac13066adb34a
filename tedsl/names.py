"""Packages beside tedsl that programs also look for inside it: `import tedsl.topi.testing` is `import topi.testing`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

INSIDE = "tedsl.topi"


class BesideFinder:
    """Finds `tedsl.topi` and what is below it as the modules of `topi`: the same objects, not copies."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != INSIDE and not name.startswith(f"{INSIDE}."):
            return None
        loader: Any = _Loader()  # the base class that the type asks for would cost an import
        return ModuleSpec(name, loader)


class _Loader:
    """Gives a module that is loaded already, or is loaded now under its own name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(spec.name.removeprefix("tedsl."))
        self.own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.own  # the import system has put that of the other name there


def find_beside() -> None:
    """Lets imports find them; before the files in a package's folder, for `tedsl.topi` has the folder of `topi`."""
    if BesideFinder not in sys.meta_path:
        sys.meta_path.insert(0, BesideFinder)
