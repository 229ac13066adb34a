"""Threads of a device and the memories that they share: the rank of each, and the memory scope of a stage.

    blockIdx   (rank 0)   the blocks of a launch          "global" memory (rank 0) is shared by all of them
    threadIdx  (rank 1)   the threads of one block        "shared" (1) by the threads of a block, "warp" (2) by threadIdx.x
    vthread    (rank 1)   interleaved copies of a thread  "local" (3) belongs to one thread

The region of a stage covers all threads that share its memory: bound inference follows from this rule.
"""

from __future__ import annotations

from tedsl.ir.types import memory_kind
from tedsl.lang.scan.operation import ScanOp
from tedsl.schedule.attach import attach_path
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import StageState

LAUNCHED = tuple(f"{kind}.{dim}" for kind in ("blockIdx", "threadIdx") for dim in "xyz")
VIRTUAL = ("vthread", "cthread")
RANKS = {"": 0, "global": 0, "shared": 1, "warp": 2, "local": 3}
DEFAULT_SCOPES = {None: "", 0: "shared", 1: "local"}  # by the highest rank of the threads around a stage


def is_virtual(tag: str) -> bool:
    """Whether threads with that tag are virtual: copies of the code."""
    return tag.split(".")[0] in VIRTUAL


def is_thread_tag(tag: str) -> bool:
    return tag in LAUNCHED or is_virtual(tag)


def thread_rank(tag: str) -> int:
    """0 for blocks, 1 for the threads of a block."""
    return 0 if tag.startswith("blockIdx") else 1


def memory_rank(scope: str) -> int:
    """The rank of the memory `scope`: 0 for memory of all threads; unknown scopes ("wmma...") belong to one thread."""
    return RANKS.get(memory_kind(scope), RANKS["local"])


def is_shared_among(scope: str, tag: str) -> bool:
    """Whether the threads of axis `tag` see the same memory of `scope`."""
    if memory_rank(scope) == RANKS["warp"] and tag == "threadIdx.x":
        return True
    return memory_rank(scope) <= thread_rank(tag)


def memory_owner(stage: StageState) -> StageState:
    """The stage in whose memory `stage` is stored: the scan for its updates and for first rows computed for it alone, else
    itself.
    """
    scans = scans_of(stage.schedule)
    first = scans.inits.get(stage)
    if first is not None and isinstance(first.op, ScanOp):
        rows = [tensor for tensor in first.op.init if stage.schedule.stage_map[tensor.op] is stage]
        first = first if len(rows) == len(set(rows)) else None  # rows of two states have memory of their own, and are copied
    return scans.updates.get(stage) or first or stage


def memory_scope(stage: StageState) -> str:
    """The memory scope of `stage`: as the user set it, or else what suits the threads around its place."""
    owner = memory_owner(stage)
    if owner is not stage:
        return memory_scope(owner)
    if stage.scope:
        return stage.scope
    tags = [bound.thread_tag for host, loop in attach_path(stage) if (bound := host.attr_of(loop).bind_thread) is not None]
    return DEFAULT_SCOPES[max(map(thread_rank, tags), default=None)]
