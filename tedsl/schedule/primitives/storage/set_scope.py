"""set_scope: the memory in which a stage is kept."""

from __future__ import annotations

from typing import Any

from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.primitives.cache_write import cache_write
from tedsl.schedule.primitives.storage.owned import check_scope, copied_from
from tedsl.schedule.state import StageState, show


def set_scope(stage: StageState, scope: Any) -> None:
    """Keep the values of `stage` in memory of `scope`: "global", "shared", "local", ..., also with a suffix ("local.L1").

    The memory of an output is the caller's, which is global: in other memory it is computed by a stage of its own, as by
    cache_write, from which `stage` copies.
    """
    directive = f"set_scope({show(scope)})"
    stage.must_have_loops(directive)
    check_scope(stage, directive, scope)
    if not stage.is_output or scope in ("", "global"):
        stage.scope = scope
    elif type(stage.op) in (ComputeOp, TensorComputeOp):
        cache_write([stage], [stage.op.output(number) for number in range(stage.op.num_outputs)], scope)
    else:
        raise stage.refuse(directive, f"{stage.name} is an output: the caller's memory is global",
                           hint=f"{copied_from(stage, scope, f'in {scope} memory')}, and a copy is the output")
