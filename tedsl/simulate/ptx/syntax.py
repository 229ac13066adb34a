"""The parts of a PTX text, as data."""

from __future__ import annotations

from typing import TypeAlias

from tedsl.record import record

BYTES = {"pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4, "s32": 4,
         "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16}


@record
class Register:
    """A register of a thread, by its name with %."""

    name: str


@record
class Special:
    """A register that the machine fills, such as %tid.x."""

    name: str


@record
class Number:
    """A constant: an integer, or the bits of a floating-point number of type `form` ("f32", "f64")."""

    value: int
    form: str = ""


@record
class Symbol:
    """The address of a variable, `offset` bytes into it; the name of a label or of a parameter too."""

    name: str
    offset: int = 0


@record
class Memory:
    """The location [base + offset]."""

    base: Register | Symbol | None
    offset: int = 0


@record
class Group:
    """Several operands in one: a vector {a, b}, or (paired) the two results a|b."""

    items: tuple[Operand, ...]
    paired: bool = False


Operand: TypeAlias = "Register | Special | Number | Symbol | Memory | Group"


@record
class Instruction:
    """One instruction. parts: its name between dots: ("ld", "global", "v4", "b32"). guard: the predicate that lets it run, and
    whether it must be false. line: where it stands in the text. source: file and line of the program, (0, 0) if unknown.
    """

    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    text: str
    line: int
    guard: tuple[Register, bool] | None = None
    source: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        return self.parts[0]

    @property
    def type(self) -> str:
        return self.parts[-1]


@record
class Label:
    name: str


@record
class Variable:
    """Memory that a text declares. space: "global", "const", "shared", "local". size 0: as many bytes as the launch says."""

    name: str
    space: str
    size: int
    align: int
    initial: bytes = b""


@record
class Parameter:
    """A parameter of a kernel, at `offset` in the bytes that hold them all."""

    name: str
    type: str
    offset: int
    size: int


@record
class Kernel:
    """An entry: what it takes, the registers and the memory of each thread and block, its instructions and labels in order."""

    name: str
    parameters: tuple[Parameter, ...]
    registers: dict[str, str]  # name -> type
    variables: tuple[Variable, ...]
    body: tuple[Instruction | Label, ...]


@record
class Function:
    """A function that kernels call: the names of its results and parameters, and the rest as of a kernel."""

    name: str
    results: tuple[str, ...]
    parameters: tuple[str, ...]
    registers: dict[str, str]
    variables: tuple[Variable, ...]
    body: tuple[Instruction | Label, ...]


@record
class Text:
    """A PTX text. target: "sm_80". files: the names of sources by their numbers."""

    target: str
    kernels: dict[str, Kernel]
    variables: tuple[Variable, ...]
    files: dict[int, str]
