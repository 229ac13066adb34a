"""The operations of formulas as LLVM IR, on scalars and vectors."""

from __future__ import annotations

import struct

from tedsl.codegen.formulas.language import FunctionBody, Value
from tedsl.ir.dtype import FLOAT32, round_float

_FLOAT_NAMES = {32: "float", 64: "double"}
_CONVERSIONS = frozenset(("bitcast", "fpext", "fptrunc", "sext", "trunc"))


class LLVMBody(FunctionBody):
    """Collects the lines of one function body in LLVM IR."""

    def operation(self, name: str, kind: str, bits: int, *operands: Value) -> Value:
        of, (first, *rest) = self.type_of(operands[0].kind, operands[0].bits), operands
        if name.startswith("llvm."):
            args = ", ".join(f"{of} {v.name}" for v in operands)
            return self.emit(f"call {of} @{name}.{self.suffix(kind, bits)}({args})", kind, bits)
        if name in _CONVERSIONS:
            return self.emit(f"{name} {of} {first.name} to {self.type_of(kind, bits)}", kind, bits)
        if name == "select":
            chosen = self.type_of(kind, bits)
            return self.emit(f"select {of} {first.name}, {chosen} {rest[0].name}, {chosen} {rest[1].name}", kind, bits)
        if name == "not":
            return self.emit(f"xor {of} {first.name}, {'true' if self.lanes == 1 else 'splat (i1 true)'}", kind, bits)
        return self.emit(f"{name} {of} {', '.join(v.name for v in operands)}", kind, bits)

    def type_of(self, kind: str, bits: int) -> str:
        element = {"f": _FLOAT_NAMES.get(bits, "half"), "i": f"i{bits}", "b": "i1"}[kind]
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def suffix(self, kind: str, bits: int) -> str:
        """Returns the suffix of an overloaded intrinsic: v16f32."""
        return f"{kind}{bits}" if self.lanes == 1 else f"v{self.lanes}{kind}{bits}"

    def emit(self, text: str, kind: str, bits: int) -> Value:
        """Writes an instruction and returns its result."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return Value(self, name, kind, bits)

    def _splat(self, element: str, literal: str, kind: str, bits: int) -> Value:
        return Value(self, literal if self.lanes == 1 else f"splat ({element} {literal})", kind, bits)

    def real(self, value: float, bits: int) -> Value:
        """Returns a float constant; LLVM writes float32 constants as the double of equal value."""
        pattern = struct.unpack("<Q", struct.pack("<d", value if bits == 64 else round_float(value, FLOAT32)))[0]
        return self._splat(_FLOAT_NAMES[bits], f"0x{pattern:016X}", "f", bits)

    def integer(self, value: int, bits: int) -> Value:
        value &= (1 << bits) - 1
        return self._splat(f"i{bits}", str(value - (1 << bits) if value >> (bits - 1) else value), "i", bits)
