"""Functions that return targets, by TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.target.target import Target


def cuda(model: str = "unknown", arch: str | None = None, options: str | Sequence[str] | None = None) -> Target:
    """Returns the target "cuda" for the processor `model` of architecture `arch` ("sm_80"), with further options as in a
    notation.
    """
    more = [options] if isinstance(options, str) else list(options or ())
    known = [f"-{name}={value}" for name, value in (("model", model), ("arch", arch)) if value not in (None, "unknown")]
    return Target(" ".join(["cuda", *known, *more]))


def rocm(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Returns the target "rocm" for the processor `model`, with further options as in a notation."""
    more = [options] if isinstance(options, str) else list(options or ())
    return Target(" ".join(["rocm", *([] if model == "unknown" else [f"-model={model}"]), *more]))


def create(target: Any) -> Target:
    """Returns a target from a str, a dict or a Target: the older name of `Target(target)`."""
    return Target(target)
