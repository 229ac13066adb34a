"""Statements of operators for kernels: te.extern's `by_threads`. Rows are sorted and scanned by blocks, in shared memory."""
