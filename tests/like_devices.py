"""This processor as a target whose results have the bits of devices: for AVX-512, tanh and erf of float32 are other formulas."""

from tedsl.target.host import host

LIKE_DEVICES = "llvm -mcpu=haswell" if "avx512f" in host().features else "llvm"
