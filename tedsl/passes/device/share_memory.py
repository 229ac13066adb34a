"""Let buffers of shared memory that are in use at different times have the same bytes, whatever their dtypes and sizes.

before:  allocate(S: shared float16, [2048]) { allocate(R: shared float32, [1024]) {
           for (k: 0, 8) { S[..] = A[..]; ... = S[..] }  R[..] = ...;  B[..] = R[..] } }
after:   allocate(S, at 0) { allocate(R, at 0) {
           for (k: 0, 8) { ... }  tvm_storage_sync("shared", "shared", 0, 4096);  R[..] = ...;  B[..] = R[..] } }

Each statement of a kernel counts as one moment: a buffer is in use from the first to the last that accesses it. A loop or
branch is one statement. Of a loop that all threads run alike, and in which shared memory was allocated, the statements count
instead: that memory is in use during a part of each iteration. Buffers keep their names and dtypes; the annotation OFFSET of an
allocation is where it begins in the memory that the buffers of its scope have together. The barrier before a buffer comes into
use says which bytes lose what others left there: a scope, an offset, a number of bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tedsl.errors import InternalError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import SYNC
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, For, ForKind, LetStmt, SeqStmt, Stmt, seq
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.live_ranges import HOME, LiveRanges
from tedsl.passes.facts.memory_uses import bytes_of
from tedsl.passes.threads.gather_threads import Kernel, with_kernel_bodies
from tedsl.passes.threads.uniform import Uniformity
from tedsl.record import record

OFFSET = "shared_offset"  # bytes, from the beginning of the memory that buffers of this scope share
SCOPES = ("shared", "shared.dyn")
ALIGNMENT = 32  # bytes: what fragments of tensor cores are loaded from begins at multiples of so many
_Around = Allocate | AttrStmt | LetStmt
_UNIT = 256  # bytes: devices give shared memory to blocks in such units, so that less is not worth a barrier


@record(eq=False)
class _Life:
    """A buffer and the numbers of the first and the last statement that accesses it. size: rounded up to ALIGNMENT."""

    node: Allocate
    size: int
    first: int
    last: int


@record(eq=False)
class _Moment:
    """A statement, and its number; or a loop with the numbers of its first and last statement, and these."""

    stmt: Stmt
    first: int
    last: int
    inside: Sequence[_Moment] | None


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
        body = _planned(kernel, body, scope)
    return body


def _planned(kernel: Kernel, body: Stmt, scope: str) -> Stmt:
    around, parts = _opened(body)
    nodes = [node for node in around if isinstance(node, Allocate) and scope_text(node) == scope]
    if len(nodes) < 2 or any(bytes_of(node) is None for node in nodes) or _reads_memory(around):
        return body
    moments, lives = _moments(kernel, parts, nodes)
    offsets = _offsets(lives)
    saved = sum(life.size for life in lives) - max(offsets[life] + life.size for life in lives)
    if saved < _UNIT:
        return body
    by_node = {life.node: offset for life, offset in offsets.items()}
    placed = [outer.replace(annotations={**outer.annotations, OFFSET: by_node[outer]})
              if isinstance(outer, Allocate) and outer in by_node else outer for outer in around]
    return _closed(placed, _with_barriers(moments, _barriers(moments, lives, offsets, scope)))


def _opened(stmt: Stmt) -> tuple[list[_Around], Sequence[Stmt]]:
    """The allocations, attributes and lets around the statements of a body, and these."""
    around = list[_Around]()
    while isinstance(stmt, (Allocate, AttrStmt, LetStmt)):
        around.append(stmt)
        stmt = stmt.body
    return around, stmt.seq if isinstance(stmt, SeqStmt) else (stmt,)


def _reads_memory(around: Sequence[_Around | For]) -> bool:
    """Tells whether what stands around statements reads memory or has a pointer to it: when is not seen by statements."""
    values = [child for outer in around for child in outer.child_nodes() if not isinstance(child, Stmt)]
    return any(isinstance(node, Load) or (isinstance(node, Var) and node.dtype.is_handle)
               for value in values for node in post_order(value))


def _closed(around: Sequence[_Around], parts: Sequence[Stmt]) -> Stmt:
    """The inverse of `_opened`."""
    body = seq(*parts)
    for outer in reversed(around):
        body = outer.replace(body=body)
    return body


def _moments(kernel: Kernel, parts: Sequence[Stmt], nodes: Sequence[Allocate]) -> tuple[list[_Moment], list[_Life]]:
    """The statements of a kernel as moments, and the times at which buffers are in use; one that nothing accesses is in use at
    the beginning.
    """
    homes = [node.annotations.get(HOME) for node in nodes]
    walk = _Walk(kernel, nodes, {node: home for node, home in zip(nodes, homes) if isinstance(home, Var)})
    moments = walk.moments(parts)
    if not walk.stay_at_home():
        walk = _Walk(kernel, nodes, {})
        moments = walk.moments(parts)
    ranges = [walk.live.of[node.buffer_var] for node in nodes]
    return moments, [_Life(node, _rounded(bytes_of(node) or 0), found.first or 0, max(found.last, 0))
                     for node, found in zip(nodes, ranges)]


class _Walk:
    """A walk over the statements of a kernel. homes: the variable of the loop in which each of some buffers was allocated."""

    def __init__(self, kernel: Kernel, nodes: Sequence[Allocate], homes: dict[Allocate, Var]) -> None:
        self.homes, self.live = homes, LiveRanges()
        self.spans: dict[Var, tuple[int, int]] = {}  # the first and last moment of loops whose statements count
        self.uniform = Uniformity(kernel) if homes else None
        for node in nodes:
            self.live.allocated(node)

    def moments(self, parts: Sequence[Stmt]) -> list[_Moment]:
        return [self.moment(part) for part in parts]

    def moment(self, part: Stmt) -> _Moment:
        first = self.live.clock + 1
        if not isinstance(part, For) or not self.counts_inside(part):
            self.live.accessed(part)
            return _Moment(part, first, first, None)
        with self.live.repeated():
            for node, home in self.homes.items():
                if home is part.loop_var:
                    self.live.of[node.buffer_var].loops = self.live.depth
            inside = self.moments(_opened(part.body)[1])
        self.spans[part.loop_var] = first, self.live.clock
        return _Moment(part, first, self.live.clock, inside)

    def counts_inside(self, loop: For) -> bool:
        """Tells whether memory was allocated in `loop`, or in one inside of it, and all threads run its iterations alike."""
        return self.uniform is not None and loop.kind in (ForKind.SERIAL, ForKind.UNROLLED) \
            and any(isinstance(node, For) and node.loop_var in self.homes.values() for node in post_order(loop)) \
            and not any(self.uniform.varies(bound) for bound in (loop.min, loop.extent)) \
            and not _reads_memory([loop, *_opened(loop.body)[0]])

    def stay_at_home(self) -> bool:
        """Tells whether no buffer is accessed outside of the loop in which it was allocated, as far as that is walked."""
        for node, home in self.homes.items():
            found = self.live.of[node.buffer_var]
            if home in self.spans and found.first is not None:
                begin, end = self.spans[home]
                if found.first < begin or found.last > end:
                    return False
        return True


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


def _barriers(moments: Sequence[_Moment], lives: Sequence[_Life], offsets: dict[_Life, int], scope: str) \
        -> dict[_Moment, list[Expr]]:
    """The moments before which threads wait, since a buffer comes into use whose bytes others had; and these bytes."""
    found: dict[_Moment, list[Expr]] = {}
    for life in lives:
        places = dict[_Moment, None]()
        for other in lives:
            if other is not life and offsets[other] < offsets[life] + life.size and offsets[life] < offsets[other] + other.size:
                place, again = _before(moments, life, other)
                if again or other.last < life.first:
                    places[place] = None
        for place in places:
            found.setdefault(place, []).extend((StringImm(scope), build.const(offsets[life], "int32"),
                                                build.const(life.size, "int32")))
    return found


def _before(moments: Sequence[_Moment], life: _Life, other: _Life) -> tuple[_Moment, bool]:
    """The moment with which `life` begins, in the innermost loop that has all of `life` and `other`; and whether there is such
    a loop, so that the other one comes before in some iteration.
    """
    again = False
    while True:
        moment = next(one for one in moments if one.first <= life.first <= one.last)
        if moment.inside is None or not moment.first <= other.first <= moment.last:
            return moment, again
        moments, again = moment.inside, True


def _with_barriers(moments: Sequence[_Moment], given: dict[_Moment, list[Expr]]) -> list[Stmt]:
    """The statements of `moments`, with the barriers of `given`."""
    result = list[Stmt]()
    for moment in moments:
        stmt = moment.stmt
        if moment in given:
            result.append(Evaluate(Call(build.const(0, "int32").dtype, SYNC, (StringImm("shared"), *given[moment]))))
        if moment.inside is not None and isinstance(stmt, For):
            stmt = stmt.replace(body=_closed(_opened(stmt.body)[0], _with_barriers(moment.inside, given)))
        result.append(stmt)
    return result


def _rounded(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
