"""Drop the promise that the buffers of a function do not alias, for `PassContext(config={"tir.noalias": False})`."""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.ir.func import RECOMPUTED, PrimFunc


def allow_aliasing(func: PrimFunc) -> PrimFunc:
    """Returns `func` without the attribute tir.noalias; itself if it has none."""
    if "tir.noalias" not in func.attrs:
        return func
    if RECOMPUTED in func.attrs:
        raise LoweringError(f"{func.attrs[RECOMPUTED]} is split with tail=\"shift_inwards\" and computes elements "
                            "twice: tir.noalias=False allows them to be overwritten in between",
                            hint='use tail="guard", or leave tir.noalias')
    attrs = {key: value for key, value in func.attrs.items() if key != "tir.noalias"}
    return func.replace(attrs=attrs)
