"""The random programs find faults: those planted here, within the number of programs that each needs at most."""

import pytest

from tests.fuzz.faults import FAULTS, Fault, Unplantable
from tests.fuzz.mutations import search

QUICK = ("dropped guard", "halo short by one", "init in the wrong loop", "swapped buffers of a tuple",
         "lost predicate of a reduction", "unroll one short", "lost mask in a vector", "min and max swapped")


def test_there_are_enough_faults():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 20


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault):
    """Its function is still in the compiler. If not, write the fault anew where that work is done now."""
    assert fault.target()


@pytest.mark.parametrize("where", ["lower.nest:Nest.gone", "lower.gone:Nest", "lower.checks:clamp"])
def test_a_fault_whose_function_has_changed_is_an_error(where):
    """Gone, its module gone, or with other arguments: never a fault that is silently not there."""
    fault = Fault("stale", where, lambda right, index: index, machine=False)
    with pytest.raises(Unplantable, match=rf"stale: .*{where}"):
        search(fault, limit=1)


def test_a_fault_that_raises_by_itself_is_not_found():
    fault = Fault("broken", "lower.nest:Nest.conditions", lambda right, *rest: right.no_such_attribute, machine=False)
    with pytest.raises(Unplantable, match="broken: the fault itself raises AttributeError"):
        search(fault, limit=20)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.name in QUICK], ids=lambda fault: fault.name)
def test_a_fault_is_found(fault):
    """All of them: python -m tests.fuzz.mutations."""
    tried, seen = search(fault, limit=300)
    assert seen is not None, f"not found in {tried} programs"
