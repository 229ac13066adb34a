"""Programs for threads of a device, run without a device: `gather_threads` (one launch per kernel), `barriers` (where threads
must wait for each other; the pass is `insert_barriers.py`), `fission` (loops over threads, one for each phase between
two barriers; the pass is `machine/lower_threads.py`)."""
