"""Memory: flat buffers, buffers that share memory, roll or double, and what is fetched ahead."""
