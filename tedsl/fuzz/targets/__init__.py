"""Programs for other targets than this processor: in C, many in one file, and as kernels of a device."""
