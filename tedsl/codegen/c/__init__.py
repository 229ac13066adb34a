"""C as a target: loops as C99 that is also C++, and the compiler of the machine to run it.

`emit` writes a file, `emitter` one function of it: `values/` the expressions, `statements/` the loops, `text/` what all that is
as text, `prelude/` the functions that C lacks. `dialect` is what the text says differently by the target's options, `running/`
compiles and calls it, `device/` writes kernels of devices.
"""
