"""Let buffers of shared memory that are in use at different times have the same bytes, whatever their dtypes and sizes.

before:  allocate(S: shared float16, [2048]) { allocate(R: shared float32, [1024]) {
           for (k: 0, 8) { S[..] = A[..]; ... = S[..] }  R[..] = ...;  B[..] = R[..] } }
after:   allocate(S, at 0) { allocate(R, at 0) {
           for (k: 0, 8) { ... }  tvm_storage_sync("shared", "shared", 0, 4096);  R[..] = ...;  B[..] = R[..] } }

Each statement of a kernel that is in no loop or branch counts as one moment: a buffer is in use from the first to the last
that accesses it. Buffers keep their names and dtypes; the annotation OFFSET of an allocation is where it begins in the memory
that the buffers of its scope have together. The barrier before a buffer comes into use says which bytes lose what others left
there: a scope, an offset, a number of bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tedsl.errors import InternalError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import SYNC
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, LetStmt, SeqStmt, Stmt, Store, seq
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.memory_uses import bytes_of
from tedsl.passes.threads.gather_threads import Kernel, with_kernel_bodies
from tedsl.record import record

OFFSET = "shared_offset"  # bytes, from the beginning of the memory that buffers of this scope share
SCOPES = ("shared", "shared.dyn")
ALIGNMENT = 32  # bytes: what fragments of tensor cores are loaded from begins at multiples of so many
_UNIT = 256  # bytes: devices give shared memory to blocks in such units, so that less is not worth a barrier


@record(eq=False)
class _Life:
    """A buffer and the numbers of the first and the last statement that accesses it. size: rounded up to ALIGNMENT."""

    node: Allocate
    size: int
    first: int
    last: int


def share_memory(func: PrimFunc) -> PrimFunc:
    """Returns `func`, whose launches are gathered, with shared memory of its kernels used again where that saves some."""
    return with_kernel_bodies(func, _shared)


def offset_of(node: Allocate) -> int | None:
    """Returns where an allocation begins in the memory that it has together with others; None if it has its own."""
    offset = node.annotations.get(OFFSET)
    return offset if isinstance(offset, int) else None


def scope_text(node: Allocate) -> str:
    """Returns the whole scope of an allocation, with its suffix."""
    annotation = node.buffer_var.type_annotation
    return annotation.storage_scope if isinstance(annotation, PointerType) else ""


def common_bytes(nodes: Iterable[Allocate]) -> int:
    """Returns the bytes of the memory that those of `nodes` have together which have an offset; 0 if none has."""
    placed = [(offset_of(node), bytes_of(node)) for node in nodes]
    return max((_rounded(offset + size) for offset, size in placed if offset is not None and size is not None), default=0)


def undefined_bytes(barrier: Call) -> list[tuple[str, int, int]]:
    """Returns which bytes lose their content at a barrier: scopes, offsets, and numbers of bytes."""
    given = barrier.args[1:]
    found = []
    for scope, offset, size in zip(given[::3], given[1::3], given[2::3]):
        at, count = build.as_int(offset), build.as_int(size)
        if not isinstance(scope, StringImm) or at is None or count is None:
            raise InternalError("a barrier names bytes by scope, offset and size")
        found.append((scope.value, at, count))
    return found


def _shared(kernel: Kernel) -> Stmt:
    body = kernel.body
    for scope in SCOPES:
        body = _planned(body, scope)
    return body


def _planned(body: Stmt, scope: str) -> Stmt:
    around: list[Allocate | AttrStmt | LetStmt] = []
    inner = body
    while isinstance(inner, (Allocate, AttrStmt, LetStmt)):
        around.append(inner)
        inner = inner.body
    nodes = [node for node in around if isinstance(node, Allocate) and scope_text(node) == scope]
    if not isinstance(inner, SeqStmt) or len(nodes) < 2 or any(bytes_of(node) is None for node in nodes):
        return body
    lives = _lives(nodes, inner.seq)
    offsets = _offsets(lives)
    saved = sum(life.size for life in lives) - max(offsets[life] + life.size for life in lives)
    if saved < _UNIT:
        return body
    result = seq(*_with_barriers(inner.seq, lives, offsets, scope))
    by_node = {life.node: offset for life, offset in offsets.items()}
    for outer in reversed(around):
        if isinstance(outer, Allocate) and outer in by_node:
            result = outer.replace(body=result, annotations={**outer.annotations, OFFSET: by_node[outer]})
        else:
            result = outer.replace(body=result)
    return result


def _lives(nodes: Sequence[Allocate], parts: Sequence[Stmt]) -> list[_Life]:
    """The times at which buffers are in use; one that nothing accesses is in use at the beginning."""
    used: dict[Var, list[int]] = {node.buffer_var: [] for node in nodes}
    for number, part in enumerate(parts):
        for node in post_order(part):
            var = node.buffer_var if isinstance(node, (Load, Store)) else node
            if isinstance(var, Var) and var in used:
                used[var].append(number)
    return [_Life(node, _rounded(bytes_of(node) or 0), min(numbers, default=0), max(numbers, default=0))
            for node in nodes for numbers in (used[node.buffer_var],)]


def _offsets(lives: Sequence[_Life]) -> dict[_Life, int]:
    """The lowest places at which no two buffers that are in use at one time overlap, large buffers first."""
    offsets: dict[_Life, int] = {}
    for life in sorted(lives, key=lambda life: -life.size):
        beside = sorted((offsets[other], other.size) for other in offsets
                        if other.first <= life.last and life.first <= other.last)
        at = 0
        for begin, size in beside:
            if at + life.size <= begin:
                break
            at = max(at, begin + size)
        offsets[life] = at
    return offsets


def _with_barriers(parts: Sequence[Stmt], lives: Sequence[_Life], offsets: dict[_Life, int], scope: str) -> list[Stmt]:
    """The statements, with a barrier before each with which a buffer comes into use whose bytes others had."""
    result = list[Stmt]()
    for number, part in enumerate(parts):
        given: list[Expr] = []
        for life in lives:
            taken = any(other.last < number and offsets[other] < offsets[life] + life.size
                        and offsets[life] < offsets[other] + other.size for other in lives)
            if life.first == number and taken:
                given += [StringImm(scope), build.const(offsets[life], "int32"), build.const(life.size, "int32")]
        if given:
            result.append(Evaluate(Call(build.const(0, "int32").dtype, SYNC, (StringImm("shared"), *given))))
        result.append(part)
    return result


def _rounded(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
