"""What TVM has of topi in C++, by its names there: operators as in topi, schedules that take the target first.

    topi.cpp.generic.default_schedule(target, [C], False)
"""

from __future__ import annotations

import sys
from typing import Any

from topi.cpp import cuda as cuda
from topi.cpp import generic as generic
from topi.cpp import x86 as x86

rocm = cuda


def __getattr__(name: str) -> Any:
    return getattr(sys.modules["topi"], name)  # which imports this
