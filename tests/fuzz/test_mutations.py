"""The random programs find faults: those planted here, within the number of programs that each needs at most."""

import pytest

from tests.fuzz.faults import FAULTS
from tests.fuzz.mutations import planted_code, search

QUICK = ("dropped guard", "halo short by one", "init in the wrong loop", "swapped buffers of a tuple",
         "lost predicate of a reduction", "unroll one short", "lost mask in a vector", "min and max swapped")


def test_there_are_enough_faults():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 20


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault):
    """Its text is still in the compiler. If not, write the fault anew where that work is done now."""
    assert planted_code(fault)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.name in QUICK], ids=lambda fault: fault.name)
def test_a_fault_is_found(fault):
    """All of them: python -m tests.fuzz.mutations."""
    tried, seen = search(fault, limit=200)
    assert seen is not None, f"not found in {tried} programs"
