"""The table of instructions that compute: what each name means for each type. What is not in it is refused by name."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.simulate.instructions import approximate, bits, compare, convert, floating, halves, integers
from tedsl.simulate.instructions.operation import Operation, unknown
from tedsl.simulate.ptx.syntax import BYTES, Instruction

Maker = Callable[[Instruction], Operation]

_ON_FLOATS: dict[str, Maker] = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"), floating.arithmetic),
    **dict.fromkeys(("min", "max", "abs", "neg", "copysign"), floating.choice),
    **dict.fromkeys(approximate.FUNCTIONS, approximate.approximation),
    "testp": compare.test,
}
_ON_HALVES: dict[str, Maker] = dict.fromkeys(
    ("add", "sub", "mul", "fma", "min", "max", "abs", "neg", "ex2", "tanh"), halves.arithmetic)
_ON_INTEGERS: dict[str, Maker] = {
    **dict.fromkeys(("add", "sub", "div", "rem", "min", "max", "abs", "neg", "sad"), integers.arithmetic),
    **dict.fromkeys(("mul", "mad"), integers.product),
    **dict.fromkeys(("mul24", "mad24"), integers.product24),
    "dp4a": integers.dot_of_bytes,
    **dict.fromkeys(("bfe",), bits.extract), **dict.fromkeys(("bfi",), bits.insert),
}
_ON_BITS: dict[str, Maker] = {
    **dict.fromkeys(("and", "or", "xor", "not", "cnot"), bits.logic),
    **dict.fromkeys(("shl", "shr"), bits.shift), "shf": bits.funnel,
    **dict.fromkeys(("popc", "clz", "brev", "bfind"), bits.count),
    "prmt": bits.permute, "lop3": bits.lookup, "bfi": bits.insert,
    "setp": compare.predicate, "selp": compare.selection, "slct": compare.selection_by_sign,
    "set": compare.set_of, "cvt": convert.conversion,
}


def operation_of(instruction: Instruction) -> Operation:
    """Returns what an instruction computes; DeviceError with its name if the simulator does not know it."""
    form = instruction.type
    if instruction.name == "set" and form.endswith("x2"):
        return halves.set_of(instruction)
    if instruction.name in _ON_BITS:
        return _ON_BITS[instruction.name](instruction)
    if form in ("f32", "f64"):
        table = _ON_FLOATS
    elif form in halves.HALVES:
        table = _ON_HALVES
    else:
        table = _ON_INTEGERS
    if form not in BYTES or instruction.name not in table:
        raise unknown(instruction)
    return table[instruction.name](instruction)
