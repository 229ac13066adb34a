"""Functions for a device beside the processor: the host's part, which launches, and the kernels, each a function of its own."""
