"""On which processors candidates are built, and on which they run."""

from __future__ import annotations

import os

from tedsl.processors import usable_processors
from tedsl.record import record
from tedsl.runtime.parallel import get_num_threads


@record
class Cores:
    """running: the processors of runs, as many as a parallel loop has threads; building: those of builds.

    Where runs leave none free, both have all, and builds and runs take turns.
    """

    running: tuple[int, ...]
    building: tuple[int, ...]

    @property
    def take_turns(self) -> bool:
        """Tells whether a build would slow a run."""
        return bool(set(self.running) & set(self.building))


def cores_for(threads: int | None) -> Cores:
    """The processors of this process, divided. threads: of parallel loops; None: as many as they have in this process."""
    mine = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else tuple(range(usable_processors()))
    wanted = get_num_threads() if threads is None else threads
    if wanted >= len(mine):
        return Cores(mine, mine)
    return Cores(mine[-wanted:], mine[:-wanted])


def free_memory() -> int:
    """The bytes of memory that the machine can give away; 0 where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            said = dict(line.split(":", 1) for line in file)
        return int(said["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 0
