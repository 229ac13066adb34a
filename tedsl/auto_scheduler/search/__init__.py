"""Which schedules are measured next.

`problem.py`: what is scheduled; `proposal.py`: one schedule, how it was decided and what it may cost; `breeding.py`: many of
them, drawn, changed and crossed; `search.py` measures the promising ones and learns.
"""
