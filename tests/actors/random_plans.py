"""Random plans: DAGs of actors of all kinds, with random counts of registers and threads.

`python -m tests.actors.random_plans 10000` runs so many by the virtual clock.
"""

import sys
from itertools import pairwise

import numpy as np

from tedsl.actors import Pipeline, Spec, simulate
from tedsl.errors import PlanError


def scale(factor):
    def function(*arrays):
        *inputs, out = arrays
        out[...] = factor + sum(array * (at + 1) for at, array in enumerate(inputs))

    return function


def random_plan(rng, most=12, width=8):
    """A plan and the reference of its sinks: functions of the batches of the sources. None where it would stall.

    Streams of one rate only are joined; each value is a vector whose length is `width` per whole batch.
    """
    p = Pipeline("random")
    counts = lambda: int(rng.integers(1, 4))
    threads = ["", "", "one", "two"]
    thread = lambda: threads[rng.integers(len(threads))]
    streams = []  # stream, rate, length, reference: batches of the sources -> list of values
    sinks = {}
    for at in range(int(rng.integers(1, 3))):
        stream = p.source(f"source{at}", None, Spec((width,)), count=counts(), thread=thread())
        streams.append((stream, (1, 1), width, lambda batches, at=at: [batch + at for batch in batches]))
    number = 0
    while len(p.tasks) < int(rng.integers(2, most)):
        number += 1
        stream, rate, length, reference = streams[rng.integers(len(streams))]
        kind = rng.choice(["normal", "join", "repeat", "unpack", "pack", "acc", "inputwise", "in_place"])
        name, steps, count, where = f"{kind}{number}", int(rng.choice([2, 4])), counts(), thread()
        alike = [one for one in streams if one[1] == rate and one[2] == length and one[0] is not stream]
        if kind == "normal":
            made = p.task(name, scale(number), [stream], Spec((length,)), count=count, thread=where)
            streams.append((made, rate, length, lambda b, f=reference, n=number: [n + value for value in f(b)]))
        elif kind in ("join", "inputwise") and alike:
            other = alike[rng.integers(len(alike))]
            if kind == "join":
                made = p.task(name, scale(number), [stream, other[0]], Spec((length,)), count=count, thread=where)
                streams.append((made, rate, length, lambda b, f=reference, g=other[3], n=number:
                                [n + x + 2 * y for x, y in zip(f(b), g(b))]))
            else:
                made = p.inputwise(name, [stream, other[0]], count=count, thread=where)
                streams.append((made, rate, length, lambda b, f=reference, g=other[3]: [x + y for x, y in zip(f(b), g(b))]))
        elif kind == "repeat" and rate[0] < 8:
            made = p.repeat(name, stream, steps, count=count, thread=where)
            streams.append((made, (rate[0] * steps, rate[1]), length, lambda b, f=reference, s=steps:
                            [value for value in f(b) for _ in range(s)]))
        elif kind == "unpack" and length % steps == 0 and rate[0] < 8:
            made = p.unpack(name, stream, steps, count=count, thread=where)
            streams.append((made, (rate[0] * steps, rate[1]), length // steps, lambda b, f=reference, s=steps:
                            [part for value in f(b) for part in np.split(value, s)]))
        elif kind in ("pack", "acc") and rate[0] % steps == 0:
            together = np.concatenate if kind == "pack" else lambda group: np.sum(group, 0)
            made = getattr(p, kind)(name, stream, steps, count=count, thread=where)
            streams.append((made, (rate[0] // steps, rate[1]), length * (steps if kind == "pack" else 1),
                            lambda b, f=reference, s=steps, t=together: (lambda v: [t(v[i:i + s])
                                                                                    for i in range(0, len(v), s)])(f(b))))
    for at, (stream, _, _, reference) in enumerate(streams):
        if not p.registers[stream.register].consumers:
            sinks[f"sink{at}"] = reference
            p.sink(f"sink{at}", None, [stream], thread=thread())
    try:
        return p.plan(), sinks
    except PlanError as refusal:
        assert "stalls" in str(refusal) and "raise the count of" in str(refusal), refusal
        return None, sinks


def ended_plans(seed, count):
    """How many of `count` random plans are not refused; each of these ends, in order, and no source runs further ahead than
    there are registers.
    """
    rng, ended = np.random.default_rng(seed), 0
    for _ in range(count):
        plan, _ = random_plan(rng)
        if plan is None:
            continue
        batches = 4 * int(rng.integers(1, 5))
        durations = {name: rng.choice([0, 1, 3], 64) for name in plan.tasks}
        run = simulate(plan, {name: lambda n, t=t: float(t[n % 64]) for name, t in durations.items()}, batches)
        assert not run.stalled, f"{plan}\nstalls"
        for name, task in plan.tasks.items():
            spans = run.of(name)
            assert [span.number for span in spans] == list(range(len(spans)))
            assert all(before.end <= after.begin for before, after in pairwise(spans))
            assert task.inputs or len(spans) == batches
        if all(task.steps == 1 for task in plan.tasks.values()):  # elsewhere acts of sources and of ends are of other sizes
            assert run.run_ahead <= sum(one.count for one in plan.registers.values())
        ended += 1
    return ended


if __name__ == "__main__":
    hundreds = (int(sys.argv[1]) if len(sys.argv) > 1 else 1000) // 100
    ended = sum(ended_plans(seed, 100) for seed in range(hundreds))
    print(f"{ended} of {100 * hundreds} plans ended, the others were refused when planned")
