"""Memory of one thread that is used before and after a barrier: it becomes memory with one part per thread."""

from __future__ import annotations

from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, Load, Var
from tedsl.ir.ops import ACCESS_PTR
from tedsl.ir.stmt import Allocate, Evaluate, Store
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.threads.gather_threads import Kernel, Thread
from tedsl.passes.threads.inject_virtual_threads import shifted
from tedsl.passes.threads.meetings import is_allreduce, meeting, reduction_parts


class PrivateMemory:
    """Moves each access to memory of one thread to the part of that thread. A call with a phase returns the rewritten phase."""

    def __init__(self, kernel: Kernel) -> None:
        self.threads = kernel.threads
        self.size: dict[Var, Expr] = {}  # of one thread's part
        self.owners: dict[Var, list[Thread]] = {}
        for node in post_order(kernel.body):
            if isinstance(node, Allocate) and meeting(node.body) is not None:
                self.add(node.buffer_var, node)
        for node in post_order(kernel.body):
            if isinstance(node, Evaluate) and is_allreduce(node):
                self._share_results(node)

    def add(self, memory: Var, node: Allocate) -> None:
        scope = scope_of(memory.type_annotation)
        if scope in ("shared", "global"):
            return
        # a warp is the threads of one row: they share its memory
        self.owners[memory] = [thread for thread in self.threads if scope != "warp" or thread.axis.thread_tag != "threadIdx.x"]
        size: Expr = build.const(node.dtype.lanes, "int32")
        for extent in node.extents:
            size = build.product_of_extents(size, extent)
        self.size[memory] = size

    def _share_results(self, stmt: Evaluate) -> None:
        """Records that the result of a reduction across threads is shared by all threads that take part."""
        _, results, reduced = reduction_parts(stmt)
        group = [thread for thread in self.threads if thread.var not in reduced]
        for memory in results:
            if memory not in self.owners:
                raise LoweringError(f"tvm_thread_allreduce puts a result into {memory.name}, which is not memory of one thread",
                                    hint='allocate it in the kernel, with scope "local"')
            self.owners[memory] = [thread for thread in self.owners[memory] if thread in group]

    def copies(self, memory: Var) -> list[Thread]:
        """Returns the axes along which each thread has a part of `memory` of its own."""
        return self.owners.get(memory, [])

    def part(self, memory: Var) -> Expr | None:
        """Returns the index of the first element of a thread's part; None if all threads share the memory."""
        owners = self.copies(memory)
        if not owners:
            return None
        number: Expr = owners[0].var
        for thread in owners[1:]:
            number = build.add(build.mul(number, thread.count), thread.var)
        return build.mul(number, self.size[memory])

    def __call__(self, stmt: Any) -> Any:
        return _Parts(self)(stmt)


class _Parts(Rewriter):
    def __init__(self, private: PrivateMemory) -> None:
        super().__init__()
        self.private = private

    def rewrite(self, node: Any) -> Any:
        match node:
            case Load(buffer_var=v) | Store(buffer_var=v):
                part = self.private.part(v)
                return node if part is None else node.replace(index=shifted(node.index, part))
            case Call(op=op, args=(kind, Var() as v, offset, *rest)) if op is ACCESS_PTR:
                part = self.private.part(v)
                return node if part is None else node.replace(args=(kind, v, shifted(offset, part), *rest))
            case Call(op=op, args=args):
                given = next((arg for arg in args if isinstance(arg, Var) and self.private.copies(arg)), None)
                if given is not None:
                    raise LoweringError(f"{op.name} takes the memory {given.name} of one thread as a whole, and it is used "
                                        "before and after a barrier", hint="pass tvm_access_ptr of it",
                                        about=self.private.copies(given)[0].axis.thread_tag)
                return node
            case _:
                return node


