"""Passes on kernels for the threads of a device, which are run without a device.

`gather_threads` (one launch for each kernel), `own_memory` (allocated inside of it), `insert_barriers` (where threads wait for
each other; `common_memory`, `uniform` and `passes/races` answer for it, `make_way` makes room), `inject_virtual_threads`;
`machine/lower_threads.py` turns phases between barriers into loops.
"""
