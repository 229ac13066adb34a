"""Puts the bodies of functions in the place of their calls, so that a kernel is one body without calls.

Registers and labels of a body get names of their own for each call. What passes through parameters passes through registers:

    st.param.b32 [param0], %r1;                 mov.b32 %param0, %r1;
    call.uni (retval0), f, (param0);     ►      ... the body of f, which reads %param0 and writes %retval0 ...
    ld.param.b32 %r2, [retval0];                mov.b32 %r2, %retval0;
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tedsl.errors import DeviceError
from tedsl.simulate.ptx.syntax import (
    BYTES,
    Function,
    Group,
    Instruction,
    Kernel,
    Label,
    Memory,
    Operand,
    Register,
    Symbol,
    Variable,
)


def inlined(kernel: Kernel, functions: Mapping[str, Function]) -> Kernel:
    """Returns the kernel without calls; DeviceError for calls of what the text does not have, and for recursion."""
    if not any(isinstance(item, Instruction) and item.name == "call" for item in kernel.body):
        return kernel
    work = _Inlining(functions, dict(kernel.registers), {v.name: v for v in kernel.variables})
    body = tuple(work.expand(kernel.body, "", {p.name: None for p in kernel.parameters}, ()))
    return replace(kernel, registers=work.registers, variables=tuple(work.variables.values()), body=body)


class _Inlining:
    def __init__(self, functions: Mapping[str, Function], registers: dict[str, str], variables: dict[str, Variable]) -> None:
        self.functions, self.registers, self.variables = functions, registers, variables
        self.calls = 0

    def expand(self, body: tuple[Instruction | Label, ...], prefix: str, passed: Mapping[str, str | None],
               within: tuple[str, ...]) -> Iterator[Instruction | Label]:
        """The items of a body with the names of one call.

        prefix: of its registers and labels. passed: the name under which the caller has each parameter and result; None for
        those of the kernel, which stay in memory. within: the functions that are being called.
        """
        for item in body:
            if isinstance(item, Label):
                yield Label(prefix + item.name)
            elif item.name == "call":
                yield from self._call(item, prefix, within)
            elif item.name in ("ld", "st") and "param" in item.parts and self._passes(item, passed):
                yield from self._moves(item, prefix, passed)
            elif within and item.name in ("ret", "exit"):
                yield replace(self._renamed(item, prefix), parts=("bra",), operands=(Symbol(f"{prefix}end"),))
            else:
                yield self._renamed(item, prefix)

    def _call(self, item: Instruction, prefix: str, within: tuple[str, ...]) -> Iterator[Instruction | Label]:
        groups = [[one.name for one in operand.items if isinstance(one, Symbol)] for operand in item.operands
                  if isinstance(operand, Group)]
        name = next((one.name for one in item.operands if isinstance(one, Symbol)), "")
        if name not in self.functions or name in within or item.guard is not None:
            raise DeviceError(f"the simulator does not know the call {item.text} (line {item.line})")
        function = self.functions[name]
        results = groups.pop(0) if function.results else []
        given = groups[0] if groups else []
        self.calls += 1
        own = f"call{self.calls}_"
        passed: dict[str, str | None] = {formal: prefix + actual for formal, actual in zip(function.parameters, given)}
        passed.update((formal, prefix + actual) for formal, actual in zip(function.results, results))
        self.registers.update((_with(own, register), form) for register, form in function.registers.items())
        self.variables.update((variable.name, variable) for variable in function.variables)
        yield from self.expand(function.body, own, passed, (*within, name))
        yield Label(f"{own}end")

    def _passes(self, item: Instruction, passed: Mapping[str, str | None]) -> bool:
        """Whether an access is to what functions pass to each other, not to a parameter of the kernel."""
        symbol = _symbol_of(item)
        return symbol is not None and (symbol not in passed or passed[symbol] is not None)

    def _moves(self, item: Instruction, prefix: str, passed: Mapping[str, str | None]) -> Iterator[Instruction]:
        """The moves that an access to a passed value is, one for each of its elements."""
        load = item.name == "ld"
        memory, other = (item.operands[1], item.operands[0]) if load else item.operands
        symbol = _symbol_of(item)
        assert isinstance(memory, Memory) and isinstance(memory.base, Symbol) and symbol is not None
        begin, name = memory.offset + memory.base.offset, passed.get(symbol) or prefix + symbol
        for number, one in enumerate(other.items if isinstance(other, Group) else (other,)):
            register = f"%{name}+{begin + number * BYTES[item.type]}"
            self.registers.setdefault(register, item.type)
            pair = (_renamed(one, prefix), Register(register))
            yield replace(self._renamed(item, prefix), parts=("mov", item.type), operands=pair if load else pair[::-1])

    def _renamed(self, item: Instruction, prefix: str) -> Instruction:
        if not prefix:
            return item
        guard = (Register(_with(prefix, item.guard[0].name)), item.guard[1]) if item.guard else None
        operands = tuple(_renamed(one, prefix) for one in item.operands)
        if item.name == "bra" and isinstance(operands[0], Symbol):
            operands = (Symbol(prefix + operands[0].name),)
        return replace(item, operands=operands, guard=guard)


def _symbol_of(item: Instruction) -> str | None:
    memory = item.operands[1 if item.name == "ld" else 0]
    return memory.base.name if isinstance(memory, Memory) and isinstance(memory.base, Symbol) else None


def _with(prefix: str, register: str) -> str:
    return f"%{prefix}{register.removeprefix('%')}"


def _renamed(operand: Operand, prefix: str) -> Operand:
    """An operand with its registers renamed."""
    if not prefix:
        return operand
    if isinstance(operand, Register):
        return Register(_with(prefix, operand.name))
    if isinstance(operand, Memory) and isinstance(operand.base, Register):
        return Memory(Register(_with(prefix, operand.base.name)), operand.offset)
    if isinstance(operand, Group):
        return Group(tuple(_renamed(one, prefix) for one in operand.items), operand.paired)
    return operand
