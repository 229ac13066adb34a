"""What every backend needs of a function before it writes code.

    kernel      a function in the versions that are compiled, after the passes for its target
    abi         the calling convention: arguments, statuses, messages of assertions        symbol   what a kernel is called
    checks      what is required of the arguments of every call
    stack       which arrays live on the stack        fitting   the last check of dtypes
"""
