"""A machine that runs kernels: programs of steps, threads of many blocks side by side, barriers, warps."""
