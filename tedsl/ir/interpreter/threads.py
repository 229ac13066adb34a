"""Device kernels in the interpreter's source: the body of a thread becomes a generator function (see `launch.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tedsl.errors import InternalError
from tedsl.ir import build
from tedsl.ir.expr import BufferLoad, Call, CommReducer, Load, StringImm, Var
from tedsl.ir.interpreter.launch import Request, run_kernel
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.ops import ALLREDUCE, SYNC
from tedsl.ir.stmt import LAUNCH, Allocate, AttrStmt, BufferRealize, BufferStore, Evaluate, Stmt, Store
from tedsl.ir.types import PointerType, memory_kind
from tedsl.ir.walk.visitor import post_order

if TYPE_CHECKING:
    from tedsl.ir.interpreter.stmt import StmtCompiler

TAGS = tuple(f"{kind}.{dim}" for kind in ("blockIdx", "threadIdx") for dim in "zyx")
RUNTIME = {"run_kernel": run_kernel, "Request": Request}


def is_launch(s: AttrStmt) -> bool:
    return s.attr_key == LAUNCH and isinstance(s.node, IterVar)


class KernelScope:
    """The state while a kernel is written: its threads, its memory, the number of the statement and the loops around it."""

    def __init__(self, s: AttrStmt, block: str, names: dict[str, str]) -> None:
        nodes = list(post_order(s))
        self.block, self.names = block, names
        self.number = 0
        self.prefix: list[str] = []
        self.reducer: CommReducer | None = None
        self.in_step = not any(isinstance(node, Call) and node.op is SYNC and not _of_schedule(node) for node in nodes)
        self.private = {data for node in nodes if (data := _allocated(node)) is not None and scope_of(data) == "local"}

    def position(self) -> str:
        return f"({', '.join([*self.prefix, str(self.number)])},)"

    def before(self, c: StmtCompiler, s: Stmt) -> None:
        """Counts the statement; in lockstep, emits a wait before a statement that accesses shared memory."""
        self.number += 1
        if self.in_step and self.touches(s):
            c.line(f"yield {self.position()}")

    def touches(self, s: Stmt) -> bool:
        """Whether `s` itself, not the statements inside it, accesses memory shared by threads."""
        if isinstance(s, Store) and s.buffer_var not in self.private:
            return True
        if isinstance(s, BufferStore) and s.buffer.data not in self.private:
            return True
        own = [child for child in s.child_nodes() if not isinstance(child, Stmt)]
        return any(self.shared_read(node) for child in own for node in post_order(child))

    def shared_read(self, node: Node) -> bool:
        if isinstance(node, Load):
            return node.buffer_var not in self.private
        if isinstance(node, BufferLoad):
            return node.buffer.data not in self.private
        return isinstance(node, Call) and node.op.effect == "opaque"


def _of_schedule(call: Call) -> bool:
    """Whether the barrier separates the steps of a scan; lowering emits those, a pass inserts all others."""
    return bool(call.args) and isinstance(call.args[0], StringImm) and call.args[0].value == "global"


def _allocated(node: Node) -> Var | None:
    if isinstance(node, Allocate):
        return node.buffer_var
    return node.buffer.data if isinstance(node, BufferRealize) else None


def scope_of(data: Var) -> str:
    """The kind of memory in a kernel: "warp", "shared" (also for global and no scope), or "local" for any other scope."""
    annotation = data.type_annotation
    scope = memory_kind(annotation.storage_scope) if isinstance(annotation, PointerType) else ""
    return "shared" if scope in ("", "global", "shared") else "warp" if scope == "warp" else "local"


def launch(c: StmtCompiler, s: AttrStmt) -> None:
    """Emits the kernel that begins at `s`: a function of one thread, and the call that runs all of them."""
    counts: dict[str, str] = {}
    axes: list[IterVar] = []
    for node in reversed(list(post_order(s))):
        if isinstance(node, AttrStmt) and is_launch(node):
            axes.append(node.node)
            if node.node.thread_tag not in TAGS:
                raise InternalError(f"the interpreter does not support threads {node.node.thread_tag!r}")
            if node.node.thread_tag not in counts:
                counts[node.node.thread_tag] = c.named("count", c.value(node.value, True))
    tags = [tag for tag in TAGS if tag in counts]
    names = {tag: c.local(tag) for tag in tags}
    for axis in axes:
        c.vars[axis.var] = names[axis.thread_tag], False
    block = c.local("block")
    outside, nested, loops = c.begin_function(), c.nested, len(c.loops)
    c.nested, c.kernel = 0, KernelScope(s, block, names)
    c.loops += [(tag, names[tag]) for tag in tags]
    c.line("if False: yield")
    c.stmt(s.body)
    del c.loops[loops:]
    in_step = c.kernel.in_step
    c.nested, c.kernel = nested, None
    call = c.end_function(outside)
    groups = [", ".join(counts[tag] for tag in tags if tag.startswith(kind)) for kind in ("blockIdx", "threadIdx")]
    c.line(f"run_kernel(lambda {', '.join([block, *names.values()])}: {call}, [{groups[0]}], [{groups[1]}], {in_step}, "
           f"{c.reverse_parallel}, evaluate)")


def block_array(c: StmtCompiler, data: Var, of: Any, size: str) -> str | None:
    """The source of the array of an allocation shared by threads; None for memory private to one thread."""
    kernel = c.kernel
    scope = scope_of(data)
    if kernel is None or scope == "local":
        return None
    row = [name for tag, name in kernel.names.items() if tag in ("threadIdx.z", "threadIdx.y")] if scope == "warp" else []
    return f"{kernel.block}.array(({', '.join([c.constant(data), *row])},), {size}, {c.constant(of)})"


def meeting(c: StmtCompiler, s: Evaluate) -> bool:
    """Emits a barrier or a reduction across threads; returns False if `s` is neither."""
    call = s.value
    if not isinstance(call, Call) or call.op not in (SYNC, ALLREDUCE):
        return False
    kernel = c.kernel
    if kernel is None:
        if call.op is ALLREDUCE:
            raise InternalError("tvm_thread_allreduce stands outside of a kernel")
        return True
    if call.op is SYNC:
        c.line(f"yield Request({kernel.number}, {kernel.position()})")
        return True
    count = build.as_int(call.args[0]) or 0
    values, condition, rest = call.args[1:1 + count], call.args[1 + count], call.args[2 + count:]
    reduced = {c.vars[var][0] for var in rest[count:] if isinstance(var, Var)}
    group = "".join(f"{name}, " for name in kernel.names.values() if name not in reduced)
    counts, given = c.value(condition), c.named("given", "()")
    c.enter(f"if {counts}:")  # the values are computed where they count only
    c.line(f"{given} = ({''.join(f'{c.value(value)}, ' for value in values)})")
    c.leave()
    result = c.named("combined", f"yield Request({kernel.number}, {kernel.position()}, {c.constant(kernel.reducer)}, "
                                 f"({group}), {given}, {counts})")
    for at, place in enumerate(rest[:count]):
        assert isinstance(place, Var)
        c.line(f"{c.memory(place).name}[0] = {c.stored(f'{result}[{at}]', values[at].dtype)}")
    return True


def shuffled(c: StmtCompiler, e: Call, args: list[str]) -> str:
    """Emits an exchange of values in which all threads of the block take part; returns the name of the value that is got."""
    kernel = c.kernel
    if kernel is None:
        raise InternalError(f"{e.op.name} stands outside of a kernel")
    kind = e.op.short.removeprefix("tvm_warp_shuffle").lstrip("_") or "lane"
    _, value, lane, width, _ = args
    return c.named("got", f"yield Request({kernel.number}, {kernel.position()}, None, ({width},), ({value}, {lane}), "
                          f"shuffle={kind!r})")
