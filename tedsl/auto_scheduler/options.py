"""How schedules are built and run, by TVM's names."""

from __future__ import annotations

from typing import Any

from tedsl.amounts import check_count
from tedsl.auto_scheduler.search.search import QUICK
from tedsl.errors import ArgumentError
from tedsl.target.current import as_target
from tedsl.tune import BuildOption, RunOption
from tedsl.tune.measure.remote import check_cluster


class HardwareParams:
    """What a device gives a block, for `SearchTask(hardware_params=...)`: blocks with more are never measured.

    max_shared_memory_per_block: bytes; max_local_memory_per_block: bytes of a thread; max_threads_per_block. None: what the
    target says. max_vthread_extent: virtual threads of one axis. The other parameters are TVM's and without effect: of a
    processor the model of the machine says them.
    """

    def __init__(self, num_cores: int | None = None, vector_unit_bytes: int | None = None, cache_line_bytes: int | None = None,
                 max_shared_memory_per_block: int | None = None, max_local_memory_per_block: int | None = None,
                 max_threads_per_block: int | None = None, max_vthread_extent: int | None = None, warp_size: int | None = None,
                 target: Any = None, target_host: Any = None) -> None:
        given = {"max_shared_memory_per_block": max_shared_memory_per_block, "max_threads_per_block": max_threads_per_block,
                 "max_local_memory_per_block": max_local_memory_per_block, "max_vthread": max_vthread_extent}
        self.limits: dict[str, int] = {name: value for name, value in given.items() if value is not None}
        for name, value in self.limits.items():
            check_count("HardwareParams", name, value, 1)


class LayoutRewriteOption:
    """How TVM lays out weights. NO_REWRITE and INSERT_TRANSFORM_STAGE are one here: arguments keep their layout, and whether an
    operand is packed inside of the kernel is a decision of the schedule. REWRITE_FOR_PRE_TRANSFORMED is refused.
    """

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: Any, in_relay_integration: bool = False) -> int:
        """The option for a target: that its schedules may pack operands. in_relay_integration: without effect."""
        as_target(target)
        return LayoutRewriteOption.INSERT_TRANSFORM_STAGE


def check_layout(what: str, option: object) -> None:
    """Raises ArgumentError for a layout option under which arguments would have another shape, and for none."""
    if option in (None, LayoutRewriteOption.NO_REWRITE, LayoutRewriteOption.INSERT_TRANSFORM_STAGE):
        return
    if option == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED:
        raise ArgumentError(f"{what}: arguments keep their layout, and no schedule takes weights that were packed before",
                            hint="leave the option out: weights are packed inside of the kernel where that is faster")
    raise ArgumentError(f"{what}: the option is one of LayoutRewriteOption, not {option!r}",
                        hint="auto_scheduler.LayoutRewriteOption.NO_REWRITE")


class LocalBuilder:
    """Builds schedules in processes of this machine.

    timeout: seconds for one. n_parallel: how many at once; None: one for each processor that runs leave free. build_func is
    without effect.
    """

    def __init__(self, timeout: float = 15, n_parallel: int | None = None, build_func: Any = "default") -> None:
        self.option = BuildOption(timeout=timeout, n_parallel=n_parallel)


class LocalRunner:
    """Runs schedules in processes of this machine.

    The parameters are those of `tedsl.tune.RunOption`; without any, the search's own. Results are compared with those of the
    default schedule in any case. device is without effect.
    """

    cluster: bool | str = False  # of Ray: the address of one; False: none

    def __init__(self, timeout: float = 10, number: int | None = None, repeat: int | None = None,
                 min_repeat_ms: int | None = None, cooldown_interval: float = 0.0, enable_cpu_cache_flush: bool = False,
                 device: int = 0) -> None:
        precise = QUICK.precise and number is None and repeat is None and min_repeat_ms is None
        self.option = RunOption(
            number=QUICK.number if number is None else number, repeat=QUICK.repeat if repeat is None else repeat,
            min_repeat_ms=QUICK.min_repeat_ms if min_repeat_ms is None else min_repeat_ms, timeout=timeout,
            cooldown_interval=cooldown_interval, enable_cpu_cache_flush=enable_cpu_cache_flush, precise=precise,
            precise_seconds=QUICK.precise_seconds)


class RayRunner(LocalRunner):
    """Builds and runs schedules on the machines of a cluster of Ray (the extra `ray`), which are of one model.

    The parameters are those of LocalRunner. cluster: its address; None: of the one that the program has joined, else of the
    one that RAY_ADDRESS names, else this machine.
    """

    def __init__(self, timeout: float = 10, number: int | None = None, repeat: int | None = None,
                 min_repeat_ms: int | None = None, cooldown_interval: float = 0.0, enable_cpu_cache_flush: bool = False, *,
                 cluster: str | None = None) -> None:
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)
        self.cluster = True if cluster is None else cluster
        check_cluster("RayRunner", self.cluster)


class LocalRPCMeasureContext:
    """Holds a `runner`: in TVM one that runs schedules in processes apart, as LocalRunner does here. priority, n_parallel and
    device are without effect.
    """

    def __init__(self, priority: int = 1, n_parallel: int = 1, timeout: float = 10, number: int | None = None,
                 repeat: int | None = None, min_repeat_ms: int | None = None, cooldown_interval: float = 0.0,
                 enable_cpu_cache_flush: bool = False, device: int = 0) -> None:
        self.runner = LocalRunner(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device)
