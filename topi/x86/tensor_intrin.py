"""Tensor intrinsics of x86 processors by TVM's names: those of tedsl.contrib.intrinsics."""

from __future__ import annotations

import tedsl
from tedsl import te
from tedsl.errors import entries


def dot_16x1x16_uint8_int8_int32() -> te.TensorIntrin:
    """c[j] += a[k] * b[j, k], summed over 4 terms, for 16 results: uint8 and int8, int32, by the instruction vpdpbusd.

    Raises ArgumentError where the current target (else this machine) does not have it.
    """
    found: te.TensorIntrin = tedsl.contrib.intrinsics.dot_u8i8i32()
    return found


dot_16x1x16_uint8_int8_int32_cascadelake = dot_16x1x16_uint8_int8_int32

_SATURATES = "dot_16x1x16_uint8_int8_int32(): sums of pairs in 16 bits, which processors before Cascade Lake compute, saturate"

entries(globals(), instead={"dot_16x1x16_uint8_int8_int32_skylake": _SATURATES, "dot_16x1x16_uint8_int8_int16": _SATURATES})
