"""The tags that operators leave on their computes, for programs that look for them; schedules use the records of `kinds`."""

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"
SOFTMAX_OUTPUT = "softmax_output"
LOG_SOFTMAX_OUTPUT = "log_softmax_output"
DENSE = "dense"
MATMUL = "matmul"
BATCH_MATMUL = "batch_matmul"


def is_broadcast(tag: str) -> bool:
    """Whether `tag` is that of an operator that works element by element, perhaps with broadcast shapes."""
    return tag in (ELEMWISE, BROADCAST)


def is_injective(tag: str) -> bool:
    """Whether each element of the result depends on one element of each input."""
    return tag in (ELEMWISE, BROADCAST) or tag.split(",")[0] == INJECTIVE
