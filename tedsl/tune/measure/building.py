"""What happens in the process that builds a candidate."""

from __future__ import annotations

import os

import numpy

from tedsl import te
from tedsl.cache.place import FOLDER, OFF
from tedsl.driver import build
from tedsl.errors import TedslError, type_in_words
from tedsl.runtime.parallel import set_num_threads
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target
from tedsl.tune.measure.outcome import Candidate, Failure
from tedsl.tune.measure.process import Failed


def load_compiler(target: Target) -> None:
    """Builds and times a small kernel, so that the processes that are forked have LLVM and the timer as this one has them."""
    a = te.placeholder((1,), name="a")
    b = te.compute((1,), lambda i: a[i] + 1.0, name="b")
    machine = Target("llvm") if target.is_device else target
    module = build(te.create_schedule(b.op), [a, b], machine)
    if machine.kind.name == "llvm":
        with module.timed(module.entry_name, numpy.zeros(1, "float32"), numpy.zeros(1, "float32")) as run:
            run(1)


def built(candidate: Candidate, target: Target, threads: int) -> bytes:
    """The module of a candidate as the content of a `.tedsl` file. Raises Failed where it has no schedule.

    threads: of the runs, which schedules may ask for; those of this process are others.
    """
    set_num_threads(threads)
    os.environ[FOLDER] = OFF  # few candidates are ever built again
    try:
        with target:
            scheduled = candidate.schedule()
    except MemoryError:
        raise
    except TedslError as refusal:
        raise Failed(Failure("refused", str(refusal))) from refusal
    except Exception as error:  # what a template raises is its own affair
        raise Failed(Failure("refused", f"{type(error).__name__}: {error}")) from error
    if not (isinstance(scheduled, (list, tuple)) and len(scheduled) == 2 and isinstance(scheduled[0], Schedule)):
        returned = type_in_words(scheduled)
        raise Failed(Failure("refused", f"schedule() returned {returned}, and not a schedule and its arguments"))
    return build(scheduled[0], list(scheduled[1]), target).save_to_bytes()
