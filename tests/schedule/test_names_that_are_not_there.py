"""Attributes that schedules, stages and groups do not have, and calls of them: the error says what to write."""

import copy

import pytest

from tedsl import te
from tedsl.errors import ArgumentTypeError, OptionError


@pytest.mark.parametrize("asked, words", [
    (lambda p: p.s.split, r"a schedule has no split(.|\n)*did you mean s\[D\]\.split\(\.\.\.\)"),
    (lambda p: p.s.vectorise, r"did you mean s\[D\]\.vectorize\(\.\.\.\)"),
    (lambda p: p.s.cache_raed, r"did you mean cache_read or cache_write"),
    (lambda p: p.s.lanes, r"a schedule has no lanes(.|\n)*it has cache_read, cache_write, copy, create_group, explain"),
    (lambda p: p.s[p.C].vectorise, r"a stage has no vectorise(.|\n)*did you mean vectorize\?"),
    (lambda p: p.s[p.C].cache_write, r"did you mean s\.cache_write\(C, \.\.\.\)"),
    (lambda p: p.s[p.C].axis, r"did you mean s\[C\]\.op\.axis\?"),
    (lambda p: p.s[p.C].specialize(te.size_var("n") > 3).axis, r"did you mean C_special\.op\.axis\?"),
    (lambda p: p.s.create_group([p.C], [p.A]).compute_att, r"a group of stages has no compute_att(.|\n)*mean compute_at"),
    (lambda p: p.s.create_group([p.C], [p.A]).unroll, r"write s\[A\]\.unroll\(\.\.\.\), s\[B\]\.unroll|write s\[B\]\.unroll"),
])
def test_the_nearest_name_is_proposed(chain, asked, words):
    with pytest.raises(OptionError, match=words) as caught:
        asked(chain)
    assert isinstance(caught.value, AttributeError)


def test_names_that_python_asks_for_are_left_to_it(chain):
    for handle in (chain.s, chain.s[chain.C], chain.s.create_group([chain.C], [chain.A])):
        assert not hasattr(handle, "_repr_mimebundle_") and not hasattr(handle, "__array__") and not hasattr(handle, "shape_")
        assert type(copy.copy(handle)) is type(handle)


def test_a_schedule_and_a_stage_are_not_functions(chain):
    with pytest.raises(ArgumentTypeError, match=r"a schedule cannot be called(.|\n)*f = tedsl\.build\(s, \[A, B\]\)"):
        chain.s(1, 2)
    with pytest.raises(ArgumentTypeError, match="a stage cannot be called: it says how to compute C"):
        chain.s[chain.C]()
