"""Passes on kernels for the threads of a device, which are run without a device.

`gather_threads` (one launch per kernel), `own_memory` (allocates memory of threads and blocks inside the launch),
`insert_barriers` (makes threads wait for each other, with the analyses of `common_memory`, `uniform` and `passes/races`;
`make_way` rewrites statements so that a barrier fits), `inject_virtual_threads`; `machine/lower_threads.py` turns the phases
between barriers into loops.
"""
