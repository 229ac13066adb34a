"""PassContext: options of the passes for a `with` block, under the names that users know."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from tedsl.errors import OptionError, did_you_mean
from tedsl.ir.instrument import PassInstrument, refuse_misfit
from tedsl.passes.config import DoubleBufferConfig, HoistConfig, LoopPartitionConfig, PassConfig, UnrollConfig
from tedsl.passes.selection import Selection, refuse_needed, warn_of_unknown
from tedsl.record import record


@record
class _Key:
    """An option: its field of PassConfig, and either the record of its sub-keys or the type of its value."""

    field: str
    record: type[Any] | None = None
    wanted: type[Any] = bool
    choices: tuple[str, ...] = ()


KEYS = {
    "tir.noalias": _Key("noalias"),
    "te.keep_schedule_record": _Key("keep_schedule_record"),
    "tir.disable_vectorize": _Key("disable_vectorize"),
    "tir.disable_assert": _Key("disable_assert"),
    "tedsl.check_registers": _Key("check_registers"),
    "tir.debug_keep_trivial_loop": _Key("debug_keep_trivial_loop"),
    "tir.instrument_bound_checkers": _Key("instrument_bound_checkers"),
    "tir.detect_global_barrier": _Key("detect_global_barrier"),
    "tir.is_entry_func": _Key("is_entry_func"),
    "tir.LoopPartition": _Key("loop_partition", LoopPartitionConfig),
    "tir.UnrollLoop": _Key("unroll", UnrollConfig),
    "tir.auto_unroll_max_step": _Key("unroll", wanted=int),
    "tir.HoistIfThenElse": _Key("hoist", HoistConfig),
    "tir.InjectDoubleBuffer": _Key("double_buffer", DoubleBufferConfig),
    "tir.data_index": _Key("data_index", choices=("clamp", "check", "trust")),
    "tir.offset_factor": _Key("offset_factor", wanted=int),
    "tir.data_alignment": _Key("data_alignment", wanted=int),
    "tir.add_lower_pass": _Key("add_lower_pass"),
    "tedsl.line_tables": _Key("line_tables"),
    "tedsl.perf_map": _Key("perf_map"),
    "tedsl.gdb": _Key("gdb"),
    "tedsl.strict": _Key("strict"),
}

_DEFAULT = PassConfig()
_CURRENT: contextvars.ContextVar[tuple[PassContext, ...]] = contextvars.ContextVar("tedsl_pass_contexts", default=())


class _Given(dict[str, Any]):
    """The sub-keys of an option as they were given; as attributes also those that have their defaults."""

    def __init__(self, given: Mapping[str, Any], options: Any) -> None:
        super().__init__(given)
        self.options = options

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.options, name)


class PassContext:
    """Options for `lower` and `build` inside `with PassContext(config={"tir.noalias": False}):`.

    opt_level: 0 to 4; passes of a higher level are left out (those of TVM's lowering have level 0, those that fit loops to the
    machine 1); level 0 also makes compilation faster and code slower. required_pass: names of passes that run at any level.
    disabled_pass: names of passes that do not run, such as "tir.UnrollLoop"; OptionError for one that correct code needs.
    instruments: objects that are called before and after each pass, see `tedsl.ir.instrument`.
    The options of `config` are in `KEYS`; an unknown one is an error that lists the known.
    """

    def __init__(self, opt_level: int = 2, required_pass: Sequence[str] | None = None,
                 disabled_pass: Sequence[str] | None = None, instruments: Sequence[Any] | None = None,
                 config: Mapping[str, Any] | None = None) -> None:
        self.opt_level = check_level(opt_level)
        self.required_pass = _names_of_passes("required_pass", required_pass)
        self.disabled_pass = _names_of_passes("disabled_pass", disabled_pass)
        warn_of_unknown("required_pass", self.required_pass)
        warn_of_unknown("disabled_pass", self.disabled_pass)
        refuse_needed(self.disabled_pass)
        for name in self.required_pass:
            if name in self.disabled_pass:
                raise OptionError(f"{name} is in required_pass and in disabled_pass", hint="name it in one of them")
        self.instruments = _instruments(instruments)
        if not isinstance(config, Mapping | None):
            raise OptionError(f"config is a dict of options, not {config!r}",
                              hint='for example PassContext(config={"tir.noalias": False})')
        self.config = dict(config or {})
        self.options = self._options()
        for name, value in self.config.items():
            if KEYS[name].record is not None:
                self.config[name] = _Given(value, getattr(self.options, KEYS[name].field))

    def _options(self) -> PassConfig:
        selection = Selection(self.opt_level, frozenset(self.required_pass), frozenset(self.disabled_pass),
                              tuple(self.instruments))
        if not self.config and selection == _DEFAULT.selection:
            return _DEFAULT
        return replace(pass_config(self.config), selection=selection)

    def override_instruments(self, instruments: Sequence[Any] | None) -> None:
        """Replaces the instruments from here on, inside the `with` block."""
        wanted = _instruments(instruments)  # refused ones leave those that are there
        for instrument in self.instruments:
            instrument.exit_pass_ctx()
        self.instruments = wanted
        self.options = self._options()
        for instrument in self.instruments:
            instrument.enter_pass_ctx()

    @staticmethod
    def current() -> PassContext:
        """Returns the context of the innermost `with` block; outside of all blocks one with the default options."""
        stack = _CURRENT.get()
        return stack[-1] if stack else PassContext()

    def __enter__(self) -> PassContext:
        for instrument in self.instruments:
            instrument.enter_pass_ctx()
        _CURRENT.set((*_CURRENT.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _CURRENT.set(_CURRENT.get()[:-1])
        for instrument in self.instruments:
            instrument.exit_pass_ctx()

    def __repr__(self) -> str:
        return f"PassContext(opt_level={self.opt_level}, config={self.config})"


def current_options() -> PassConfig:
    """Returns the options of the innermost `with` block, else the default ones."""
    stack = _CURRENT.get()
    return stack[-1].options if stack else _DEFAULT


def pass_config(config: Mapping[str, Any]) -> PassConfig:
    """Returns the typed options for a dict of names; OptionError for an unknown name or a value of the wrong type."""
    options = PassConfig()
    for name in config:
        if name not in KEYS:
            raise OptionError(f"PassContext has no option {name!r}", hint=did_you_mean(name, KEYS, "the options are"))
    for name, key in KEYS.items():
        if name not in config:
            continue
        value = config[name]
        if name == "tir.add_lower_pass":
            converted: Any = _lower_passes(value)
        elif key.record is not None:
            converted = _record(name, key.record, value)
        elif name == "tir.auto_unroll_max_step":
            converted = replace(options.unroll, auto_max_step=_typed(name, value, int))
        elif key.choices:
            converted = _chosen(name, value, key.choices)
        else:
            converted = _typed(name, value, key.wanted)
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
    """Returns `value` as the type `wanted`. A bool may be written 0 or 1; an int must be an int."""
    if isinstance(value, int) and (value in (0, 1) if wanted is bool else not isinstance(value, bool)):
        return wanted(value)
    raise OptionError(f"the option {name!r} is of type {wanted.__name__}, not {value!r}")


def _chosen(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise OptionError(f"the option {name!r} is one of {', '.join(map(repr, choices))}, not {value!r}")
    return str(value)


def check_level(value: Any) -> int:
    """Returns the opt_level of a context or of a pass; OptionError if it is none of those that there are."""
    level = int(_typed("opt_level", value, int))
    if not 0 <= level <= 4:
        raise OptionError(f"opt_level is between 0 and 4, not {level}",
                          hint="2 is the default; 0 compiles soonest, from 1 on loops are fitted to the machine")
    return level


def _names_of_passes(name: str, value: Sequence[str] | None) -> list[str]:
    if value is not None and not (isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(s, str) for s in value)):
        raise OptionError(f"{name} is a list of names of passes, not {value!r}", hint='for example ["tir.UnrollLoop"]')
    return list(value or ())


def _instruments(given: Any) -> list[PassInstrument]:
    instruments = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    for instrument in instruments:
        if not isinstance(instrument, PassInstrument):
            raise OptionError(f"instruments is a list of instruments of passes, and {instrument!r} is not one",
                              hint="make one of a class: @tedsl.ir.instrument.pass_instrument")
        refuse_misfit(instrument)
    return instruments


def _lower_passes(value: Any) -> tuple[tuple[int, Any], ...]:
    try:
        pairs = tuple((phase, step) for phase, step in value)
    except (TypeError, ValueError):
        pairs = ((-1, None),)
    if not all(isinstance(phase, int) and 0 <= phase <= 3 and callable(step) for phase, step in pairs):
        raise OptionError(f"the option 'tir.add_lower_pass' is a list of pairs (phase 0 to 3, pass), not {value!r}")
    return pairs
