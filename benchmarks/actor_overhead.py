"""What actors cost: `python -m benchmarks.actor_overhead` prints microseconds for each actor and batch, beside those in which
one thread of Python wakes another, and what 100,000 batches add to the memory of the process. `--ray`: milliseconds for each
batch that goes to another process and back. `--sleeping`: chains whose stages sleep, beside the formula for the time from batch
to batch.
"""

import argparse
import resource
import time
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numpy as np

import tedsl
from tedsl import te
from tedsl.actors import Pipeline, RayCluster, Runtime, Spec


def nothing(*arrays):
    """The work of an actor that is measured for what is around it."""


def copied(x, out):
    np.copyto(out, x)


def kernels():
    """A kernel that fills an array of one element, and one that copies it."""
    A = te.placeholder((1,), name="A")
    filled, copied = te.compute((1,), lambda i: 1.0, name="B"), te.compute((1,), lambda i: A[i], name="C")
    return [tedsl.build(te.create_schedule(args[-1].op), args) for args in ([filled], [A, copied])]


def chain(threads, tasks=3, functions=(nothing, nothing)):
    """A plan of `tasks` tasks that do nothing, on one thread or one for each. functions: of the first, and of those between it
    and the last, which has none if they are kernels.
    """
    first, between = functions
    thread = "" if threads else "all"
    p = Pipeline("overhead")
    stream = p.source("t0", first, Spec((1,)), thread=thread)
    for at in range(1, tasks - 1):
        stream = p.task(f"t{at}", between, [stream], Spec((1,)), thread=thread)
    p.sink("end", nothing if first is nothing else None, [stream], thread=thread)
    return p.plan()


def microseconds(threads, batches=20_000, tasks=3, functions=(nothing, nothing)):
    """For each actor and batch: the least of five runs."""
    runtime = Runtime(chain(threads, tasks, functions))
    runtime.run(500)
    return min(runtime.run(batches).seconds for _ in range(5)) / batches / tasks * 1e6


def waking(times=20_000):
    """Microseconds from a message of one thread to another until that one runs: the least of five runs."""
    def answer(asked, answered):
        for _ in range(times):
            asked.get()
            answered.put(None)

    taken = []
    for _ in range(5):
        asked, answered = SimpleQueue(), SimpleQueue()
        other = Thread(target=answer, args=(asked, answered))
        other.start()
        begin = time.perf_counter()
        for _ in range(times):
            asked.put(None)
            answered.get()
        taken.append(time.perf_counter() - begin)
        other.join()
    return min(taken) / times / 2 * 1e6


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


def sleeping(count, milliseconds, batches=60):
    """The milliseconds from batch to batch of a chain whose stages sleep, with `count` registers between each two, and those of
    the formula for as long as the stages slept: a busy machine wakes them late.
    """
    p = Pipeline("asleep")
    works = [lambda *arrays, seconds=one / 1000: time.sleep(seconds) for one in milliseconds]
    stream = p.source("s0", works[0], Spec((1,)), count=count)
    for at in range(1, len(works) - 1):
        stream = p.task(f"s{at}", works[at], stream, Spec((1,)), count=count)
    p.sink("last", works[-1], [stream])
    report = Runtime(p.plan()).run(batches)
    ends = [span.end for span in report.spans() if span.actor == "last"]
    measured = 1e3 * (ends[-1] - ends[9]) / (batches - 10)
    slept = [1e3 * share.acting / share.acts for share in report.shares.values()]
    return measured, max(*slept, *[(a + b) / count for a, b in pairwise(slept)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--sleeping", action="store_true")
    given = parser.parse_args()
    if given.sleeping:
        for stages in ((10, 10, 10, 40), (20, 30, 20, 20), (20, 20, 20, 20)):
            for count in (1, 2, 3):
                measured, formula = sleeping(count, stages)
                print(f"stages of {stages} ms, {count} registers: {measured:.2f} ms a batch, {measured / formula - 1:+.1%} "
                      "beside the formula")
        return
    if given.ray:
        for size in (8, 800_000):
            print(f"{size:7} bytes to a process and back: {milliseconds_with_ray(size):.2f} ms a batch")
        return
    works = {"kernels": kernels(), "functions of Python": (nothing, nothing)}
    for name, threads in (("one thread", False), ("a thread each, as by default", True)):
        times = [f"{microseconds(threads, functions=work):.2f} µs with {what}" for what, work in works.items()]
        print(f"{name}: for each actor and batch {', '.join(times)}")
    print(f"one thread of Python wakes another in {waking():.2f} µs")
    print(f"100,000 batches add {growth() / 1024:.0f} KiB to the memory of the process")


if __name__ == "__main__":
    main()
