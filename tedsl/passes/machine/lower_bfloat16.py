"""Compute bfloat16 in float32, and keep it in memory as the bits of uint16, for machines without its arithmetic.

before:  C[i] = A[i]*B[i] + A[i]          all of bfloat16
after:   C[i] = bfloat16(float32(bfloat16(float32(A[i])*float32(B[i]))) + float32(A[i]))

That is what `promote_bfloat16` makes, and every value stays the same: operations of bfloat16 are defined as operations of
float32 whose result is rounded. `remove_bfloat16_casts` drops float32(bfloat16(x)): values inside of an expression keep the
bits that rounding would take. `bfloat16_as_bits` then stores uint16: a conversion to float32 shifts the bits to the upper
half, one from float32 rounds to the nearest even value, and a NaN stays a NaN.
"""

from __future__ import annotations

import struct
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.calls.lanes import in_halves
from tedsl.ir.dtype import FLOAT32, dtype
from tedsl.ir.expr import (
    BinaryOp,
    Call,
    Cast,
    CompareOp,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Var,
)
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import COMBINE_LANES, FOREIGN, IF_THEN_ELSE, REINTERPRET
from tedsl.ir.script import shown
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.passes.retyped import retyped

BFLOAT16, UINT16, UINT32 = dtype("bfloat16"), dtype("uint16"), dtype("uint32")
_EXACT = 24  # bits of an integer that float32 holds exactly
_KEPT = (IF_THEN_ELSE, REINTERPRET)  # calls that move values and compute nothing


def promote_bfloat16(func: PrimFunc) -> PrimFunc:
    """Returns `func` with the arithmetic, comparisons and formulas of bfloat16 in float32, each result rounded."""
    return func.with_body(_Promotion()(func.body))


def remove_bfloat16_casts(func: PrimFunc) -> PrimFunc:
    """Returns `func` in which float32 values that are cast to bfloat16 and back stay as they are."""
    return func.with_body(_Casts()(func.body))


def bfloat16_as_bits(func: PrimFunc) -> PrimFunc:
    """Returns `func` with uint16 in place of bfloat16: in memory, in variables and in parameters.

    Raises LoweringError for operations of bfloat16, and for conversions to it from dtypes that float32 does not hold exactly.
    """
    return retyped(func.with_body(_Conversions()(func.body)), lambda of: UINT16 if of is BFLOAT16 else None, _constant)


def _is_bfloat16(e: Expr) -> bool:
    return e.dtype.element is BFLOAT16


def _wide(e: Expr) -> Expr:
    return build.cast(FLOAT32.with_lanes(e.dtype.lanes), e) if _is_bfloat16(e) else e


class _Promotion(Rewriter):
    def rewrite(self, node: Any) -> Any:
        match node:
            case BinaryOp() | CompareOp() if _is_bfloat16(node.a):
                kind: Any = type(node)
                result: Expr = kind(_wide(node.a), _wide(node.b))
            case Call(op=op) if op in COMBINE_LANES and _is_bfloat16(node):
                return self(in_halves(node))
            case Call(args=args, op=op) if op.effect == "pure" and op not in (*FOREIGN, *_KEPT) and any(
                    map(_is_bfloat16, args)):
                of = FLOAT32.with_lanes(node.dtype.lanes) if _is_bfloat16(node) else node.dtype
                result = Call(of, op, tuple(map(_wide, args)))
            case _:
                return node
        return build.cast(node.dtype, result) if _is_bfloat16(node) else result


class _Casts(Rewriter):
    kinds = (Cast,)

    def rewrite(self, node: Any) -> Any:
        match node:
            case Cast(value=Cast(value=value) as rounded) if _is_bfloat16(rounded) and node.dtype is value.dtype \
                    and value.dtype.element is FLOAT32:
                return value
            case _:
                return node


class _Conversions(Rewriter):
    """Writes conversions of bfloat16 as arithmetic on its bits, which `tir.reinterpret` marks; refuses other operations."""

    def rewrite(self, node: Any) -> Any:
        match node:
            case Cast(value=value) if _is_bfloat16(value):
                return build.cast(node.dtype, _as_float(value)) if not _is_bfloat16(node) else value
            case Cast(value=value) if _is_bfloat16(node):
                return _rounded(value)
            case BinaryOp() | CompareOp() if _is_bfloat16(node.a):
                raise _refusal(node, "computes with bfloat16", "tir.transform.BF16Promote() makes it an operation of float32")
            case Call(args=args, op=op) if op not in _KEPT and any(map(_is_bfloat16, (node, *args))):
                raise _refusal(node, "takes or gives bfloat16", "tir.transform.BF16Promote() makes formulas those of float32; "
                                                                "functions of others take uint16: te.reinterpret(x, 'uint16')")
            case _:
                return node


def _refusal(node: Expr, what: str, hint: str) -> LoweringError:
    return LoweringError(f"{shown(node)} {what}, which has no bits to compute with", hint=hint)


def _as_float(value: Expr) -> Expr:
    """Returns a bfloat16 as float32: its bits are the upper half."""
    lanes = value.dtype.lanes
    wide = build.cast(UINT32.with_lanes(lanes), Call(UINT16.with_lanes(lanes), REINTERPRET, (value,)))
    shifted = build.shift_left(wide, build.const(16, wide.dtype))
    return Call(FLOAT32.with_lanes(lanes), REINTERPRET, (shifted,))


def _rounded(value: Expr) -> Expr:
    """Returns a number as bfloat16, rounded to the nearest even: half a unit less one bit is added, and the last bit that
    stays.
    """
    lanes, of = value.dtype.lanes, value.dtype
    if of.bits > (32 if of.is_float else _EXACT) or of.is_handle:
        raise LoweringError(f"a cast of {of} to bfloat16 would be rounded twice, to float32 first",
                            hint="where that is meant, write both: x.astype('float32').astype('bfloat16')")
    word, half = UINT32.with_lanes(lanes), UINT16.with_lanes(lanes)
    single = Var("single", FLOAT32.with_lanes(lanes))
    bits = Var("bits", word)
    upper = _shifted(bits)
    odd = build.bitwise_and(upper, build.const(1, word))
    nearest = _shifted(build.add(bits, build.add(odd, build.const(0x7FFF, word))))
    quiet = build.bitwise_or(upper, build.const(0x40, word))
    chosen = build.cast(half, build.select(build.not_equal(single, single), quiet, nearest))
    inner = Let(bits, Call(word, REINTERPRET, (single,)), Call(BFLOAT16.with_lanes(lanes), REINTERPRET, (chosen,)))
    return Let(single, build.cast(single.dtype, value), inner)


def _shifted(bits: Expr) -> Expr:
    return build.shift_right(bits, build.const(16, bits.dtype))


def _constant(e: FloatImm) -> IntImm:
    return IntImm(UINT16, struct.unpack("<I", struct.pack("<f", e.value))[0] >> 16)
