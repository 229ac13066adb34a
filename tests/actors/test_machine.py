"""Actors under a virtual clock: the time lines and periods of the literature, and random plans."""

from itertools import pairwise

import numpy as np
import pytest

from tedsl.actors import Pipeline, Spec, simulate
from tedsl.errors import ArgumentError, PlanError
from tests.actors.random_plans import ended_plans

NAMES = ["loading", "preprocessing", "copy", "training"]
VALUE = Spec((1,))


def chain(count):
    p = Pipeline("chain")
    stream = p.source(NAMES[0], None, VALUE, count=count)
    for name in NAMES[1:3]:
        stream = p.task(name, None, [stream], VALUE, count=count)
    p.sink(NAMES[3], None, [stream])
    return p.plan()


def times(schedule, name, batch):
    """Begin and end of an act; batches are counted from 1, as in the article."""
    span = schedule.of(name)[batch - 1]
    return span.begin, span.end


def test_the_time_line_of_a_slow_training():
    run = simulate(chain(2), dict(zip(NAMES, [1, 1, 1, 4])), 20)
    assert times(run, "training", 3) == (11, 15) and times(run, "copy", 4) == (11, 12)
    assert times(run, "preprocessing", 6) == (12, 13) and times(run, "loading", 8) == (13, 14)


def test_the_time_line_of_a_slow_preprocessing():
    run = simulate(chain(2), dict(zip(NAMES, [1, 4, 1, 1])), 20)
    end = times(run, "preprocessing", 5)[1]
    assert sum(span.end <= end for span in run.of("loading")) == 6


@pytest.mark.parametrize(("durations", "periods"),
                         [((1, 1, 1, 4), (5, 4, 4)), ((2, 3, 2, 2), (5, 3, 3)), ((2, 2, 2, 2), (4, 2, 2))])
def test_the_period_of_a_chain_is_that_of_the_formula(durations, periods):
    found = []
    for count in (1, 2, 3):
        found.append(simulate(chain(count), dict(zip(NAMES, durations)), 60).period("training"))
        pairs = pairwise(durations)
        assert found[-1] == max(*durations, *[(a + b) / count for a, b in pairs])
    assert tuple(found) == periods


def test_a_third_register_pays_under_jitter():
    rng = np.random.default_rng(1)
    taken = {name: rng.lognormal(-0.245, 0.7, 4000) for name in NAMES}  # of mean 1
    periods = [simulate(chain(count), {name: lambda n, t=t: t[n] for name, t in taken.items()}, 4000).period("training")
               for count in (1, 2, 3)]
    assert periods[0] > 1.3 * periods[1] and periods[1] > 1.1 * periods[2]


def test_registers_alone_hold_a_fast_source_back():
    run = simulate(chain(2), dict(zip(NAMES, [0.1, 0.1, 0.1, 10])), 30)
    assert run.run_ahead <= 6 + 1  # registers in between, and the batch that is trained


@pytest.mark.parametrize("seed", range(20))
def test_random_plans_end_in_order_and_do_not_run_ahead(seed):
    assert ended_plans(seed, 25) > 5


def diamond(short=1):
    """One way goes through a task, the other through four batches packed together."""
    p = Pipeline("diamond")
    a = p.source("a", None, Spec((1,)), count=short)
    b = p.task("b", None, [a], Spec((1,)), count=1)
    packed = p.pack("packed", a, 4, count=1)
    p.sink("end", None, [b, p.unpack("pieces", packed, 4, count=1)])
    return p


def test_a_diamond_with_too_few_registers_is_refused_with_the_register_to_raise():
    with pytest.raises(PlanError, match=r"plan diamond stalls: a, b, packed, pieces, end wait(.|\n)*raise the count of a from "
                                        r"1 to 3"):
        diamond().plan()
    assert not simulate(diamond(3).plan(), {}, 40).stalled


def test_streams_of_different_rates_do_not_meet():
    p = Pipeline("rates")
    a = p.source("a", None, Spec((4,)))
    p.sink("end", None, [a, p.unpack("pieces", a, 2)])
    with pytest.raises(PlanError, match=r"task end reads registers that come at different rates.*a 1 times, pieces 2 times"):
        p.plan()


def test_unknown_tasks_have_no_durations():
    with pytest.raises(ArgumentError, match=r"there is no task 'train'; tasks: loading"):
        simulate(chain(1), {"train": 1}, 2)
