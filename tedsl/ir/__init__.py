"""What a program is: dtypes, expressions, statements, functions, and the tools to walk, rebuild, print and run them.

    dtype -> node -> expr (what everything means) -> build (making expressions) -> iters, buffer -> stmt -> func
    visitor, rewriter, substitute: walk and rebuild      equal, text, verify, evaluate: compare, print, check, run

`tedsl.ir.structural_equal` and the other names that programs use are loaded when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "Array": "container", "BaseFunc": "func", "GlobalVar": "func", "IRModule": "func", "IterVar": "iters",
    "Map": "container", "Op": "ops", "PointerType": "types", "PrimExpr": "expr", "PrimType": "types", "Range": "iters",
    "assert_structural_equal": "walk.equal", "structural_equal": "walk.equal", "structural_hash": "walk.equal",
}


def __getattr__(name: str) -> Any:
    if name == "container":
        return import_module("tedsl.ir.container")
    if name == "transform":
        return import_module("tedsl.transform")  # it stands above; programs also look for it here
    if name not in _NAMES:
        raise AttributeError(f"module 'tedsl.ir' has no attribute {name!r}")
    value = getattr(import_module(f"tedsl.ir.{_NAMES[name]}"), {"PrimExpr": "Expr", "BaseFunc": "PrimFunc"}.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, "container", "transform"})
