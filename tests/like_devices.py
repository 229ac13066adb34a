"""A target for this processor whose results have the bits of devices: with AVX-512, some functions have other formulas."""

from tedsl.target.host import host

LIKE_DEVICES = "llvm -mcpu=haswell" if "avx512f" in host().features else "llvm"
