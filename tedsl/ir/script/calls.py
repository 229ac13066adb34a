"""Calls in the readable notation: bitwise operators as Python writes them, the others by the names that programs use."""

from __future__ import annotations

from typing import Any

from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Call, IntImm
from tedsl.ir.ops import ACCESS_PTR, CALL_PACKED, FOREIGN, IF_THEN_ELSE, REINTERPRET
from tedsl.ir.script.levels import OPERATORS, Level, operand
from tedsl.ir.script.printer import ScriptPrinter
from tedsl.ir.text import Part, listed

WITH_DTYPE = (FOREIGN - {CALL_PACKED}) | {REINTERPRET}  # programs give the dtype of these first
MASKS = {Buffer.READ: "r", Buffer.WRITE: "w", Buffer.READ | Buffer.WRITE: "rw"}


def call_parts(e: Call, p: ScriptPrinter) -> list[Part]:
    if e.op is IF_THEN_ELSE:
        return _choice(e, p)
    if e.op in OPERATORS:
        return _operator(e, p)
    if e.op is ACCESS_PTR and len(e.args) == 5:
        return _access_ptr(e)
    name = e.op.name.removeprefix("tir.").removeprefix("tvm_")
    given: list[Part] = [f'"{e.dtype}"'] if e.op in WITH_DTYPE else []
    return [f"{name}(", *listed([*given, *e.args], ""), ")"]


def _operator(e: Call, p: ScriptPrinter) -> list[Part]:
    sign, binds = OPERATORS[e.op]
    if len(e.args) == 1:
        return [sign, *operand(e.args[0], binds, p)]
    return [*operand(e.args[0], binds, p), sign, *operand(e.args[1], Level(binds + 1), p)]


def _choice(e: Call, p: ScriptPrinter) -> list[Part]:
    condition, chosen, other = e.args
    return [*operand(chosen, Level.OR, p), " if ", *operand(condition, Level.OR, p), " else ",
            *operand(other, Level.CHOICE, p)]


def _access_ptr(e: Call) -> list[Part]:
    """An address as `Buffer.access_ptr` writes it, with the number of elements accessed from there."""
    _, memory, offset, extent, mask = e.args
    use: Any = MASKS.get(mask.value, mask) if isinstance(mask, IntImm) else mask
    return [memory, ".access_ptr(", f'"{use}"' if isinstance(use, str) else use, ", offset=", offset, ", extent=", extent, ")"]
