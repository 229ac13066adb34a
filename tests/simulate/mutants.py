"""Kernels with one mistake more: a barrier that is missing, a shared buffer that is too small."""

import re

from tedsl.codegen.nvptx.backend import PTXBackend
from tedsl.ir.build import const
from tedsl.ir.expr import Call
from tedsl.ir.stmt import Evaluate
from tedsl.ir.walk.rewriter import Rewriter

_BUFFER = re.compile(r"(\.shared \.align \d+ \.b8 [\w$]+)\[(\d+)\]")
_BARRIER = re.compile(r"\tbar\.sync[^\n]*\n")
_compile = PTXBackend.compile_kernels


def is_barrier(node):
    return isinstance(node, Evaluate) and isinstance(node.value, Call) and node.value.op.name == "tir.tvm_storage_sync"


class _Without(Rewriter):
    """Removes the barrier with a number, in the order in which they stand; `seen` is how many there are."""

    def __init__(self, number):
        super().__init__()
        self.number, self.seen = number, 0

    def rewrite(self, node):
        if not is_barrier(node):
            return node
        self.seen += 1
        return Evaluate(const(0, "int32")) if self.seen == self.number + 1 else node


def count_of_barriers(kernel):
    counting = _Without(-1)
    counting(kernel.body)
    return counting.seen


def without_barriers(build, monkeypatch):
    """Returns each barrier of the kernels of `build()`, and their PTX without it.

    The loops lose it, not the text: LLVM copies and peels loops, and some copies of a barrier then stand where none is needed.
    """
    kernels, seen = [], []

    def compile_and_see(self, given, target, config):
        kernels.append((self, given, target, config))
        return _compile(self, given, target, config)

    monkeypatch.setattr(PTXBackend, "compile_kernels", compile_and_see)
    build()
    for self, given, target, config in kernels:
        for kernel in given:
            for number in range(count_of_barriers(kernel)):
                changed = [one.with_body(_Without(number)(one.body)) if one is kernel else one for one in given]
                seen.append((f"barrier {len(seen)}", _compile(self, changed, target, config).text))
    monkeypatch.setattr(PTXBackend, "compile_kernels", _compile)
    return seen


def without_barriers_of_text(text):
    """Yields each barrier of a PTX text, and the text without it: for kernels of which LLVM copies no barrier."""
    for number, found in enumerate(_BARRIER.finditer(text)):
        yield f"barrier {number}", text[:found.start()] + text[found.end():]


def with_smaller_buffers(text, size):
    """Yields each shared array of a PTX text, and the text with it `size` bytes smaller."""
    for found in _BUFFER.finditer(text):
        yield found.group(), f"{text[:found.start()]}{found.group(1)}[{int(found.group(2)) - size}]{text[found.end():]}"
