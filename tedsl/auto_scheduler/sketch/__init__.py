"""Sketches: schedules of any program, written by decisions that are drawn, given or changed.

`choices.py` decides; `kernels.py` parts a program; `tiles.py`, `sums.py`, `simple.py` write the loops of a kernel, `packing.py`
copies of its operands, `extents.py` are sizes of tiles; `write.py` does a whole program; `default.py` is topi's schedule, with
other factors.
"""
