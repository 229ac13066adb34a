"""What the simulator reports of kernels."""
