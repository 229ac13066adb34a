"""Reads declarations of variables and parameters of PTX text."""

from __future__ import annotations

import re
import struct

from tedsl.errors import DeviceError
from tedsl.simulate.ptx.operands import integer_of, split_list
from tedsl.simulate.ptx.syntax import BYTES, Parameter, Variable

_DECLARED = re.compile(r"\.(global|const|shared|local|param)\b(.*)", re.DOTALL)
_NAME = re.compile(r"([$%\w]+)\s*((?:\[\s*\d*\s*\])*)\s*$")
_ALIGN = re.compile(r"\.align\s+(\d+)")


def variable_of(statement: str) -> Variable:
    """Returns the variable that `statement` declares."""
    declared, _, value = statement.rstrip(" ;\n").partition("=")
    found, named = _DECLARED.search(declared), _NAME.search(declared)
    if found is None or named is None:
        raise DeviceError(f"the simulator does not understand the declaration {statement!r}")
    kind = _type(declared)
    count, sizes = 1, re.findall(r"\[\s*(\d*)\s*\]", named.group(2))
    for size in sizes:
        count *= int(size) if size else 0
    align = _ALIGN.search(declared)
    return Variable(named.group(1), found.group(1), count * BYTES[kind], int(align.group(1)) if align else BYTES[kind],
                    _bytes(value.strip(), kind))


def _type(declared: str) -> str:
    for part in re.findall(r"\.(\w+)", declared):
        if part in BYTES:
            return str(part)
    raise DeviceError(f"the simulator finds no type in the declaration {declared!r}")


def _bytes(value: str, kind: str) -> bytes:
    """The bytes of an initial value."""
    made = b""
    for one in split_list(value.strip().removeprefix("{").removesuffix("}")) if value else ():
        if one[:2] in ("0f", "0d"):
            made += int(one[2:], 16).to_bytes(BYTES[kind], "little")
        elif re.fullmatch(r"[-+]?\w+", one) and one.lstrip("+-")[0].isdigit():
            made += (integer_of(one) & ((1 << 8 * BYTES[kind]) - 1)).to_bytes(BYTES[kind], "little")
        elif kind in ("f32", "f64"):
            made += struct.pack("<f" if kind == "f32" else "<d", float(one))
        else:
            raise DeviceError(f"the simulator does not take the initial value {one!r}")
    return made


def parameters_of(listed: str) -> tuple[Parameter, ...]:
    """Returns the parameters of a kernel from the text of their list, with its parentheses."""
    made: list[Parameter] = []
    end = 0
    for one in split_list(listed.strip()[1:-1]):
        variable = variable_of(one)
        kind = _type(one)
        align = variable.align if variable.size != BYTES[kind] else BYTES[kind]
        offset = -(-end // align) * align
        made.append(Parameter(variable.name, kind, offset, variable.size))
        end = offset + variable.size
    return tuple(made)
