"""Whether the kernels of a function keep to limits that the caller gives: threads, memory and lengths of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, OptionError, type_in_words
from tedsl.ir import build
from tedsl.ir.expr import Load
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.stmt import VIRTUAL, Allocate, AttrStmt, Store
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.memory_uses import bytes_of
from tedsl.passes.facts.threads import THREAD_TAGS, launched, scope_of
from tedsl.passes.threads.gather_threads import Kernel, gather_threads, kernel_of

LIMITS = ("max_local_memory_per_block", "max_shared_memory_per_block", "max_threads_per_block", "max_thread_x", "max_thread_y",
          "max_thread_z", "max_vthread", "max_vector_bytes", "max_kernels")


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, int]) -> bool:
    """Tells whether each kernel of `func` keeps to `constraints`, whose keys are in `LIMITS`.

    Memory is in bytes: shared memory of one block, local memory of one thread. max_thread_x and its kin: threads of a
    block along an axis. max_vthread: virtual threads of one axis. max_vector_bytes: of one load or store. max_kernels: launches
    of the function. A number of threads or bytes that only a call knows keeps to no limit. A launch that gives an axis two
    numbers of threads keeps to none either.

    Raises ArgumentTypeError, OptionError or ArgumentError for other objects, unknown keys and values that are no integers.
    """
    if not isinstance(func, PrimFunc):
        raise ArgumentTypeError(f"verify_gpu_code takes a function, not {type_in_words(func)}", hint="mod['main']")
    limits = _checked(constraints)
    if "max_vector_bytes" in limits and any(_vector_bytes(node) > limits["max_vector_bytes"] for node in post_order(func.body)):
        return False
    try:
        kernels = _kernels(gather_threads(func).body)
    except LoweringError:
        return False
    return len(kernels) <= limits.get("max_kernels", len(kernels)) and all(_keeps(kernel, limits) for kernel in kernels)


def _checked(constraints: object) -> dict[str, int]:
    if not isinstance(constraints, Mapping):
        raise ArgumentTypeError(f"verify_gpu_code takes limits by name, not {type_in_words(constraints)}",
                                hint='for example {"max_threads_per_block": 1024}')
    for name, most in constraints.items():
        if name not in LIMITS:
            raise OptionError(f"verify_gpu_code knows no limit {name!r}", hint=f"the limits are {', '.join(LIMITS)}")
        if build.as_int(most) is None:
            raise ArgumentError(f"verify_gpu_code: the limit {name} is an integer, not {most!r}")
    return {name: int(build.as_int(most) or 0) for name, most in constraints.items()}


def _kernels(root: Node) -> list[Kernel]:
    found: list[Kernel] = []
    todo: list[Node] = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, AttrStmt) and launched(node) is not None:
            found.append(kernel_of(node))
        else:
            todo.extend(node.child_nodes())
    return found


def _keeps(kernel: Kernel, limits: Mapping[str, int]) -> bool:
    counts = {thread.axis.thread_tag: build.as_int(thread.count) for thread in kernel.axes if not thread.is_block}
    used = {f"max_thread_{tag[-1]}": counts[tag] for tag in THREAD_TAGS if tag in counts}
    used["max_threads_per_block"] = _of_known(math.prod, counts.values())
    nodes = list(post_order(kernel.body))
    for scope in ("local", "shared"):
        sizes = [bytes_of(node) for node in nodes if isinstance(node, Allocate)
                 and scope_of(node.buffer_var.type_annotation) == scope]
        used[f"max_{scope}_memory_per_block"] = _of_known(sum, sizes)
    virtual = [build.as_int(node.value) for node in nodes if isinstance(node, AttrStmt) and node.attr_key == VIRTUAL]
    used["max_vthread"] = _of_known(max, [1, *virtual])
    return all(name not in limits or (count is not None and count <= limits[name]) for name, count in used.items())


def _of_known(combine: Callable[[list[int]], int], numbers: Iterable[int | None]) -> int | None:
    """Returns what `combine` makes of numbers; None if one of them is not known."""
    listed = list(numbers)
    known = [number for number in listed if number is not None]
    return combine(known) if len(known) == len(listed) else None


def _vector_bytes(node: Node) -> int:
    """Returns the size of the vector that a load or store moves; 0 for one element and for other nodes."""
    match node:
        case Load(dtype=of) | Store(value=Node(dtype=of)) if of.lanes > 1:
            return int(of.bytes * of.lanes)
        case _:
            return 0
