"""What runs: arrays, the check of a call's arguments, compiled modules, threads, workspaces, timing, devices.

    symbols (what machine code may call) <- parallel, workspace, timing (LLVM IR texts that the JIT links once per process)
    device, array -> arguments (what a call accepts) -> module
"""
