"""Checks the arguments and the target of an intrinsic."""

from __future__ import annotations

import operator
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.target.current import as_target
from tedsl.target.target import Target


def whole(name: str, what: str, value: Any) -> int:
    """Returns `value` as an int; ArgumentTypeError that names the intrinsic and the argument if it is not one."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{name}: {what} is a whole number, not {value!r}")
    return operator.index(value)


def target_with(name: str, target: Any, arch: str, *features: str) -> Target:
    """Returns `target` (None: the current one, else this machine); ArgumentError names a required feature that it lacks."""
    machine = as_target(target)
    missing = [feature for feature in features if feature not in machine.features]
    has = machine.architecture
    if has != arch or missing:
        lacks = f"it is {has}, the instruction one of {arch}" if has != arch else f"it lacks {missing[0]}"
        example = "neoverse-n1" if arch == "aarch64" else "sapphirerapids"
        system = "" if has == arch else f" -mtriple={'aarch64' if arch == 'aarch64' else 'x86_64'}-linux-gnu"
        raise ArgumentError(f"{name} needs {', '.join(features) or arch}; target {machine}: {lacks}",
                            hint=f"for example llvm -mcpu={example}{system}; without it, leave the loops to vectorize")
    return machine
