"""PassContext: options of the passes for a `with` block, under the names that users know."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tedsl.errors import OptionError
from tedsl.passes.config import DoubleBufferConfig, HoistConfig, LoopPartitionConfig, PassConfig, UnrollConfig


@dataclass(frozen=True)
class _Key:
    """An option: the field of PassConfig, and the record of its sub-keys if it has some."""

    field: str
    record: type[Any] | None = None


KEYS = {
    "tir.noalias": _Key("noalias"),
    "tir.disable_vectorize": _Key("disable_vectorize"),
    "tir.disable_assert": _Key("disable_assert"),
    "tir.debug_keep_trivial_loop": _Key("debug_keep_trivial_loop"),
    "tir.instrument_bound_checkers": _Key("instrument_bound_checkers"),
    "tir.detect_global_barrier": _Key("detect_global_barrier"),
    "tir.is_entry_func": _Key("is_entry_func"),
    "tir.LoopPartition": _Key("loop_partition", LoopPartitionConfig),
    "tir.UnrollLoop": _Key("unroll", UnrollConfig),
    "tir.HoistIfThenElse": _Key("hoist", HoistConfig),
    "tir.InjectDoubleBuffer": _Key("double_buffer", DoubleBufferConfig),
    "tir.add_lower_pass": _Key("add_lower_pass"),
}

_CURRENT: contextvars.ContextVar[tuple[PassContext, ...]] = contextvars.ContextVar("tedsl_pass_contexts", default=())


class PassContext:
    """Options for `lower` and `build` inside `with PassContext(config={"tir.noalias": False}):`.

    opt_level, required_pass, disabled_pass, instruments: taken and kept for programs that set them; the passes do not
    depend on them. The options of `config` are in `KEYS`; an unknown one is an error that lists the known.
    """

    def __init__(self, opt_level: int = 2, required_pass: Sequence[str] | None = None,
                 disabled_pass: Sequence[str] | None = None, instruments: Sequence[Any] | None = None,
                 config: Mapping[str, Any] | None = None) -> None:
        self.opt_level = int(_typed("opt_level", opt_level, int))
        self.required_pass = _names_of_passes("required_pass", required_pass)
        self.disabled_pass = _names_of_passes("disabled_pass", disabled_pass)
        self.instruments = list(instruments or ())
        if not isinstance(config, Mapping | None):
            raise OptionError(f"config is a dict of options, not {config!r}",
                              hint='for example PassContext(config={"tir.noalias": False})')
        self.config = dict(config or {})
        self.options = pass_config(self.config)

    @staticmethod
    def current() -> PassContext:
        """The context of the innermost `with` block; one with the default options outside of all."""
        stack = _CURRENT.get()
        return stack[-1] if stack else PassContext()

    def __enter__(self) -> PassContext:
        _CURRENT.set((*_CURRENT.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _CURRENT.set(_CURRENT.get()[:-1])

    def __repr__(self) -> str:
        return f"PassContext(opt_level={self.opt_level}, config={self.config})"


def pass_config(config: Mapping[str, Any]) -> PassConfig:
    """The typed options for a dict of names; OptionError for an unknown name or a value of the wrong type."""
    options = PassConfig()
    for name, value in config.items():
        if name not in KEYS:
            raise OptionError(f"PassContext has no option {name!r}", hint=f"the options are {', '.join(KEYS)}")
        key = KEYS[name]
        if name == "tir.add_lower_pass":
            converted: Any = _lower_passes(value)
        elif key.record is not None:
            converted = _record(name, key.record, value)
        else:
            converted = _typed(name, value, bool)
        options = replace(options, **{key.field: converted})
    return options


def _record(name: str, record: type[Any], value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise OptionError(f"the option {name!r} is a dict with {_names(record)}, not {value!r}")
    default = record()
    known = {f.name: type(getattr(default, f.name)) for f in fields(record)}
    for sub, given in value.items():
        if sub not in known:
            raise OptionError(f"the option {name!r} has no key {sub!r}", hint=f"its keys are {_names(record)}")
        _typed(f"{name}.{sub}", given, known[sub])
    return record(**{sub: known[sub](given) for sub, given in value.items()})


def _names(record: type[Any]) -> str:
    return ", ".join(f.name for f in fields(record))


def _typed(name: str, value: Any, wanted: type[Any]) -> Any:
    """A bool may be written 0 or 1, as programs do; an int is an int."""
    if isinstance(value, int) and (value in (0, 1) if wanted is bool else not isinstance(value, bool)):
        return wanted(value)
    raise OptionError(f"the option {name!r} is of type {wanted.__name__}, not {value!r}")


def _names_of_passes(name: str, value: Sequence[str] | None) -> list[str]:
    if value is not None and not (isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(s, str) for s in value)):
        raise OptionError(f"{name} is a list of names of passes, not {value!r}", hint='for example ["tir.UnrollLoop"]')
    return list(value or ())


def _lower_passes(value: Any) -> tuple[tuple[int, Any], ...]:
    try:
        pairs = tuple((phase, step) for phase, step in value)
    except (TypeError, ValueError):
        pairs = ((-1, None),)
    if not all(isinstance(phase, int) and 0 <= phase <= 3 and callable(step) for phase, step in pairs):
        raise OptionError(f"the option 'tir.add_lower_pass' is a list of pairs (phase 0 to 3, pass), not {value!r}")
    return pairs
