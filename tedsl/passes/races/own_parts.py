"""Refuses memory of one thread of which a thread may read an element that another one computes.

    L[threadIdx.x] = A[threadIdx.x];  B[threadIdx.x] = L[threadIdx.x]          each reads what it has computed
    L[threadIdx.x] = A[threadIdx.x];  B[threadIdx.x] = L[7 - threadIdx.x]      thread 0 reads L[7], which thread 7 has

Loops of a stage in memory of scope "local" that are bound to threads compute a part of it in each: its readers may need no
other part.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tedsl.errors import LoweringError
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, For, LetStmt
from tedsl.ir.walk.accesses import accesses, is_read
from tedsl.ir.walk.around import OUTSIDE
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.races.may_meet import may_meet
from tedsl.passes.threads.gather_threads import Kernel


def check_own_parts(kernel: Kernel, names: Sequence[str]) -> None:
    """Raises LoweringError unless each thread is proved to read, of the memory called `names`, elements that no other computes.
    """
    parted = {node.buffer_var for node in post_order(kernel.body) if isinstance(node, Allocate)
              and node.buffer_var.name in names and scope_of(node.buffer_var.type_annotation) == "local"}
    if not parted:
        return
    threads = kernel.distinct_threads()
    for node in reversed(list(post_order(kernel.body))):  # from the outside in
        if isinstance(node, For):
            threads.loop(node.loop_var, node.min, node.extent)
        elif isinstance(node, LetStmt):
            threads.lets.add(node.var)
    blocks = OUTSIDE.within(*(axis.loop for axis in kernel.blocks))
    found = [access for access in accesses(kernel.body, blocks, wanted=is_read) if access.memory in parted]
    for read, write in itertools.product([a for a in found if not a.writes], [a for a in found if a.writes]):
        same = {loop.var for loop in read.loops} & {loop.var for loop in write.loops}
        if may_meet(read, write, distinct=threads, same=same):
            name, tag = read.memory.name, kernel.threads[-1].axis.thread_tag
            raise LoweringError(
                f"each thread of {tag} computes {name}[{shown(write.node.index)}], which belongs to one thread, and reads "
                f"{name}[{shown(read.node.index)}], which is not known to be the same thread's",
                hint=f'use memory that they share, set_scope("shared"), or compute all of {name} in each thread: leave its '
                     "loop unbound", about=tag)
