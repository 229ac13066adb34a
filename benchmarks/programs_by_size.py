"""Kinds of programs of any size, ordinary ones and ones with one very large part, on which build time is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tedsl import te, tir

Program = tuple[te.Schedule, Sequence[Any]]
COLUMNS = 1024


@dataclass(frozen=True)
class Family:
    """A kind of program: `make(n)` returns the one of size n. `first` and `largest` are the sensible sizes."""

    make: Callable[[int], Program]
    first: int = 25
    largest: int = 1600


def nested(step: Callable[..., Any], *, dtype: str = "float32") -> Callable[[int], Program]:
    """Programs of one formula: starting from A[i], `value = step(value, level, A, i)` n times; `step` may take fewer
    parameters.
    """
    count = step.__code__.co_argcount

    def make(size: int) -> Program:
        a = te.placeholder((COLUMNS,), dtype, name="A")

        def formula(i: Any) -> Any:
            value = a[i]
            for level in range(size):
                value = step(*(value, level, a, i)[:count])
            return value

        b = te.compute((COLUMNS,), formula, name="B")
        return te.create_schedule(b.op), [a, b]
    return make


def _index_division(size: int) -> Program:
    a = te.placeholder((COLUMNS,), "float32", name="A")

    def formula(i: Any) -> Any:
        at = i
        for level in range(size):
            at = (at + level % 7) // (1 + level % 3) + i
        return a[te.min(te.max(at, 0), COLUMNS - 1)]

    b = te.compute((COLUMNS,), formula, name="B")
    return te.create_schedule(b.op), [a, b]


def _chain(step: Callable[[Any, Any], Any], *, inline: bool) -> Callable[[int], Program]:
    """n stages, each a function of the one before."""
    def make(size: int) -> Program:
        a = te.placeholder((COLUMNS,), "float32", name="A")
        stages = [a]
        for level in range(size):
            before = stages[-1]
            stages.append(te.compute((COLUMNS,), lambda i, before=before: step(before, i), name=f"T{level}"))
        s = te.create_schedule(stages[-1].op)
        if inline:
            for stage in stages[1:-1]:
                s[stage].compute_inline()
        return s, [a, stages[-1]]
    return make


def _unrolled(inner: int) -> Callable[[int], Program]:
    """An unrolled loop of n iterations around plain inner loops."""
    def make(size: int) -> Program:
        a = te.placeholder((size, inner, inner), "float32", name="A")
        b = te.compute((size, inner, inner), lambda i, j, k: a[i, j, k] * 2.0 + 1.0, name="B")
        s = te.create_schedule(b.op)
        s[b].unroll(b.op.axis[0])
        return s, [a, b]
    return make


def _unrolled_reduction(size: int) -> Program:
    a = te.placeholder((size, 64, 64), "float32", name="A")
    k = te.reduce_axis((0, 64), name="k")
    b = te.compute((size, 64), lambda i, j: te.sum(a[i, j, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].unroll(b.op.axis[0])
    return s, [a, b]


def _unrolled_vectors(size: int) -> Program:
    a = te.placeholder((64, size * 16), "float32", name="A")
    b = te.compute((64, size * 16), lambda i, j: a[i, j] * 2.0 + 1.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[1], factor=16)
    s[b].unroll(outer)
    s[b].vectorize(inner)
    return s, [a, b]


def _attached_stencils(size: int) -> Program:
    width = COLUMNS + 2 * size
    a = te.placeholder((width,), "float32", name="A")
    stages = [a]
    for level in range(size):
        t, width = stages[-1], width - 2
        stages.append(te.compute((width,), lambda i, t=t: t[i] + t[i + 1] + t[i + 2], name=f"T{level}"))
    s = te.create_schedule(stages[-1].op)
    outer, _ = s[stages[-1]].split(stages[-1].op.axis[0], factor=64)
    for stage in stages[1:-1]:
        s[stage].compute_at(s[stages[-1]], outer)
    return s, [a, stages[-1]]


def _stencils_at_root(size: int) -> Program:
    width = COLUMNS + 2 * size
    a = te.placeholder((width,), "float32", name="A")
    stages = [a]
    for level in range(size):
        t, width = stages[-1], width - 2
        stages.append(te.compute((width,), lambda i, t=t: t[i] + t[i + 1] + t[i + 2], name=f"T{level}"))
    return te.create_schedule(stages[-1].op), [a, stages[-1]]


def _arguments(size: int) -> Program:
    inputs = [te.placeholder((COLUMNS,), "float32", name=f"A{k}") for k in range(size)]

    def formula(i: Any) -> Any:
        value = inputs[0][i]
        for one in inputs[1:]:
            value = value + one[i]
        return value

    b = te.compute((COLUMNS,), formula, name="B")
    return te.create_schedule(b.op), [*inputs, b]


def _symbolic_arguments(size: int) -> Program:
    n = te.var("n")
    inputs = [te.placeholder((n,), "float32", name=f"A{k}") for k in range(size)]

    def formula(i: Any) -> Any:
        value = inputs[0][i]
        for one in inputs[1:]:
            value = value + one[i]
        return value

    b = te.compute((n,), formula, name="B")
    return te.create_schedule(b.op), [*inputs, b]


def _wide_sum(size: int) -> Program:
    a = te.placeholder((COLUMNS + size,), "float32", name="A")

    def formula(i: Any) -> Any:
        terms = [a[i + k] * float(k + 1) for k in range(size)]
        while len(terms) > 1:
            terms = [sum(terms[at + 1:at + 2], terms[at]) for at in range(0, len(terms), 2)]
        return terms[0]

    b = te.compute((COLUMNS,), formula, name="B")
    return te.create_schedule(b.op), [a, b]


def _if_chain(size: int) -> Program:
    """A cascade of n if_then_else on the index, with one value for each range."""
    a = te.placeholder((COLUMNS,), "float32", name="A")

    def formula(i: Any) -> Any:
        value = a[i]
        for level in range(size):
            value = tir.if_then_else(i < (level * 37) % COLUMNS, a[i] * float(level), value)
        return value

    b = te.compute((COLUMNS,), formula, name="B")
    return te.create_schedule(b.op), [a, b]


def _lets(size: int) -> Program:
    a = te.placeholder((COLUMNS,), "float32", name="A")

    def formula(i: Any) -> Any:
        names = [te.var(f"x{k}", "float32") for k in range(size)]
        value = names[-1] * 2.0
        for k in reversed(range(size)):
            before = names[k - 1] if k else a[i]
            value = tir.Let(names[k], before * before + 1.0, value)
        return value

    b = te.compute((COLUMNS,), formula, name="B")
    return te.create_schedule(b.op), [a, b]


def _splits(size: int) -> Program:
    """A loop that is split n times."""
    a = te.placeholder((1 << 20,), "float32", name="A")
    b = te.compute((1 << 20,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    loop = b.op.axis[0]
    for _ in range(size):
        loop, _ = s[b].split(loop, factor=3)
    return s, [a, b]


def _outputs(size: int) -> Program:
    a = te.placeholder((COLUMNS,), "float32", name="A")
    out = [te.compute((COLUMNS,), lambda i, k=k: a[i] * float(k), name=f"B{k}") for k in range(size)]
    return te.create_schedule([b.op for b in out]), [a, *out]


def _statements(size: int) -> Program:
    """n statements in one loop, written by hand."""
    a = te.placeholder((COLUMNS,), "float32", name="A")

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, COLUMNS, name="i") as i:
            y[i] = x[i]
            for k in range(size):
                y[i] = y[i] * float(k % 5) + x[i]
        return ib.get()

    b = te.extern((COLUMNS,), [a], body, name="B", dtype="float32")
    return te.create_schedule(b.op), [a, b]


def _hand_loops(size: int) -> Program:
    """n loops one after the other, written by hand."""
    a = te.placeholder((COLUMNS,), "float32", name="A")

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        for k in range(size):
            with ib.for_range(0, COLUMNS, name=f"i{k}") as i:
                y[i] = x[i] * float(k)
        return ib.get()

    b = te.extern((COLUMNS,), [a], body, name="B", dtype="float32")
    return te.create_schedule(b.op), [a, b]


def _unrolled_matmul(size: int) -> Program:
    a = te.placeholder((size, 64), "float32", name="A")
    b = te.placeholder((64, 32), "float32", name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((size, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    jo, ji = s[c].split(j, factor=16)
    s[c].reorder(k, i, jo, ji)
    s[c].unroll(i)
    s[c].unroll(jo)
    s[c].vectorize(ji)
    return s, [a, b, c]


FAMILIES: dict[str, Family] = {
    "shared select": Family(nested(lambda e, k: te.select(e > 0.0, e, e * 0.1)), 4),
    "shared if_then_else": Family(nested(lambda e, k: tir.if_then_else(e > 0.0, e, e * 0.1)), 4),
    "shared select by other data": Family(nested(lambda e, k, a, i: te.select(a[i] > float(k), e, e * 0.5)), 4),
    "shared sides of a choice": Family(nested(lambda e, k, a, i: tir.if_then_else(i > k, e, e * a[i])), 4),
    "shared product": Family(nested(lambda e, k: e * e + 1.0), 4),
    "shared int min and floordiv": Family(nested(lambda e, k: te.min(e, e // 3 + k), dtype="int32"), 4),
    "nested floordivs of data": Family(nested(lambda e, k: e // (2 + k % 5) + k, dtype="int32")),
    "nested floordivs of an index": Family(_index_division),
    "nested selects": Family(nested(lambda e, k: te.select(e > float(k), e + 1.0, float(k)))),
    "nested exps": Family(nested(lambda e, k: te.exp(e))),
    "nested tanhs": Family(nested(lambda e, k: te.tanh(e))),
    "nested sums": Family(nested(lambda e, k: e + float(k))),
    "nested mins of ints": Family(nested(lambda e, k: te.min(e + 1, k), dtype="int32")),
    "nested casts": Family(nested(lambda e, k: e.astype(("int32", "float32", "int64", "float64")[k % 4]) + 1)),
    "nested int8 casts": Family(nested(lambda e, k: (e.astype("int8") + 1).astype("int32"), dtype="int32")),
    "inlined chain": Family(_chain(lambda t, i: t[i] * 2.0 + 1.0, inline=True)),
    "inlined leaky relus": Family(_chain(lambda t, i: te.select(t[i] > 0.0, t[i], t[i] * 0.1), inline=True)),
    "stages at the root": Family(_chain(lambda t, i: t[i] * 2.0 + 1.0, inline=False)),
    "stencils at the root": Family(_stencils_at_root),
    "attached stencils": Family(_attached_stencils),
    "unrolled around loops": Family(_unrolled(32), 8, 256),
    "unrolled around reductions": Family(_unrolled_reduction, 8, 256),
    "unrolled vectors": Family(_unrolled_vectors, 25, 800),
    "unrolled matmul": Family(_unrolled_matmul, 8, 256),
    "arguments": Family(_arguments, 25, 200),
    "symbolic arguments": Family(_symbolic_arguments, 25, 200),
    "wide sum": Family(_wide_sum),
    "cascade of if_then_else": Family(_if_chain),
    "lets": Family(_lets),
    "splits": Family(_splits, 5, 80),
    "outputs": Family(_outputs, 25, 200),
    "statements by hand": Family(_statements),
    "loops by hand": Family(_hand_loops),
}
