"""What actors cost: `python -m benchmarks.actor_overhead` prints microseconds for each actor and batch, and what 100,000
batches add to the memory of the process. `--ray`: milliseconds for each batch that goes to another process and back.
"""

import argparse
import resource
from pathlib import Path

import numpy as np

from tedsl.actors import Pipeline, RayCluster, Runtime, Spec


def nothing(*arrays):
    """The work of an actor that is measured for what is around it."""


def copied(x, out):
    np.copyto(out, x)


def chain(threads, tasks=3):
    """A plan of `tasks` tasks that do nothing, on one thread or one for each."""
    p = Pipeline("overhead")
    stream = p.source("t0", nothing, Spec((1,)), thread="t0")
    for at in range(1, tasks - 1):
        stream = p.task(f"t{at}", nothing, [stream], Spec((1,)), thread=f"t{at}" if threads else "t0")
    p.sink("end", nothing, [stream], thread="end" if threads else "t0")
    return p.plan()


def microseconds(threads, batches=20_000, tasks=3):
    """For each actor and batch: the least of five runs."""
    runtime = Runtime(chain(threads, tasks))
    runtime.run(500)
    return min(runtime.run(batches).seconds for _ in range(5)) / batches / tasks * 1e6


def resident():
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def growth(batches=100_000):
    """Bytes that `batches` batches add to the memory of the process, after as many before."""
    runtime = Runtime(chain(True))
    runtime.run(batches)
    before = resident()
    runtime.run(batches)
    return resident() - before


def milliseconds_with_ray(size, batches=200):
    """For each batch of `size` bytes that a process of Ray gets and gives back."""
    p = Pipeline("there_and_back")
    stream = p.task("there", copied, p.source("a", nothing, Spec((size,), "uint8")), Spec((size,), "uint8"))
    p.sink("end", nothing, [stream])
    p.at("worker", "there")
    runtime = Runtime(p.plan(), cluster=RayCluster())
    runtime.run(10)
    seconds = min(runtime.run(batches).seconds for _ in range(3))
    runtime.close()
    return 1e3 * seconds / batches


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ray", action="store_true")
    if parser.parse_args().ray:
        for size in (8, 800_000):
            print(f"{size:7} bytes to a process and back: {milliseconds_with_ray(size):.2f} ms a batch")
        return
    print(f"one thread: {microseconds(False):.2f} µs for each actor and batch")
    print(f"a thread each: {microseconds(True):.2f} µs")
    print(f"100,000 batches add {growth() / 1024:.0f} KiB to the memory of the process")


if __name__ == "__main__":
    main()
