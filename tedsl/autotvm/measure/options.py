"""How configurations are built and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.tune import BuildOption, RunOption
from tedsl.tune.measure.remote import check_cluster


class LocalBuilder:
    """Builds configurations in processes of this machine.

    timeout: seconds for one. n_parallel: how many at once; None: one for each processor that runs leave free. The other
    parameters are TVM's; build_func is "default", build_kwargs and do_fork are without effect.
    """

    def __init__(self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: Mapping[str, Any] | None = None,
                 build_func: str | Callable[..., Any] = "default", do_fork: bool = True, runtime: Any = None) -> None:
        if build_func != "default":
            raise ArgumentError(f'LocalBuilder: build_func is "default", not {build_func!r}',
                                hint="configurations are built by tedsl.build for the target of the task")
        self.option = BuildOption(timeout=timeout, n_parallel=n_parallel)


class LocalRunner:
    """Runs configurations in processes of this machine; the parameters are those of `tedsl.tune.RunOption`.

    check_correctness: compares results with those of the default schedule, or of the interpreter for small programs.
    """

    cluster: bool | str = False  # of Ray: the address of one; False: none

    def __init__(self, timeout: float = 10, number: int = 4, repeat: int = 3, min_repeat_ms: int = 0,
                 cooldown_interval: float = 0.1, enable_cpu_cache_flush: bool = False, module_loader: Any = None,
                 check_correctness: bool = False) -> None:
        self.option = RunOption(timeout=timeout, number=number, repeat=repeat, min_repeat_ms=min_repeat_ms,
                                cooldown_interval=cooldown_interval, enable_cpu_cache_flush=enable_cpu_cache_flush)
        self.check_correctness = bool(check_correctness)


class RayRunner(LocalRunner):
    """Builds and runs configurations on the machines of a cluster of Ray (the extra `ray`), which are of one model.

    The parameters are those of LocalRunner. cluster: its address; None: of the one that the program has joined, else of the
    one that RAY_ADDRESS names, else this machine.
    """

    def __init__(self, timeout: float = 10, number: int = 4, repeat: int = 3, min_repeat_ms: int = 0,
                 cooldown_interval: float = 0.1, enable_cpu_cache_flush: bool = False, check_correctness: bool = False, *,
                 cluster: str | None = None) -> None:
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush,
                         check_correctness=check_correctness)
        self.cluster = True if cluster is None else cluster
        check_cluster("RayRunner", self.cluster)


class RPCRunner:
    """Refused: configurations run on this machine, or on those of a cluster of Ray."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise ArgumentError("RPCRunner: tedsl has no rpc: configurations run on this machine, or on a cluster of Ray",
                            hint="use autotvm.LocalRunner, or autotvm.RayRunner")


Options = dict[str, Any]


def measure_option(builder: LocalBuilder | str, runner: LocalRunner | str) -> Options:
    """How a tuner measures: a builder and a runner, or "local" for those of this machine."""
    made = {"builder": LocalBuilder() if builder == "local" else builder,
            "runner": LocalRunner() if runner == "local" else runner}
    for name, kind in (("builder", LocalBuilder), ("runner", LocalRunner)):
        if not isinstance(made[name], kind):
            raise ArgumentTypeError(f'measure_option: {name} is "local" or a {kind.__name__}, not {made[name]!r}')
    return made
