"""How candidates are built and run."""

from __future__ import annotations

from dataclasses import replace

from tedsl.amounts import check_count, check_number
from tedsl.errors import ArgumentError
from tedsl.record import record
from tedsl.tune.measure.outcome import Outcome

_SLOW, _SLOW_IN_SIMULATION = 10.0, 3.0  # times what another candidate takes: longer trials are ended
_SECONDS = "a number of seconds"
_LEAST_LIMIT = 5.0  # seconds of such a limit, since a machine may be busy

MOST_PRECISE = 10.0  # seconds for one of the fastest at the end of a search, however much time that has


@record
class BuildOption:
    """How candidates are built.

    timeout: seconds for the schedule and its code. n_parallel: how many are built at once; None: one for each processor that
    runs leave free. memory: bytes that a process may take in addition to what this one has; None: half of what is free.
    """

    timeout: float = 10.0
    n_parallel: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        check_number("BuildOption", "timeout", self.timeout, _SECONDS)
        for name in ("n_parallel", "memory"):
            if getattr(self, name) is not None:
                check_count("BuildOption", name, getattr(self, name), 1)


@record
class RunOption:
    """How candidates are run.

    number, repeat, min_repeat_ms: `repeat` times the mean of `number` calls, more of them where a repetition takes less than
    `min_repeat_ms`. timeout: seconds for one candidate. cooldown_interval: seconds of rest before each candidate.
    enable_cpu_cache_flush: caches are overwritten before each repetition. threads: of parallel loops; None: as many as they
    have in this process.
    precise: calls take turns with those of a reference kernel, and what slows both is divided out, until the interval of the
    median is narrower than 2 % or `precise_seconds` have passed; `number` and `repeat` are chosen then.
    many_places: these seconds are shared out over copies of the arrays at several places in memory, on which equal kernels
    depend, too: the interval reaches from the least to the most of the medians at each of them.
    """

    number: int = 4
    repeat: int = 3
    min_repeat_ms: int = 0
    timeout: float = 10.0
    cooldown_interval: float = 0.1
    enable_cpu_cache_flush: bool = False
    precise: bool = False
    precise_seconds: float = 2.0
    many_places: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("number", 1), ("repeat", 1), ("min_repeat_ms", 0)):
            check_count("RunOption", name, getattr(self, name), least)
        if self.threads is not None:
            check_count("RunOption", "threads", self.threads, 1)
        for name in ("enable_cpu_cache_flush", "precise", "many_places"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentError(f"RunOption: {name} is True or False, not {getattr(self, name)!r}")
        for name in ("timeout", "precise_seconds"):
            check_number("RunOption", name, getattr(self, name), _SECONDS)
        if self.cooldown_interval != 0:
            check_number("RunOption", "cooldown_interval", self.cooldown_interval, _SECONDS)


def limited(option: RunOption, first: Outcome, estimated: bool = False) -> RunOption:
    """`option` with a time after which a candidate that is much slower than one that was measured is ended. estimated: by a
    simulator, which takes the longer, the slower a candidate is.
    """
    taken = (_SLOW_IN_SIMULATION if estimated else _SLOW) * (first.all_seconds - first.build_seconds)
    return replace(option, timeout=min(option.timeout, max(_LEAST_LIMIT, taken)))
