"""Networks: graphs compiled to kernels, one memory plan, and one call.

    compile    from a graph to a network
    prepare    what depends on constants alone is computed once
    kernels    the kernel of a step: equal steps have one
    build      kernels from the cache on disk, or compiled
    hoist      what kernels compute of constants leaves them
    steps      functions with their operands, prepared arrays included
    instance   a network for known extents: arena, arrays, calls
    arguments  the arrays of a call, checked
    network    what programs call
    profile    time of each step beside the limit of the machine
    files      networks in .tedsl files
    absorbed   constants that only preparations read
    reasons    why a step stays below half of its limit
    costs      operations and bytes of a kernel
    limits     what this machine can do
"""

from tedsl.graph.network.compile import compile
from tedsl.graph.network.network import Network

__all__ = ["Network", "compile"]
