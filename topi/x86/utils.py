"""What processors have, by TVM's names. A processor is a Target, or its name as -mcpu gives it."""

from __future__ import annotations

from typing import Any

from tedsl.errors import entries
from tedsl.target import Target, as_target


def get_fp32_len() -> int:
    """The number of float32 in a vector of the current target."""
    return as_target(None).vector_lanes("float32")


def get_simd_32bit_lanes() -> int:
    """The same, by its name since TVM 0.9."""
    return get_fp32_len()


def target_has_sse42(target: Any) -> bool:
    """Whether the processor has SSE 4.2."""
    return _has(target, "sse4.2")


def target_has_avx2(target: Any) -> bool:
    """Whether the processor has AVX2."""
    return _has(target, "avx2")


def target_has_avx512(target: Any) -> bool:
    """Whether the processor has AVX-512 with bytes and words, as TVM's schedules need it."""
    return _has(target, "avx512f", "avx512bw", "avx512dq")


def target_has_vnni(target: Any) -> bool:
    """Whether the processor has AVX-512 VNNI."""
    return _has(target, "avx512vnni")


def _has(target: Any, *features: str) -> bool:
    of = target if isinstance(target, Target) else Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": target})
    return of.features.issuperset(features)


entries(globals())
