"""Random programs under random schedules mean what their formulas say."""

import pytest

from tests.lower.random_programs import try_seed


@pytest.mark.parametrize("block", range(8))
def test_random_schedules_keep_the_meaning(block):
    for seed in range(block * 40, block * 40 + 40):
        try_seed(seed)
