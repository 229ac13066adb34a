"""What profilers and debuggers see of kernels.

    lines       the printed loops of a module, and the line of each statement
    table       the line table as metadata of LLVM IR: every instruction has the line that it was written for
    listing     assembly between the loops that it implements
    watchers    perf's map of symbols; who is told of code
    gdb         gdb's interface for code that is made at run time
"""
