"""The reads of formulas: see `lang/reads.py`."""

from tedsl.lang.reads import Eager, Facts, assume, guarded, guarded_loads, has_load, is_ragged, loads_of, takes_its_ends

__all__ = ["Eager", "Facts", "assume", "guarded", "guarded_loads", "has_load", "is_ragged", "loads_of", "takes_its_ends"]
