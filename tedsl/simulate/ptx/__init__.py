"""PTX as data: what a text says, and the flow of control of its kernels."""
