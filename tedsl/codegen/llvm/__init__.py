"""The LLVM backend: writes loops as LLVM IR and compiles that to machine code.

    emit (a module from functions) -> emitter, stmt, expr, loads_stores (one function) -> machine (LLVM's passes)
    debug/    the lines of printed loops that instructions belong to
    export/   libraries, objects and headers that need no tedsl
    linking/  machine code becomes functions of this process
    indices/  index arithmetic in 64 bits              values/   conversions, 16-bit floats, division and rounding, by dtype
    math/     exp, log, sin, ... as polynomials        outside/  calls of Python, C and LLVM's intrinsics, imported code
    outlined/ statements that become functions of their own: bodies of parallel loops, parts of long sequences
    calls/    calls between functions of one module
    entry/    the ways into a kernel: the checks of arguments, the entry point for Python
"""
