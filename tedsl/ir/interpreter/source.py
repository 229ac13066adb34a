"""The writer of the interpreter's Python source: temporaries, blocks, functions, memory.

Every node becomes an assignment to a temporary, so that deep expressions do not nest; shared nodes of a statement are
computed once. Two modes: data arithmetic wraps; `wide` (addresses, loop bounds, and conditions on integers that read no memory)
is exact, as the code generator's 64-bit index arithmetic is. Python's limits on nested blocks are met by moving deep
parts into functions of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tedsl.errors import ArgumentError, InternalError
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.fragments import Fragment, fragments_of
from tedsl.ir.dtype import DType
from tedsl.ir.expr import (
    BufferLoad,
    Call,
    Expr,
    Load,
    ProducerLoad,
    Reduce,
    Var,
)
from tedsl.ir.interpreter import arithmetic, matrices
from tedsl.ir.interpreter.external import array_view, elements_past_line
from tedsl.ir.node import Node
from tedsl.ir.walk.index_arithmetic import is_index_arithmetic
from tedsl.ir.walk.visitor import post_order

Key: TypeAlias = tuple[int, bool, str]  # id of a node, wide, name of the mask
Emission: TypeAlias = Generator[tuple[Expr, bool], str, str]  # asks for the value of a child (and its mode), gives its own
DEEPEST = 40  # blocks in one function; Python's limit on indentation is 100


@dataclass
class Layout:
    """The layout of a buffer: element [i, j] is at (i - low_i) * stride_i + ...; the fields are names in the source."""

    low: list[str]
    size: list[str]
    stride: list[str]
    offset: str


@dataclass
class Memory:
    """The array behind a data pointer, as names in the source: the array and its length. dtype None: known at the call only."""

    name: str
    length: str
    dtype: DType | None


class SourceWriter:
    """Writes the lines of one function; `value(expr)` emits the computation of an expression, returns the name of its value."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.functions: list[str] = []
        self.scope: dict[str, Any] = {name: getattr(arithmetic, name) for name in vars(arithmetic)}
        self.scope |= {name: getattr(matrices, name) for name in matrices.CALLS}
        self.scope |= {"np": np, "InternalError": InternalError, "ArgumentError": ArgumentError, "outside_error": outside_error,
                       "array_view": array_view, "elements_past_line": elements_past_line}
        self.constants: dict[Any, str] = {}
        self.vars: dict[Var, tuple[str, bool]] = {}  # name of the value, and whether it may exceed its dtype
        self.memories: dict[Var, Memory] = {}
        self.layouts: dict[Var, Layout] = {}
        self.free: dict[Any, str] = {}  # what the caller must give: variables, data pointers, buffers, tensors
        self.memo: dict[Key, str] = {}  # values computed so far, valid here
        self.added: list[list[Key]] = [[]]  # by block: what leaves the memo at its end
        self.mask = ""  # name of the lanes that are on, "" if all are
        self.loops: list[tuple[str, str]] = []  # name as the user knows it, name here
        self.temps = self.names = 0
        self.reads: dict[int, bool] = {}
        self.data_vars: set[Var] = set()  # integer variables that stand for data
        self.pure: dict[Expr, bool] = {}
        self.program: Node | None = None  # whose fragments are known
        self.fragments: dict[Var, Fragment] | None = None

    # --- source ---

    def line(self, source: str) -> None:
        self.lines.append(" " * self.depth + source)

    def temp(self, source: str) -> str:
        """The name of a temporary that holds `source`."""
        self.temps += 1
        self.line(f"t_{self.temps} = {source}")
        return f"t_{self.temps}"

    def shuffled(self, e: Call, args: list[str]) -> str:
        """The name of a value of another thread of the warp."""
        raise InternalError(f"{e.op.name} stands outside of a kernel")

    def fragment(self, var: Var) -> Fragment:
        """What the program says of the fragments of a memory."""
        if self.fragments is None:
            self.fragments = {} if self.program is None else fragments_of(self.program)
        return self.fragments[var]

    def local(self, wanted: str) -> str:
        """A new name like `wanted`; generated names end in an underscore and a number, no other name does."""
        self.names += 1
        return f"{re.sub(r'[^a-zA-Z0-9]', '', wanted) or 'x'}v_{self.names}"

    def constant(self, value: Any) -> str:
        """The name of a constant of the function; `value` is any hashable object."""
        key = (type(value), repr(value) if isinstance(value, np.generic) else value)
        if key not in self.constants:
            self.constants[key] = f"K{len(self.constants)}"
            self.scope[self.constants[key]] = value
        return self.constants[key]

    def enter(self, header: str) -> None:
        """Emits `header` and indents the lines that follow."""
        self.line(header)
        self.depth += 1
        self.added.append([])

    def leave(self) -> None:
        if self.lines[-1].endswith(":"):
            self.line("pass")
        self.depth -= 1
        self._drop_block()

    def _drop_block(self) -> None:
        for key in self.added.pop():
            self.memo.pop(key, None)

    def begin_function(self) -> tuple[list[str], int]:
        """Starts a nested function for the lines that follow, until `end_function`; returns the state to pass to that."""
        saved = self.lines, self.depth
        self.lines, self.depth = [], 1
        self.added.append([])
        return saved

    def end_function(self, saved: tuple[list[str], int], result: str = "None") -> str:
        """Ends the nested function, which returns `result`; returns the source of a call of it."""
        body = [*self.lines, f" return {result}"]
        self.lines, self.depth = saved
        self._drop_block()
        used = dict.fromkeys(_LOCAL.findall("\n".join(body)))
        assigned = {name for line in body for name in _MADE.findall(line)}
        arguments = ", ".join(name for name in used if name not in assigned)
        call = f"F{len(self.functions)}({arguments})"
        self.functions.append("\n".join([f"def {call}:", *body]))
        return call

    # --- values ---

    def value(self, root: Expr, wide: bool = False) -> str:
        """Emits the computation of `root`, with an explicit stack, and returns the name of its value."""
        stack: list[tuple[Key, Emission]] = []
        request: tuple[Expr, bool] | None = (root, wide)
        result = ""
        while True:
            if request is not None:
                expr, mode = request
                key = (id(expr), mode and expr.dtype.is_int and expr.dtype.bits >= 32, self.mask)
                known = self.memo.get(key)
                if known is None:
                    stack.append((key, self.emission(expr, key[1])))
                    result = None  # type: ignore[assignment]
                else:
                    result = known
            if not stack:
                return result
            try:
                request = stack[-1][1].send(result)
            except StopIteration as finished:
                request, result = None, finished.value
                key = stack.pop()[0]
                self.memo[key] = result
                self.added[-1].append(key)

    def emission(self, expr: Expr, wide: bool) -> Emission:
        """The generator that emits the node `expr`; subclasses choose it by node type."""
        raise NotImplementedError

    def forget(self) -> None:
        """Starts a new statement: drops the temporaries, as memory may have changed."""
        self.memo.clear()
        self.temps = 0

    def reads_memory(self, root: Expr) -> bool:
        """Whether a node below `root` reads memory or has side effects."""
        if id(root) not in self.reads:
            for node in post_order(root):
                if id(node) not in self.reads:
                    self.reads[id(node)] = isinstance(node, (Load, BufferLoad, ProducerLoad, Reduce)) or (
                        isinstance(node, Call) and not node.op.is_pure) or any(
                        self.reads[id(child)] for child in node.child_nodes() if id(child) in self.reads)
        return self.reads[id(root)]

    def is_index(self, e: Expr) -> bool:
        """Whether `e` is index arithmetic, no step of which wraps."""
        return is_index_arithmetic(e, lambda var: var not in self.data_vars, self.pure)

    def is_exact(self, var: Var, value: Expr) -> bool:
        """Whether `var`, bound to `value`, stands for index arithmetic; else it is data from here on."""
        exact = value.dtype.is_int and self.is_index(value)
        if not exact:
            self.data_vars.add(var)
        return exact

    def wrap(self, source: str, of: DType) -> str:
        """`source`, a Python int, wrapped to the scalar dtype `of`."""
        mask = (1 << of.bits) - 1
        half = 1 << (of.bits - 1)
        return f"(({source} + {half}) & {mask}) - {half}" if of.is_int else f"({source}) & {mask}"

    # --- memory ---

    def memory(self, var: Var) -> Memory:
        """The memory behind `var`; a parameter of the compiled program if it is not allocated inside."""
        if var not in self.memories:
            name = self.free.setdefault(var, self.local(var.name))
            self.memories[var] = Memory(name, f"len({name})", None)
        return self.memories[var]

    def typed(self, memory: Memory, element: DType) -> tuple[str, str]:
        """Array and length of `memory` seen as elements of dtype `element`."""
        if memory.dtype is element.element:
            return memory.name, memory.length
        view = self.temp(f"{memory.name}.view({self.constant(arithmetic.memory_type(element))})")
        return view, f"len({view})"

    def check(self, name: str, index: str, size: str, lanes: int, mask: str) -> None:
        """Emits a bounds check, 0 <= index < size in the active lanes."""
        loops = "".join(f"({self.constant(known)}, {here}), " for known, here in self.loops)
        test = f"not 0 <= {index} < {size}" if lanes == 1 else f"outside({index}, {mask or 'None'}, {size})"
        self.line(f"if {test}: raise outside_error({self.constant(name)}, {index}, {size}, ({loops}))")

    def load(self, memory: Memory, of: DType, index: str, mask: str) -> str:
        """The source of a load of the elements at `index`, which is already bounds-checked."""
        array, _ = self.typed(memory, of)
        if of.lanes == 1:
            return {"b": f"{array}.item({index}) != 0", "i": f"{array}.item({index})", "u": f"{array}.item({index})",
                    "f": f"{array}[{index}]"}[of.code[0]] if of.code != "bfloat" else f"BFLOAT16_VALUES[{array}.item({index})]"
        taken = f"{array}[np.where({mask}, {index}, 0)]" if mask else f"{array}[{index}]"
        values = f"({taken} != 0)" if of.is_bool else f"BFLOAT16_VALUES[{taken}]" if of.code == "bfloat" else taken
        if not mask:
            return values
        return f"np.where({mask}, {values}, {zero(of)}).astype({self.constant(arithmetic.vector_type(of))})"

    def stored(self, value: str, of: DType) -> str:
        return f"bfloat16_bits({value})" if of.code == "bfloat" else value

    def loaded(self, name: str, memory: Memory, of: DType, flat: str, mask: str, checks: Callable[[], None]) -> str:
        """Emits a load under `mask` and the active lanes; memory is not accessed where the mask is false."""
        masks = [m for m in (mask, self.mask) if m]
        if not masks:
            checks()
            return self.temp(self.load(memory, of, flat, ""))
        if of.lanes > 1:
            every = self.temp(f"np.broadcast_to({' & '.join(masks)}, {of.lanes})")
            saved, self.mask = self.mask, every
            self.enter(f"if {every}.any():")
            checks()
            self.leave()
            self.mask = saved
            source = self.load(memory, of, flat, every)
            return self.temp(f"{source} if {every}.any() else np.zeros({of.lanes}, "
                             f"{self.constant(arithmetic.vector_type(of))})")
        result = self.temp(zero(of))
        self.enter("if " + " and ".join(f"np.any({m})" for m in masks) + ":")
        saved, self.mask = self.mask, ""
        checks()
        self.mask = saved
        self.line(f"{result} = {self.load(memory, of, flat, '')}")
        self.leave()
        return result

    def layout(self, buffer: Buffer) -> Layout:
        if buffer.data not in self.layouts:
            raise InternalError(f"buffer {buffer.name} is neither a parameter nor realized around its use")
        return self.layouts[buffer.data]

    def address(self, buffer: Buffer, indices: list[str]) -> str:
        """The flat index of an element (or vector of elements) of `buffer`."""
        layout = self.layout(buffer)
        terms = [f"({i} - {low}) * {stride}" for i, low, stride in zip(indices, layout.low, layout.stride)]
        flat = self.temp(" + ".join([layout.offset, *terms]))
        lanes = buffer.dtype.lanes
        if lanes == 1:
            return flat
        return self.temp(f"(np.multiply.outer({flat}, {lanes}) + np.arange({lanes})).reshape(-1)")

    def check_indices(self, buffer: Buffer, indices: tuple[Expr, ...], names: list[str]) -> None:
        layout = self.layout(buffer)
        for position, (index, name) in enumerate(zip(indices, names)):
            where = f"{buffer.name}, dimension {position}"
            low = layout.low[position]
            inside = name if low == "0" else self.temp(f"{name} - {low}")
            self.check(where if low == "0" else f"{where} (relative to the realized region)", inside, layout.size[position],
                       index.dtype.lanes, self.mask)


_LOCAL = re.compile(r"\b[a-zA-Z][a-zA-Z0-9]*_\d+\b")
_MADE = re.compile(r"^ *(?:for )?([a-zA-Z][a-zA-Z0-9]*_\d+)(?: =| in) ")


def outside_error(name: str, index: Any, size: int, loops: tuple[tuple[str, Any], ...]) -> InternalError:
    """The error of an access out of range."""
    at = index.tolist() if isinstance(index, np.ndarray) else index
    where = ", ".join(f"{loop} = {value}" for loop, value in loops) or "(no loops)"
    return InternalError(f"index {at} of {name} is outside 0 <= index < {size}; loops: {where}")


def zero(of: DType) -> str:
    if of.is_float:
        return f"np.{'float32' if of.code == 'bfloat' else of.element}(0)"
    return "False" if of.is_bool else "0"
