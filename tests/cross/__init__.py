"""Kernels for other processors, cross-built here and run by qemu. Run by `.ci/cross`, which installs compilers and qemu."""
