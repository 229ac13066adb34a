"""`build_config`, which takes the options of passes by the names that they had before `PassContext`."""

from __future__ import annotations

import warnings
from typing import Any

from tedsl.errors import OptionError, did_you_mean
from tedsl.ir.instrument import PrintAfterAll
from tedsl.passes.context import PassContext

# Its name -> the option of PassContext, and the key in it.
OPTIONS = {
    "auto_unroll_max_step": ("tir.UnrollLoop", "auto_max_step"),
    "auto_unroll_max_depth": ("tir.UnrollLoop", "auto_max_depth"),
    "auto_unroll_max_extent": ("tir.UnrollLoop", "auto_max_extent"),
    "unroll_explicit": ("tir.UnrollLoop", "explicit_unroll"),
    "partition_const_loop": ("tir.LoopPartition", "partition_const_loop"),
    "double_buffer_split_loop": ("tir.InjectDoubleBuffer", "split_loop"),
    "restricted_func": ("tir.noalias", ""),
    "detect_global_barrier": ("tir.detect_global_barrier", ""),
    "offset_factor": ("tir.offset_factor", ""),
    "data_alignment": ("tir.data_alignment", ""),
    "add_lower_pass": ("tir.add_lower_pass", ""),
    "instrument_bound_checkers": ("tir.instrument_bound_checkers", ""),
    "disable_vectorize": ("tir.disable_vectorize", ""),
    "disable_assert": ("tir.disable_assert", ""),
}


def build_config(**options: Any) -> PassContext:
    """Returns a PassContext for `with build_config(auto_unroll_max_step=16): build(...)`.

    The options are those in `OPTIONS` and dump_pass_ir, which prints the loops after each pass; OptionError for any other.
    disable_select_rewriting is accepted for programs that pass it; True does nothing but warn, as correct code needs that pass.
    """
    config: dict[str, Any] = {}
    dumped = bool(options.pop("dump_pass_ir", False))
    if options.pop("disable_select_rewriting", False):
        warnings.warn("build_config: disable_select_rewriting=True does nothing: a select whose side must not be computed "
                      "would read outside of its memory", stacklevel=3)
    for name, value in options.items():
        if name not in OPTIONS:
            raise OptionError(f"build_config has no option {name!r}",
                              hint=did_you_mean(name, [*OPTIONS, "dump_pass_ir"], "the options are"))
        key, part = OPTIONS[name]
        if not part:
            config[key] = value
        elif value is not None:
            config.setdefault(key, {})[part] = value
    if config.get("tir.add_lower_pass", ()) is None:
        del config["tir.add_lower_pass"]
    return PassContext(instruments=[PrintAfterAll()] if dumped else [], config=config)
