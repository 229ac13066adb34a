"""Passes by themselves keep what random functions do; `python -m tests.tir.random_programs SECONDS PASS...` draws more."""

import pytest

from tests.tir.random_programs import PASSES, keeps


@pytest.mark.parametrize("seed", [7, 18])
@pytest.mark.parametrize("name", sorted(PASSES))
@pytest.mark.sampled(2)
def test_a_pass_keeps_what_a_function_does(name, seed):
    keeps(name, seed)
