"""The operators of topi and topi.nn by their names, on tensors with values: functional.conv2d(x, w, 1, 1, 1).

Each is `op` of the function of topi, and takes its arguments. `mean`, `var`, `matmul`, `reshape`, `transpose` and `power` take
numpy's.
"""

from __future__ import annotations

from typing import Any

import topi
from tedsl.autograd import formulas
from tedsl.autograd.operation import op
from tedsl.errors import missing_name

_OWN = {"mean": formulas.mean, "var": formulas.variance, "matmul": formulas.matmul, "reshape": formulas.reshape,
        "transpose": formulas.transpose}
_NOT_OPERATORS = {"testing", "cuda", "generic", "x86", "image", "nn", "tag", "utils"}


def __getattr__(name: str) -> Any:
    function = _OWN.get(name)
    for module in (topi, topi.nn):
        if function is None and not name.startswith("_") and name not in _NOT_OPERATORS and name in module.__all__:
            function = getattr(module, name)
    if function is None or not callable(function):
        raise missing_name(__name__, name, __dir__())
    globals()[name] = op(function)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*_OWN, *topi.__all__, *topi.nn.__all__} - _NOT_OPERATORS)
