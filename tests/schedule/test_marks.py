"""parallel, vectorize, unroll and bind of one loop, one after another."""

import warnings

import pytest

import tedsl
from tedsl import te


@pytest.mark.parametrize("first, second, kinds", [
    ("vectorize", "parallel", "vectorized and is parallel"), ("parallel", "vectorize", "parallel and is vectorized"),
    ("parallel", "unroll", "parallel and is unrolled"), ("unroll", "parallel", "unrolled and is parallel"),
    ("unroll", "vectorize", ""), ("vectorize", "unroll", "")])
def test_the_last_mark_of_a_loop_holds(chain, first, second, kinds):
    """As in TVM; with a warning where a loop gets, or loses, its threads."""
    j, args = chain.D.op.axis[1], [chain.A, chain.D]
    getattr(chain.s[chain.D], first)(j)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        getattr(chain.s[chain.D], second)(j)
    assert [f"j was {kinds} now, as in TVM" in str(one.message) for one in said] == [True] * bool(kinds)
    again = te.create_schedule(chain.D.op)
    getattr(again[chain.D], second)(j)
    assert tedsl.lower(chain.s, args).readable() == tedsl.lower(again, args).readable()


def test_a_bound_loop_stays_bound(chain):
    i, args = chain.D.op.axis[0], [chain.A, chain.D]
    stage, thread = chain.s[chain.D], te.thread_axis("threadIdx.x")
    stage.parallel(i)
    with pytest.warns(UserWarning, match="i was parallel and is bound to threadIdx.x now"):
        stage.bind(i, thread)
    for what in ("parallel", "vectorize"):
        with pytest.warns(UserWarning, match=f"{what}.i. on stage D: i is bound to threadIdx.x and stays so"):
            getattr(stage, what)(i)
    again = te.create_schedule(chain.D.op)
    again[chain.D].bind(i, thread)
    assert tedsl.lower(chain.s, args).readable() == tedsl.lower(again, args).readable()
