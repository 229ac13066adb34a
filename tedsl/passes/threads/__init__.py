"""What runs at once: kernels for the threads of a device, run without a device, and races, of parallel loops too.

`gather_threads` (one launch for each kernel), `own_memory` (allocated inside of it), `insert_barriers` (where threads wait for
each other; `common_memory`, `conflicts`, `every_thread` and `uniform` answer for it, `make_way` makes room), `refuse_races`
(`races`, `same_statement`, `parallel_races`), `inject_virtual_threads`; `machine/lower_threads.py` turns phases between
barriers into loops.
"""
