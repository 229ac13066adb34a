"""What each row of the table has to reach, beside the best contender and the limit of the machine in the same run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.case import Goal


@dataclass(frozen=True)
class Row:
    """A row of the table: several cases. goal: of each of them; geomean: of their ratios."""

    title: str
    goal: Goal
    geomean: float | None = None


AT_LIMIT = 0.95  # of what binds: nothing is left to gain

ROWS: dict[str, Row] = {
    "matmul": Row("matmul, B packed inside", Goal(1.05, AT_LIMIT, either=True)),
    "matmul packed": Row("matmul, B packed before", Goal(share=0.90)),
    "dense": Row("tall, wide and thin products, bias + relu", Goal(1.05, AT_LIMIT, either=True)),
    "batch matmul": Row("batch_matmul", Goal(1.05)),
    "attention": Row("attention in one kernel", Goal(1.3)),
    "conv": Row("ResNet-18's convolutions + relu, prepacked, any layout", Goal(1.0, AT_LIMIT, either=True), 1.1),
    "conv chosen": Row("the same, as networks compute them (winograd by a model)", Goal(1.0, AT_LIMIT, either=True), 1.1),
    "conv nchw": Row("ResNet-18's convolutions + relu, NCHW in and out, beside torch", Goal(1.1), 1.5),
    "depthwise": Row("depthwise of MobileNet-V2", Goal(1.1, AT_LIMIT, either=True)),
    "pointwise": Row("pointwise of ResNet-50 and MobileNet-V2", Goal(1.1, AT_LIMIT, either=True)),
    "winograd": Row("3x3 convolutions with winograd", Goal(1.1)),
    "pool": Row("max_pool, avg_pool", Goal(1.2)),
    "image": Row("batch_norm + relu, resize, transposed and 3-d convolutions", Goal(1.2)),
    "element-wise": Row("element-wise, 16 M and 100 k", Goal(1.1, AT_LIMIT, either=True)),
    "rows": Row("softmax, log_softmax, layer_norm", Goal(1.2)),
    "gradients": Row("gradients beside torch's backward functions", Goal(1.0)),
    "training": Row("steps of training beside torch's eager mode", Goal(1.0)),
    "reduce": Row("sums, max, argmax along each axis", Goal(share=0.95)),
    "transpose": Row("transposes of all orders", Goal(share=0.95)),
    "order": Row("cumsum, sort, topk, unique, scatter_add, gather, one_hot, embedding", Goal(1.0)),
    "operators": Row("operators that no other row names", Goal(1.0)),
    "low precision": Row("int8 and bf16 products and convolutions", Goal(1.0)),
    "call": Row("a checked call of three arrays", Goal(1 / 1.3)),
    "eager": Row("operations on recorded tensors, beside 5 us each", Goal(1.0)),
    "region": Row("a parallel region of empty work", Goal(1.0)),
    "networks": Row("whole networks", Goal(1.1)),
    "build": Row("builds, beside numba's of a*b+c", Goal(1.0)),
    "written": Row("schedules written by hand", Goal()),
    "random": Row("shapes drawn at random", Goal(0.8), 1.1),
}
