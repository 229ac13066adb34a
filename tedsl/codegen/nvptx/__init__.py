"""PTX for NVIDIA's devices, through LLVM: the emitter of codegen/llvm with what kernels have instead of functions.

`emit` writes the LLVM IR of kernels, `ptx` makes PTX of it, `backend` is what `build` calls. `amdgpu` and `spirv` compile the
same IR, under other names, for what no driver of ours runs.
"""
