"""Reads the operands of PTX instructions."""

from __future__ import annotations

import re
from collections.abc import Collection

from tedsl.errors import DeviceError
from tedsl.simulate.ptx.syntax import Group, Memory, Number, Operand, Register, Special, Symbol

_OPEN, _CLOSE = "{[(", "}])"
_SPECIAL = re.compile(r"%(?:tid|ntid|ctaid|nctaid|laneid|warpid|nwarpid|smid|nsmid|clock|clock64|globaltimer|lanemask_\w+|"
                      r"dynamic_smem_size|total_smem_size|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyz])?")
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)U?")
_SUM = re.compile(r"(.*?)\s*([-+])\s*(-?(?:0[xX][0-9a-fA-F]+|[0-9]+))")
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*|%[A-Za-z_$][\w$]*")


def split_list(text: str) -> list[str]:
    """Returns the parts of `text` between its outermost commas."""
    parts, depth, last = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    rest = text[last:].strip()
    return parts + [rest] if rest or parts else []


def integer_of(text: str) -> int:
    """Returns the value of an integer constant."""
    digits = text.rstrip("U").lower()
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits.lstrip("+"))
    base = {"0x": 16, "0b": 2}.get(digits[:2], 8 if len(digits) > 1 and digits[0] == "0" else 10)
    return sign * int(digits, base)


def operand_of(text: str) -> Operand:
    """Returns the operand that `text` writes."""
    if text.startswith("["):
        return _memory(text[1:-1].strip())
    if text.startswith(("{", "(")):
        return Group(tuple(operand_of(one) for one in split_list(text[1:-1])))
    if "|" in text:
        return Group(tuple(operand_of(one.strip()) for one in text.split("|")), paired=True)
    if text[:2] in ("0f", "0F", "0d", "0D"):
        return Number(int(text[2:], 16), "f32" if text[1] in "fF" else "f64")
    if _INTEGER.fullmatch(text):
        return Number(integer_of(text))
    if _SPECIAL.fullmatch(text) or text == "WARP_SZ":
        return Special(text)
    return _named(text)


def with_registers(operand: Operand, registers: Collection[str]) -> Operand:
    """Returns `operand` with its names that are declared as registers read as such: not all of them begin with %."""
    match operand:
        case Symbol(name=name, offset=0) if name in registers:
            return Register(name)
        case Memory(base=Symbol(name=name, offset=0), offset=offset) if name in registers:
            return Memory(Register(name), offset)
        case Group(items=items, paired=paired):
            return Group(tuple(with_registers(item, registers) for item in items), paired)
        case _:
            return operand


def _named(text: str) -> Register | Symbol:
    if text.startswith("%"):
        return Register(text)
    added = _SUM.fullmatch(text)
    name, offset = (added.group(1), integer_of(added.group(2) + added.group(3))) if added else (text, 0)
    if name != "_" and not _SYMBOL.fullmatch(name):
        raise DeviceError(f"the simulator does not understand the operand {text!r}")
    return Symbol(name, offset)


def _memory(text: str) -> Operand:
    if "," in text:  # [texture, {coordinates}], [address, coordinates]
        raise DeviceError(f"the simulator knows no location of several parts: [{text}]")
    if _INTEGER.fullmatch(text):
        return Memory(None, integer_of(text))
    added = _SUM.fullmatch(text)
    name, offset = (added.group(1), integer_of(added.group(3)) * (-1 if added.group(2) == "-" else 1)) if added else (text, 0)
    base = _named(name)
    return Memory(base, offset)
