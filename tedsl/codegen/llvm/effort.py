"""How much LLVM does about a program: its own pipeline, its unroller, or the lean list of passes alone.

The lean list is for loops that the schedule has shaped: measured, O3 adds nothing to it but time, except where it unrolls:
an image filter of one vector per iteration takes 25 % less, so programs with such loops get that. Programs with plain serial
inner loops get LLVM's own pipeline, whose vectorizer they need: O2, for O3 unrolls a blocked matmul of scalar loops
(4 x 32 x 32 innermost) into code three times slower.
"""

from __future__ import annotations

import re
from itertools import islice

from tedsl.codegen.llvm.abi import statements
from tedsl.ir.expr import Expr, IntImm
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import For, ForKind, SeqStmt, Store, While
from tedsl.ir.walk.visitor import post_order

VECTORIZED = 20_000  # the most instructions that get LLVM's own pipeline: 3 s, and 0.3 s by the lean list
INLINED = 40_000  # the most instructions with which mathematical functions are inlined: 4 s; called they take 0.2 s
MOST_LOOPS = 200  # that get LLVM's own pipeline: 2 to 10 s, by how much they have to do with each other
MOST_PATHS = 2_000_000  # of an index that gets LLVM's own pipeline: 0.3 s, doubled by each level of e = e//3 + e%7*5
FEW_LINES = 50  # of LLVM IR: fewer are not counted
_SCALAR = re.compile(r"  (%\S+) = (phi|add|sub|mul|shl|[su]div|[su]rem|[al]shr|and|or|xor|sext|zext|trunc|select i1|call)\b"
                     r"[^%\n]*?(?:%\S+, )?\bi\d+ (.*)")  # name, operation and operands of an integer instruction
_NAME = re.compile(r"%[^\s,)]+")


def needs_vectorizer(func: PrimFunc) -> bool:
    """Tells whether an innermost loop is plain: serial, without vectors, and long enough that LLVM's vectorizer may help."""
    for s in statements(func.body):
        if isinstance(s, For) and s.kind in (ForKind.SERIAL, ForKind.PARALLEL) and _is_plain(s):
            return True
    return False


def _is_plain(loop: For) -> bool:
    """Tells whether `loop` runs 4 iterations or more and contains stores but neither loops nor vectors.
    Ends at the first one found.
    """
    if isinstance(loop.extent, IntImm) and loop.extent.value < 4:
        return False
    stores = []
    for s in statements(loop.body):
        if isinstance(s, (For, While)):
            return False
        if isinstance(s, Store):
            if s.value.dtype.is_vector:
                return False
            stores.append(s)
    return bool(stores) and not any(isinstance(n, Expr) and n.dtype.is_vector for s in stores[:8] for n in post_order(s))


def has_short_loops(func: PrimFunc) -> bool:
    """Tells whether an innermost loop does so little on vectors that its counter and the latency of one iteration dominate."""
    for s in statements(func.body):
        if isinstance(s, For) and s.kind is ForKind.SERIAL and isinstance(s.extent, IntImm) and s.extent.value >= 4:
            inside = list(islice(statements(s.body), 5))
            if len(inside) < 5 and all(isinstance(i, (SeqStmt, Store)) for i in inside) and any(
                    isinstance(i, Store) and i.value.dtype.is_vector for i in inside):
                return True
    return False


def instructions(text: str) -> int:
    """Estimates the number of instructions of the functions in `text`, with always-inlined functions counted at each call."""
    own: dict[str, int] = {}
    calls: dict[str, list[str]] = {}
    inlined: dict[str, int] = {}  # the functions that are always inlined come before those that call them
    name = ""
    for line in text.splitlines():
        if line.startswith("define "):
            name = line[line.index("@") + 1:line.index("(")]
            own[name], calls[name] = 0, []
            if " alwaysinline " in line:
                inlined[name] = 0
        elif line.startswith("  "):
            own[name] += 1
            if " call " in line and "@" in line:
                callee = line[line.index("@") + 1:]
                calls[name].append(callee[:callee.find("(")])
    for name in own:
        own[name] += sum(inlined.get(callee, 0) for callee in calls[name])
        if name in inlined:
            inlined[name] = own[name]
    return sum(count for name, count in own.items() if name not in inlined)


def index_paths(text: str) -> int:
    """Counts the ways from an integer in `text` back to the counters of loops that it is computed from: those of the integer
    that has most, or of the first that has more than MOST_PATHS.

    An index whose parts are used again has exponentially many, and LLVM's analysis of loops expands what is shared.
    """
    most = 0
    paths: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith("define "):
            paths = {}
        elif (found := _SCALAR.match(line)) is not None:
            name, operation, operands = found.groups()
            count = 1 if operation == "phi" else sum(paths.get(operand, 0) for operand in _NAME.findall(operands))
            if count:
                paths[name] = count
                most = max(most, count)
                if most > MOST_PATHS:
                    break
    return most
