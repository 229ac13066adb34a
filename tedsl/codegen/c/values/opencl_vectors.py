"""Vectors as the vector types of OpenCL: `vstore4(vload4(0, &A[4 * i]) + (float4)(x), 0, &C[4 * i]);`."""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emitter
from tedsl.codegen.c.text.piece import PRIMARY, Piece
from tedsl.codegen.c.text.types import value_type
from tedsl.ir.dtype import DType


class OpenCLVectors:
    """The vector types of OpenCL."""

    most_lanes = 16
    most_bytes = 32  # PoCL 3.0 compiles for ever where wider ones are stored, on processors whose vectors have 32 bytes
    has_fma = True

    def name(self, out: Emitter, d: DType) -> str:
        return f"{out.module.dialect.spelling(value_type(d.element))}{d.lanes}"

    def loaded(self, out: Emitter, place: Piece, d: DType) -> Piece:
        return Piece(f"vload{d.lanes}(0, {place.text})", PRIMARY, place.depth + 1, True)

    def stored(self, out: Emitter, place: Piece, value: Piece, d: DType) -> str:
        return f"vstore{d.lanes}({value.text}, 0, {place.text});"

    def repeated(self, out: Emitter, scalar: Piece, d: DType) -> Piece:
        return Piece(f"({self.name(out, d)})({scalar.text})", PRIMARY, scalar.depth + 1, scalar.reads)

    def same_bits(self, out: Emitter, value: Piece, d: DType) -> Piece:
        return Piece(f"as_{self.name(out, d)}({value.text})", PRIMARY, value.depth + 1, value.reads)
