"""The printer of TVMScript: names that are identifiers, and what buffers of one dimension stand for flat memory."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, Var
from tedsl.ir.node import Node
from tedsl.ir.script.printer import Handler, ScriptPrinter
from tedsl.ir.text import Part, listed, quoted
from tedsl.ir.types import PointerType

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")


class TVMScriptPrinter(ScriptPrinter):
    """Prints one function.

    prefix: the name of `tvm.script.tir`. accessed: the dtypes of elements by which flat memory is accessed; flat: the names of
    the buffers for that. producers: the names of tensors that have no buffers. numbers: the last number given to each name.
    """

    def __init__(self, table: Mapping[type, Handler], prefix: str, function_name: str) -> None:
        super().__init__(table, {}, function_name)
        self.prefix = prefix
        self.flat: dict[tuple[Var, DType], str] = {}
        self.accessed: dict[Var, list[DType]] = {}
        self.producers: dict[Any, str] = {}
        self.numbers: dict[str, int] = {prefix: 0, "I": 0, "range": 0}

    def identifier(self, wanted: str) -> str:
        """A name that is not in use: `wanted` as an identifier of Python, perhaps with a number appended."""
        plain = NOT_IN_NAMES.sub("_", wanted) or "v"
        plain = f"v{plain}" if plain[0].isdigit() else plain + "_" * keyword.iskeyword(plain)
        unique, number = plain, self.numbers.get(plain, 0)
        while unique in self.numbers:
            number += 1
            unique = f"{plain}_{number}"
        self.numbers[plain] = number
        self.numbers.setdefault(unique, 0)
        return unique

    def name(self, node: Node, wanted: str, prefix: str) -> str:
        self.names[node] = self.identifier(wanted or prefix)
        return self.names[node]

    def buffer(self, buffer: Buffer) -> list[Part]:
        if buffer not in self.names:
            self.name(buffer, buffer.name, "buffer")
            self.names.setdefault(buffer.data, f"{self.names[buffer]}.data")
        return [self.names[buffer]]

    def producer(self, tensor: Any) -> str:
        """The name of a tensor that has no buffer."""
        if tensor not in self.producers:
            self.producers[tensor] = self.identifier(str(tensor.name))
        return self.producers[tensor]

    # --- small texts ---

    def function(self, name: str, *args: Part | list[Part]) -> list[Part]:
        """`T.name(args...)`."""
        parts: list[Part] = [arg if not isinstance(arg, list) else partial(list, arg) for arg in args]
        return [f"{self.prefix}.{name}(", *listed(parts, ""), ")"]

    def type_name(self, of: Any) -> str:
        """A type as an annotation: `T.float32`, `T.handle("float32", "shared")` for a pointer."""
        if isinstance(of, PointerType):
            scope = f", {quoted(of.storage_scope)}" if of.storage_scope else ""
            return f"{self.prefix}.handle({quoted(str(of.element_type))}{scope})"
        text = str(of)
        return f"{self.prefix}.{text}" if text.isidentifier() else f"{self.prefix}.dtype({quoted(text)})"

    def declaration(self, buffer: Buffer, how: str = "Buffer", given: list[Part] | None = None) -> list[Part]:
        """`B = T.Buffer(shape, dtype, ...)`, with what differs from a compact buffer of its own. given: the first arguments."""
        known = buffer.data in self.names and self.names[buffer.data]
        args: list[list[Part]] = [given] if given else []
        args += [listed_tuple(buffer.shape), [quoted(str(buffer.dtype))]]
        (name,) = self.buffer(buffer)
        if known and how == "Buffer":
            args.append([f"data={known}"])
        if buffer.strides:
            args.append(["strides=", *listed_tuple(buffer.strides)])
        if build.as_int(buffer.elem_offset) != 0:
            args.append(["elem_offset=", buffer.elem_offset])
        if buffer.scope() != "global":
            args.append([f"scope={quoted(buffer.scope())}"])
        for field, value, usual in (("align", buffer.data_alignment, 0), ("offset_factor", buffer.offset_factor, 1)):
            args += [[f"{field}={value}"]] if value > usual else []
        if buffer.buffer_type:
            args.append([f"buffer_type={quoted(buffer.buffer_type)}"])
        return [name, " = ", *self.function(how, *args)]


def listed_tuple(items: tuple[Expr, ...]) -> list[Part]:
    """The text of a tuple."""
    return ["(", *listed(items, ""), ",)" if len(items) == 1 else ")"]
