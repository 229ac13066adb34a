"""pragma: an annotation of a loop that tells passes what to do with it."""

from __future__ import annotations

import warnings
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Expr, StringImm
from tedsl.ir.source_line import user_level
from tedsl.schedule.given_numbers import whole_number
from tedsl.schedule.primitives.unroll import unroll
from tedsl.schedule.primitives.vectorize import vectorize
from tedsl.schedule.state import StageState, describe, show

CODES = ("import_c", "import_llvm")  # their value is a text
COUNTS = ("auto_unroll_max_step", "unroll_explicit")  # their value is a number
PRAGMAS = (*COUNTS, "parallel_launch_point", "parallel_stride_pattern", "parallel_barrier_when_finish", *CODES,
           "debug_skip_region", "loop_partition_hint", "bfloat16_pairs", "tile_products", "maxima_without_nan",
           "exp_at_most_one")
RESERVED = ("joined",)  # the attribute pragma_joined is that of compute_with (JOINED of `tedsl/ir/stmt.py`)
CHOICES = ("unroll", "vectorize", *PRAGMAS)


def pragma(stage: StageState, loop: Any, kind: Any, value: Any = None) -> None:
    """Attach the pragma `kind` with `value` (a number, a string or None) to `loop`. One that tedsl does not know stays on the
    loop, as the attribute "pragma_" + kind, with a warning.
    """
    directive = f"pragma({show(loop)}, {show(kind)}{'' if value is None else f', {show(value)}'})"
    stage.position_of(loop, directive)
    if not isinstance(kind, str):
        raise stage.refuse(directive, f"the pragma is a string, got {describe(kind)}",
                           hint='for example "auto_unroll_max_step"')
    if kind == "unroll":
        return unroll(stage, loop)
    if kind == "vectorize":
        return vectorize(stage, loop)
    if kind not in PRAGMAS:
        _keep_for_passes_of_users(stage, kind, directive)
    checked = _value(stage, directive, kind, value)
    attr = stage.attr_of(loop)
    stage.set_attr(loop, pragma_keys=(*attr.pragma_keys, StringImm(kind)), pragma_values=(*attr.pragma_values, checked))
    return None


def _keep_for_passes_of_users(stage: StageState, kind: str, directive: str) -> None:
    """Warns of a pragma that no pass of tedsl looks at; refuses what is no name, and names that mean something else."""
    if not kind.isidentifier() or kind in RESERVED or kind.startswith("import_"):
        raise stage.refuse(directive, f"there is no pragma {kind!r}", hint=f"choose one of {', '.join(CHOICES)}")
    from difflib import get_close_matches  # few programs ask

    near = get_close_matches(kind, CHOICES)
    also = f"; did you mean {' or '.join(near)}?" if near else ""
    warnings.warn(f"{directive} on stage {stage.name}: no pass of tedsl knows this pragma; the loop keeps it as the attribute "
                  f"pragma_{kind}, for passes of your own{also}", UserWarning, stacklevel=user_level())


def _value(stage: StageState, directive: str, kind: str, value: Any) -> Expr | None:
    number = int(value) if isinstance(value, bool) else whole_number(value)
    if kind in COUNTS and number is None:
        raise stage.refuse(directive, f"the value of {kind} is a constant integer, got {describe(value)}",
                           hint=f'for example pragma({show(loop_of(stage))}, "{kind}", 16)')
    if kind in CODES and not isinstance(value, (str, StringImm)):
        raise stage.refuse(directive, f"{kind} takes code as text, got {describe(value)}",
                           hint=f'for example pragma({show(loop_of(stage))}, "{kind}", code)')
    if value is None:
        return None
    if isinstance(value, bool):
        return build.const(int(value), "int32")
    if isinstance(value, (str, Expr)) or number is not None:
        return build.as_expr(value if number is None else number)
    raise stage.refuse(directive, f"the value of a pragma is a number or a string, got {describe(value)}")


def loop_of(stage: StageState) -> Any:
    """Some loop of the stage, for an example in a hint."""
    return stage.leaf_iter_vars[0]
