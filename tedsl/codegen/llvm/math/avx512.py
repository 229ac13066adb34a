"""Operations of formulas that AVX-512 has instructions for, with the bits that the general ones give."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.formulas.language import Table, Value
from tedsl.codegen.llvm.math.function_body import LLVMBody

_REGISTER = 512
_FLOATS = {32: "float", 64: "double"}
_SUFFIX = {32: "ps.512", 64: "pd.512"}
_MASK = {32: "i16 -1", 64: "i8 -1"}
# getmant: values within [3/4, 3/2), positive, NaN for what is negative
_MANTISSAS = 0b1111


class AVX512Body(LLVMBody):
    """The body of a function on vectors. Vectors of another width than a register's are computed in whole registers."""

    scales = True

    def scaled(self, value: Value, whole: Value, biased: Value) -> Value:
        t = self._type("f", value.bits)
        return self._by_registers(value.bits, [value, whole], lambda a, n: (
            f"call {t} @llvm.x86.avx512.mask.scalef.{_SUFFIX[value.bits]}({t} {a}, {t} {n}, {t} zeroinitializer, "
            f"{_MASK[value.bits]}, i32 4)"))

    def parts(self, x: Value) -> tuple[Value, Value]:
        t, suffix, mask = self._type("f", x.bits), _SUFFIX[x.bits], _MASK[x.bits]
        m = self._by_registers(x.bits, [x], lambda a: (
            f"call {t} @llvm.x86.avx512.mask.getmant.{suffix}({t} {a}, i32 {_MANTISSAS}, {t} zeroinitializer, {mask}, i32 4)"))
        e = self._by_registers(x.bits, [x], lambda a: (
            f"call {t} @llvm.x86.avx512.mask.getexp.{suffix}({t} {a}, {t} zeroinitializer, {mask}, i32 4)"))
        return e, m

    def lookup(self, table: Table, index: Value) -> Value:
        bits, count = table.bits, len(table.values)
        lanes = _REGISTER // bits
        if count not in (lanes, 2 * lanes):
            return super().lookup(table, index)
        t, i, kind = self._type("f", bits), self._type("i", bits), _SUFFIX[bits]
        values = [f"{_FLOATS[bits]} {self._literal(value, bits)}" for value in table.values]
        registers = [f"<{', '.join(values[k:k + lanes])}>" for k in range(0, count, lanes)]
        if count == lanes:
            letter = {32: "sf", 64: "df"}[bits]
            return self._by_registers(bits, [index], lambda at: (
                f"call {t} @llvm.x86.avx512.permvar.{letter}.512({t} {registers[0]}, {i} {at})"))
        return self._by_registers(bits, [index], lambda at: (
            f"call {t} @llvm.x86.avx512.vpermi2var.{kind}({t} {registers[0]}, {i} {at}, {t} {registers[1]})"))

    def _type(self, kind: str, bits: int) -> str:
        return f"<{_REGISTER // bits} x {_FLOATS[bits] if kind == 'f' else f'i{bits}'}>"

    def _by_registers(self, bits: int, operands: list[Value], call: Callable[..., str]) -> Value:
        """Emits a call for each register that vectors of `bits` fill, and returns the floats of all together."""
        lanes = _REGISTER // bits
        if self.lanes == lanes:
            return self.emit(call(*(v.name for v in operands)), "f", bits)
        done = []
        for first in range(0, self.lanes, lanes):
            pieces = (self._picked(v, v.name, [min(k, self.lanes - 1) for k in range(first, first + lanes)]) for v in operands)
            done.append(self.emit(call(*pieces), "f", bits).name)
        return self._joined(done, bits)

    def _picked(self, of: Value, name: str, picks: list[int]) -> str:
        t = self.type_of(of.kind, of.bits)
        return self.emit(f"shufflevector {t} {name}, {t} poison, {_order(picks)}", of.kind, of.bits).name

    def _joined(self, names: list[str], bits: int) -> Value:
        """The first lanes of these registers one after the other, as many as the function has."""
        lanes = _REGISTER // bits
        while len(names) > 1:
            t = f"<{lanes} x {_FLOATS[bits]}>"
            order = _order(list(range(2 * lanes)))
            pairs = list(zip(names[::2], [*names[1::2], *(["poison"] * (len(names) % 2))]))
            names = [self.emit(f"shufflevector {t} {a}, {t} {b}, {order}", "f", bits).name for a, b in pairs]
            lanes *= 2
        if lanes == self.lanes:
            return Value(self, names[0], "f", bits)
        t = f"<{lanes} x {_FLOATS[bits]}>"
        return self.emit(f"shufflevector {t} {names[0]}, {t} poison, {_order(list(range(self.lanes)))}", "f", bits)


def _order(picks: list[int]) -> str:
    return f"<{len(picks)} x i32> <" + ", ".join(f"i32 {k}" for k in picks) + ">"
