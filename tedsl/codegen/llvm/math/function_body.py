"""The operations of formulas as LLVM IR, on scalars and vectors."""

from __future__ import annotations

import struct

from tedsl.codegen.formulas.language import FunctionBody, Table, Value
from tedsl.ir.dtype import FLOAT32, round_float

_FLOAT_NAMES = {32: "float", 64: "double"}
_CONVERSIONS = frozenset(("bitcast", "fpext", "fptrunc", "sext", "trunc", "sitofp", "fptosi"))


class LLVMBody(FunctionBody):
    """Collects the lines of one function body in LLVM IR. needs: the constants that the module must have."""

    def __init__(self, lanes: int, fma: bool, *, looks_up: bool = False) -> None:
        super().__init__(lanes, fma, looks_up=looks_up)
        self.needs: dict[str, str] = {}

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

    def lookup(self, table: Table, index: Value) -> Value:
        """Loads lane by lane."""
        count, bits, element = len(table.values), table.bits, _FLOAT_NAMES[table.bits]
        values = ", ".join(f"{element} {self._literal(value, bits)}" for value in table.values)
        symbol = f"@{table.name}"
        self.needs[table.name] = f"{symbol} = private unnamed_addr constant [{count} x {element}] [{values}], align 64"
        low = index & (count - 1)
        of = self.type_of("i", bits)
        result = "poison"
        for k in range(self.lanes):
            at = low.name if self.lanes == 1 else self.emit(f"extractelement {of} {low.name}, i32 {k}", "i", bits).name
            pointer = self.emit(f"getelementptr [{count} x {element}], ptr {symbol}, i64 0, i{bits} {at}", "i", 64).name
            one = self.emit(f"load {element}, ptr {pointer}, align {bits // 8}", "f", bits)
            if self.lanes == 1:
                return one
            vector = self.type_of("f", bits)
            result = self.emit(f"insertelement {vector} {result}, {element} {one.name}, i32 {k}", "f", bits).name
        return Value(self, result, "f", bits)

    def any_lane(self, flags: Value) -> str:
        """Writes whether a bool holds in any lane, and returns the name of that i1."""
        if self.lanes == 1:
            return flags.name
        packed = self.emit(f"bitcast <{self.lanes} x i1> {flags.name} to i{self.lanes}", "b", 1)
        return self.emit(f"icmp ne i{self.lanes} {packed.name}, 0", "b", 1).name

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
        """Returns a float constant."""
        return self._splat(_FLOAT_NAMES[bits], self._literal(value, bits), "f", bits)

    def _literal(self, value: float, bits: int) -> str:
        """LLVM writes float32 constants as the double of equal value."""
        pattern = struct.unpack("<Q", struct.pack("<d", value if bits == 64 else round_float(value, FLOAT32)))[0]
        return f"0x{pattern:016X}"

    def integer(self, value: int, bits: int) -> Value:
        value &= (1 << bits) - 1
        return self._splat(f"i{bits}", str(value - (1 << bits) if value >> (bits - 1) else value), "i", bits)
