"""Passes over loops, one file each; `default.py` lists them in the order in which they run.

    loops/    unrolled, vectorized, partitioned          facts/    what passes ask about a program
    storage/  flattened, shared, double-buffered         races/    whether accesses of threads or lanes may meet
    threads/  barriers, virtual threads, kernels         checked/  every access verified while it runs
    machine/  loops fitted to a target                   device/   kernels that leave the function of the host
    products/  sums of products taken at once
    coprocessors/  attributes and calls of accelerators that the processor gives instructions
"""
