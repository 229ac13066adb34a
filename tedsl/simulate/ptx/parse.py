"""Reads PTX text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tedsl.errors import DeviceError
from tedsl.simulate.ptx.declarations import parameters_of, variable_of
from tedsl.simulate.ptx.inline import inlined
from tedsl.simulate.ptx.operands import operand_of, split_list, with_registers
from tedsl.simulate.ptx.syntax import BYTES, Function, Instruction, Kernel, Label, Register, Text, Variable

_MARK = re.compile(r"//(?=tedsl\.undefined \w+, \d+, \d+;)")  # of ours: what is in shared memory is lost at a barrier
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(\([^)]*\))?[^{;]*")
_FUNCTION = re.compile(r"\.func\s*(\([^)]*\))?\s*([\w$]+)\s*(\([^)]*\))?[^{;]*")
_VARIABLE = re.compile(r"^[ \t]*(?:\.(?:visible|extern|weak|common)\s+)*\.(?:global|const|shared)\b[^;]*;", re.MULTILINE)
_LABEL = re.compile(r"([$%\w.]+)\s*:(?!:)")
_LOCATION = re.compile(r"\.loc\s+(\d+)\s+(\d+)[^\n]*")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_COUNTED = re.compile(r"(%[\w$]+)<(\d+)>")


def parse(text: str) -> Text:
    """Returns the parts of a PTX text; DeviceError for what is none."""
    bare = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), _MARK.sub("  ", text))  # lines keep their numbers
    target = re.search(r"\.target\s+(\w+)", bare)
    if target is None:
        raise DeviceError("the simulator takes PTX text, and this text has no .target")
    functions: dict[str, Function] = {}
    kernels: dict[str, Kernel] = {}
    outside = bare
    for found in _FUNCTION.finditer(bare):
        if bare[found.end():found.end() + 1] == "{":
            end = _end_of_braces(bare, found.end())
            name, (results, given) = found.group(2), (_names(listed) for listed in (found.group(1), found.group(3)))
            functions[name] = Function(name, results, given, *_body(name, bare, found.end() + 1, end - 1))
            outside = _blank(outside, found.start(), end)
    for found in _ENTRY.finditer(bare):
        end = _end_of_braces(bare, found.end())
        name, parameters = found.group(1), parameters_of(found.group(2) or "()")
        kernels[name] = inlined(Kernel(name, parameters, *_body(name, bare, found.end() + 1, end - 1)), functions)
        outside = _blank(outside, found.start(), end)
    variables = tuple(variable_of(found.group()) for found in _VARIABLE.finditer(outside))
    files = {int(found.group(1)): found.group(2) for found in _FILE.finditer(bare)}
    return Text(target.group(1), kernels, variables, files)


def _names(listed: str | None) -> tuple[str, ...]:
    return tuple(parameter.name for parameter in parameters_of(listed or "()"))


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def _end_of_braces(text: str, start: int) -> int:
    """The place behind the brace that closes the one at `start`."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return found.end()
    raise DeviceError("a brace of the PTX text is not closed")


def _body(name: str, text: str, start: int, end: int) \
        -> tuple[dict[str, str], tuple[Variable, ...], tuple[Instruction | Label, ...]]:
    """The registers, the variables and the instructions and labels of a kernel or function."""
    registers: dict[str, str] = {}
    variables: list[Variable] = []
    body: list[Instruction | Label] = []
    source = (0, 0)
    for line, statement in _statements(text, start, end):
        if statement.endswith(":"):
            body.append(Label(statement[:-1].strip()))
        elif statement.startswith((".loc ", ".loc\t")):
            numbers = _LOCATION.match(statement)
            source = (int(numbers.group(1)), int(numbers.group(2))) if numbers else (0, 0)
        elif statement.startswith(".reg"):
            registers.update(_registers(statement))
        elif statement.startswith((".shared", ".local")):
            variables.append(variable_of(statement))
        elif statement.startswith((".pragma", ".maxn", ".min", ".param")):
            continue
        elif statement.startswith("."):
            raise DeviceError(f"the simulator does not know the directive {statement.split()[0]} (line {line} of {name})")
        else:
            instruction = instruction_of(statement, line, source)
            operands = tuple(with_registers(operand, registers) for operand in instruction.operands)
            body.append(replace(instruction, operands=operands))
    return registers, tuple(variables), tuple(body)


def _statements(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The statements from `start` to `end`, each after the number of its line; labels end with a colon."""
    line, at, counted = text.count("\n", 0, start) + 1, start, start
    space = re.compile(r"[\s{};]*")  # braces of scopes stand where statements begin; names are unique all the same
    while True:
        found = space.match(text, at, end)
        at = found.end() if found else at
        if at >= end:
            return
        line, counted = line + text.count("\n", counted, at), at
        matched = _LABEL.match(text, at, end) or _LOCATION.match(text, at, end)
        if matched:
            yield line, matched.group()
            at = matched.end()
            continue
        stop = text.find(";", at, end)
        stop = end if stop < 0 else stop
        yield line, text[at:stop].strip()
        at = stop


def _registers(statement: str) -> dict[str, str]:
    found = _REGISTERS.match(statement)
    if found is None or found.group(1) not in BYTES:
        raise DeviceError(f"the simulator does not understand {statement!r}")
    names: dict[str, str] = {}
    for listed in found.group(2).split(","):
        counted = _COUNTED.match(listed.strip())
        if counted:
            names.update((f"{counted.group(1)}{number}", found.group(1)) for number in range(int(counted.group(2))))
        else:
            names[listed.strip()] = found.group(1)
    return names


def instruction_of(statement: str, line: int, source: tuple[int, int] = (0, 0)) -> Instruction:
    """Returns the instruction that `statement` is, without its semicolon."""
    guard, rest = None, statement
    if statement.startswith("@"):
        taken, _, rest = statement[1:].partition(" ") if " " in statement else statement[1:].partition("\t")
        taken, _, more = statement[1:].replace("\t", " ").partition(" ")
        guard, rest = (Register(taken.lstrip("!")), taken.startswith("!")), more
    name, _, listed = rest.strip().replace("\t", " ").replace("\n", " ").partition(" ")
    operands = tuple(operand_of(one) for one in split_list(listed))
    parts = tuple(part for part in re.split(r"\.", name.replace("::", "__")) if part)
    return Instruction(parts, operands, " ".join(statement.split()), line, guard, source)
