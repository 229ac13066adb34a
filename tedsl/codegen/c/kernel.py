"""Kernels as functions of C: their parameters, their prototypes, their text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace

from tedsl.codegen.c.emitter import BufferInfo, Emitter, FunctionFacts, Tables
from tedsl.codegen.c.statements.frame import emit_return
from tedsl.codegen.c.text.function import finished
from tedsl.codegen.c.text.module_text import ModuleText
from tedsl.codegen.c.text.names import RESERVED, Names
from tedsl.codegen.c.text.piece import EQUALITY, INT64_MAX, INT64_MIN, Piece
from tedsl.codegen.kernels import abi
from tedsl.codegen.kernels.stack import arrays_on_stack
from tedsl.ir.expr import Expr, SizeVar
from tedsl.ir.func import PrimFunc
from tedsl.record import record
from tedsl.runtime.raw_form import ARRAY, RESULT, RawParameter, raw_parameters
from tedsl.runtime.signature import Signature

WIDTH = 120  # columns of a header of a function that stands in one line


@record
class CFunction:
    """A version of a kernel to be written, under its name in C, with the parameters of its raw form.
    statuses: the status of each message of its assertions. number: returns that of another message, of a call that it makes.
    """

    name: str
    func: PrimFunc
    signature: Signature
    parameters: tuple[RawParameter, ...]
    statuses: dict[str, int]
    number: Callable[[str], int]

    def status(self, message: str) -> int:
        """Returns the status with which the function fails for the reason `message`."""
        if message not in self.statuses:
            self.statuses[message] = self.number(message)
        return self.statuses[message]

    def failures(self) -> Iterator[str]:
        """Iterates over the statuses of failed assertions with their messages, as a comment may hold them."""
        for message, status in self.statuses.items():
            yield f"{status}: {message}".replace("*/", "* /").replace("\n", " ")


def c_function(name: str, func: PrimFunc, signature: Signature, number: Callable[[str], int]) -> CFunction:
    """Returns `func` as a function of C, with the parameters in the order of `signature`, named as C takes them.
    number: returns the status of a message.
    """
    pointers = len(list(signature.tensors()))
    names = Names(RESERVED)
    data = [buffer.data for buffer in func.buffers]
    parameters = [replace(p, name=names.fresh(p.name), var=data[k] if p.kind == ARRAY else p.var)
                  for k, p in enumerate(raw_parameters(signature, abi.kernel_arguments(func)[pointers:]))]
    statuses = {message: number(message) for message in abi.assertion_messages(func)}
    return CFunction(name, func, signature, tuple(parameters), statuses, number)


def prototype(function: CFunction, restrict: str = "", *, static: bool = False) -> str:
    """Returns the header of a kernel. restrict: what pointers that do not overlap are marked with. static: it is called from
    its file alone.
    """
    declared = [f"{p.type}{restrict} {p.name}" if p.kind == ARRAY and restrict else p.declaration for p in function.parameters]
    start = f"{'static ' if static else ''}int32_t {function.name}("
    one_line = f"{start}{', '.join(declared) or 'void'})"
    return one_line if len(one_line) <= WIDTH else start + (",\n" + " " * len(start)).join(declared) + ")"


def emit_kernel(function: CFunction, module: ModuleText, tables: Tables, *, owner: str, static: bool = False) -> None:
    """Writes `function` into the module. owner: the function of the program that it belongs to."""
    func = function.func
    noalias = bool(func.attrs.get("tir.noalias"))
    result = next((p.name for p in function.parameters if p.kind == RESULT), "")
    facts = FunctionFacts(function.name, arrays_on_stack(func.body), noalias, function.status, owner=owner, result=result)
    names = Names(frozenset(p.name for p in function.parameters) | {function.name} | module.prototypes.keys())
    out = Emitter(module, tables, facts, names)
    bind_parameters(out, function.parameters, {dim for b in func.buffers for dim in b.shape})
    out.statement(func.body)
    if not out.blocks[0].lines or not out.blocks[0].lines[-1].startswith("return"):
        emit_return(out, None)
    comment = [f"/* Returns {failure} */" for failure in function.failures()]
    header = prototype(function, module.dialect.restrict if noalias else "", static=static)
    lines = [*comment, *finished(out, header, [p.name for p in function.parameters])]
    module.functions[function.name] = "\n".join(lines) + "\n"


def bind_parameters(out: Emitter, parameters: Sequence[RawParameter], sizes: Set[Expr]) -> None:
    """Tells `out` what the parameters of a kernel are. sizes: those that are never negative, among other expressions."""
    for p in parameters:
        d = p.var.dtype
        if p.kind == RESULT:
            continue
        if p.kind == ARRAY:
            out.buffers[p.var] = BufferInfo(p.name, p.dtype, const=not p.written)
        elif d.is_bool:
            out.data[p.var] = Piece(f"{p.name} != 0", EQUALITY, 1)
        elif d.is_float or d.is_handle or (d.is_uint and d.bits == 64):
            out.data[p.var] = Piece(p.name)
        else:
            assert d.min_value is not None and d.max_value is not None
            low = 0 if p.var in sizes or isinstance(p.var, SizeVar) else max(d.min_value, INT64_MIN)
            out.index[p.var] = Piece(p.name, low=low, high=min(d.max_value, INT64_MAX))
