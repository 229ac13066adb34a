"""Verify that a function for a GPU accesses its arguments inside its kernels only.

The arguments lie in the memory of the device, which the host cannot access. Loads and stores outside of a launch would be
executed by the host.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import LoweringError
from tedsl.ir.expr import BufferLoad, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.stmt import BufferStore, Store
from tedsl.passes.facts.threads import launched
from tedsl.target.current import as_target


def verify_memory(func: PrimFunc) -> PrimFunc:
    """Returns `func` itself; LoweringError if its attribute "target" is a GPU and the host would access its arguments."""
    names = [var.name for var in accessed_by_host(func)]
    if names:
        raise host_access(func.name, func.attrs["target"], names)
    return func


def host_access(function: str, target: object, names: Sequence[str], computed: Sequence[str] = ()) -> LoweringError:
    """Returns the error for memory of the device, called `names`, that the host would access in `function`. computed: those of
    them that it would write.
    """
    listed, stage = ", ".join(names), computed[0] if computed else "C"
    which = f"the loops that compute {', '.join(computed)}" if computed else "the loops"
    inner = f"; or compute {stage} inside of a kernel: s[{stage}].compute_at(...), compute_inline()" if computed else ""
    return LoweringError(f"{function} is for {target}, and {listed} {'is' if len(names) == 1 else 'are'} "
                         "accessed outside of its threads, by the host, which cannot see the memory of the device",
                         hint=f"bind {which} to threads: s[{stage}].bind(loop, te.thread_axis(\"blockIdx.x\")), and "
                              f"\"threadIdx.x\" for an inner loop{inner}; did you forget to bind a stage?")


def accessed_by_host(func: PrimFunc) -> list[Var]:
    """Returns the data of the arguments of a function for a GPU that are accessed outside of launches; none for other targets.
    """
    target = func.attrs.get("target")
    if target is None or "gpu" not in as_target(target).keys:
        return []
    arguments = {*func.params, *(buffer.data for buffer in func.buffers)}
    accessed: dict[Var, None] = {}
    todo: list[Node] = [func.body]
    while todo:
        node = todo.pop()
        if launched(node) is not None:
            continue
        data = _accessed(node)
        if data in arguments and data is not None:
            accessed.setdefault(data)
        todo.extend(reversed(node.child_nodes()))
    return list(accessed)


def _accessed(node: Node) -> Var | None:
    """Returns the memory that `node` itself loads from or stores to; None for other nodes."""
    if isinstance(node, (Load, Store)):
        return node.buffer_var
    return node.buffer.data if isinstance(node, (BufferLoad, BufferStore)) else None
