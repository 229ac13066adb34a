"""The names of `T.axis`: the axes of blocks."""

from __future__ import annotations

from typing import Any

from tedsl.compat.tvmscript.declarations import Axis
from tedsl.errors import ArgumentError


def _axis(dom: Any, value: Any, is_reduction: bool) -> Axis:
    return Axis(dom[0] if isinstance(dom, tuple) else 0, value, is_reduction)


def spatial(dom: Any, value: Any, dtype: Any = None) -> Axis:
    """An axis whose elements do not depend on each other."""
    return _axis(dom, value, False)


S = opaque = scan = spatial


def reduce(dom: Any, value: Any, dtype: Any = None) -> Axis:
    """An axis that is reduced over: `T.init()` runs at its begin."""
    return _axis(dom, value, True)


R = reduce


def remap(kinds: str, bindings: Any, dtype: Any = None) -> Any:
    """Axes over the loops: "SSR", [i, j, k]."""
    if len(kinds) != len(bindings):
        raise ArgumentError(f"T.axis.remap: {len(kinds)} kinds for {len(bindings)} loops")
    if set(kinds) - {"S", "R"}:
        raise ArgumentError(f"T.axis.remap: axes are S (spatial) or R (reduced), not {kinds!r}",
                            hint='T.axis.remap("SSR", [i, j, k])')
    made = [_axis(0, value, kind == "R") for kind, value in zip(kinds, bindings)]
    return made if len(made) > 1 else made[0]
