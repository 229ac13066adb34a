"""The core benchmarks: each case has its contenders (calls on ordinary numpy arrays) and the work that one call does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

import tedsl
from benchmarks.matmul import packed_matmul
from benchmarks.measure import Contender
from tedsl import te

MILLIONS = 16 * 2**20


@dataclass(frozen=True)
class Case:
    """A benchmark. `work`: operations or bytes of one call; `unit`: "FMA" (operations, compared with the FMA limit) or "read"
    (bytes).
    """

    name: str
    contenders: dict[str, Contender]
    work: float = 0.0
    unit: str = ""


def torch_or_none(threads: int) -> Any:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    return torch


def matmul(size: int, threads: int) -> Case:
    rng = np.random.default_rng(0)
    a, b = rng.random((size, size), dtype="float32"), rng.random((size, size), dtype="float32")
    ours, theirs = np.empty_like(a), np.empty_like(a)
    s, arguments = packed_matmul(size)
    kernel = tedsl.build(s, arguments)
    kernel(a, b, ours)
    np.testing.assert_allclose(ours, a @ b, rtol=2e-4)
    contenders: dict[str, Contender] = {"tedsl": lambda: kernel(a, b, ours), "numpy": lambda: np.matmul(a, b, out=theirs)}
    torch = torch_or_none(threads)
    if torch is not None:
        ta, tb, tc = torch.from_numpy(a), torch.from_numpy(b), torch.empty(size, size)
        contenders["torch"] = lambda: torch.matmul(ta, tb, out=tc)
    return Case(f"matmul {size}", contenders, 2.0 * size**3, "FMA")


def lane_schedule(stage: te.Tensor, chunk: int = 16 * 1024) -> Any:
    """Splits the elements of `stage` into parallel chunks of vectors, as suits every flat element-wise kernel."""
    s = te.create_schedule(stage.op)
    outer, inner = s[stage].split(stage.op.axis[0], factor=chunk)
    _, lanes = s[stage].split(inner, factor=16)
    s[stage].vectorize(lanes)
    s[stage].parallel(outer)
    return s


def multiply_add(threads: int) -> Case:
    A, B, C = (te.placeholder((MILLIONS,), name=name) for name in "ABC")
    D = te.compute((MILLIONS,), lambda i: A[i] * B[i] + C[i], name="D")
    kernel = tedsl.build(lane_schedule(D), [A, B, C, D])
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(MILLIONS, dtype="float32") for _ in range(3))
    ours, theirs = np.empty_like(a), np.empty_like(a)
    contenders: dict[str, Contender] = {
        "tedsl": lambda: kernel(a, b, c, ours), "numpy": lambda: np.add(np.multiply(a, b, out=theirs), c, out=theirs)}
    torch = torch_or_none(threads)
    if torch is not None:
        ta, tb, tc, td = (torch.from_numpy(x) for x in (a, b, c, np.empty_like(a)))
        contenders["torch"] = lambda: torch.addcmul(tc, ta, tb, out=td)
    _add_numba(contenders, a, b, c)
    return Case("a*b + c, 16 M", contenders, 16.0 * MILLIONS, "read")


def _add_numba(contenders: dict[str, Contender], a: Any, b: Any, c: Any) -> None:
    try:
        import numba
    except ImportError:
        return

    @numba.njit(fastmath=True)  # type: ignore[untyped-decorator]
    def fused(a: Any, b: Any, c: Any, d: Any) -> None:
        for i in range(a.size):
            d[i] = a[i] * b[i] + c[i]

    out = np.empty_like(a)
    contenders["numba"] = lambda: fused(a, b, c, out)


def exponential(threads: int) -> Case:
    A = te.placeholder((MILLIONS,), name="A")
    B = te.compute((MILLIONS,), lambda i: te.exp(A[i]), name="B")
    kernel = tedsl.build(lane_schedule(B), [A, B])
    a = np.random.default_rng(0).random(MILLIONS, dtype="float32")
    ours, theirs = np.empty_like(a), np.empty_like(a)
    contenders: dict[str, Contender] = {"tedsl": lambda: kernel(a, ours), "numpy": lambda: np.exp(a, out=theirs)}
    torch = torch_or_none(threads)
    if torch is not None:
        ta, tb = torch.from_numpy(a), torch.empty(MILLIONS)
        contenders["torch"] = lambda: torch.exp(ta, out=tb)
    return Case("exp, 16 M", contenders, 8.0 * MILLIONS, "read")


def reduce_in_lanes(s: Any, reduction: te.Tensor, lanes: int = 64, vector: int = 16) -> list[te.Tensor]:
    """Factors `reduction` into partial results in `lanes` lanes, these into one vector, and that into its elements, so that the
    serial end does not delay the loads.

    Returns the tensors of the partial results, to be computed at the reduction.
    """
    partial = []
    for width in (lanes, vector):
        _, lane = s[reduction].split(s[reduction].op.reduce_axis[0], factor=width)
        partial.append(s.rfactor(reduction, lane))
    for P in partial:
        s[P].reorder(*s[P].op.reduce_axis, s[P].op.axis[0])
        s[P].vectorize(s[P].op.axis[0])
    return partial


def row_sum_schedule(B: te.Tensor) -> Any:
    s = te.create_schedule(B.op)
    partial = reduce_in_lanes(s, B)
    row = s[B].op.axis[0]
    s[B].parallel(row)
    for P in partial:
        s[P].compute_at(s[B], row)
    return s


def column_sum_schedule(B: te.Tensor, threads: int, rows: int = 8, lanes: int = 256) -> Any:
    """A schedule that sums columns in parallel parts, one per thread: the partial sums of `lanes` columns stay in registers
    over `rows` rows.
    """
    s = te.create_schedule(B.op)
    share, inner = s[B].split(B.op.axis[0], nparts=threads)
    middle, lane = s[B].split(inner, factor=lanes)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=rows)
    s[B].reorder(share, ko, middle, ki, lane)
    s[B].vectorize(lane)
    s[B].parallel(share)
    return s


def matrix_sum(axis: int, threads: int, size: int = 4096) -> Case:
    A = te.placeholder((size, size), name="A")
    k = te.reduce_axis((0, size), "k")
    B = te.compute((size,), (lambda i: te.sum(A[i, k], axis=k)) if axis == 1 else (lambda i: te.sum(A[k, i], axis=k)), name="B")
    kernel = tedsl.build(row_sum_schedule(B) if axis == 1 else column_sum_schedule(B, threads), [A, B])
    a = np.random.default_rng(0).random((size, size), dtype="float32")
    ours, theirs = np.empty(size, "float32"), np.empty(size, "float32")
    kernel(a, ours)
    np.testing.assert_allclose(ours, a.sum(axis=axis), rtol=1e-4)
    contenders: dict[str, Contender] = {"tedsl": lambda: kernel(a, ours), "numpy": lambda: np.sum(a, axis=axis, out=theirs)}
    torch = torch_or_none(threads)
    if torch is not None:
        ta, tb = torch.from_numpy(a), torch.empty(size)
        contenders["torch"] = lambda: torch.sum(ta, dim=axis, out=tb)
    return Case(f"{'row' if axis == 1 else 'column'} sum {size}²", contenders, 4.0 * size * size, "read")


def softmax(rows: int, columns: int, threads: int) -> Case:
    x = te.placeholder((rows, columns), name="x")
    k, j = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "j")
    peak = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="peak")
    e = te.compute((rows, columns), lambda i, c: te.exp(x[i, c] - peak[i]), name="e")
    total = te.compute((rows,), lambda i: te.sum(e[i, j], axis=j), name="total")
    y = te.compute((rows, columns), lambda i, c: e[i, c] / total[i], name="y")
    s = te.create_schedule(y.op)
    row = y.op.axis[0]
    s[y].parallel(row)
    for reduction in (peak, total):
        for stage in (*reduce_in_lanes(s, reduction), reduction):
            s[stage].compute_at(s[y], row)
    s[e].compute_at(s[y], row)
    for stage in (e, y):
        _, lanes = s[stage].split(s[stage].op.axis[1], factor=64)
        s[stage].vectorize(lanes)
    kernel = tedsl.build(s, [x, y])
    a = np.random.default_rng(0).standard_normal((rows, columns), dtype="float32")
    ours = np.empty_like(a)

    def numpy_softmax() -> Any:
        shifted = np.exp(a - a.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    kernel(a, ours)
    np.testing.assert_allclose(ours, numpy_softmax(), rtol=1e-4)
    contenders: dict[str, Contender] = {"tedsl": lambda: kernel(a, ours), "numpy": numpy_softmax}
    torch = torch_or_none(threads)
    if torch is not None:
        ta = torch.from_numpy(a)
        contenders["torch"] = lambda: torch.softmax(ta, 1)
    return Case(f"softmax {rows}x{columns}", contenders)


def call_overhead(threads: int) -> Case:
    A, B = te.placeholder((1,), name="A"), te.placeholder((1,), name="B")
    C = te.compute((1,), lambda i: A[i] + B[i], name="C")
    kernel = tedsl.build(te.create_schedule(C.op), [A, B, C])["default_function"]
    a, b, c = (np.ones(1, "float32") for _ in range(3))
    return Case("checked call of three arrays", {"tedsl": lambda: kernel(a, b, c), "numpy": lambda: np.add(a, b, out=c),
                                                 "an empty lambda": lambda: None})


def vector_add_program(size: Any = 1024) -> tuple[Any, list[Any]]:
    A, B = te.placeholder((size,), name="A"), te.placeholder((size,), name="B")
    C = te.compute((size,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    _, lanes = s[C].split(C.op.axis[0], factor=16)
    s[C].vectorize(lanes)
    return s, [A, B, C]


def symbolic(threads: int) -> list[Case]:
    """Cases of programs compiled once for any size (te.var), beside the same programs for one size."""
    rng = np.random.default_rng(0)
    vectors = [rng.random(100_000, dtype="float32") for _ in range(3)]
    matrices = [rng.random((512, 512), dtype="float32") for _ in range(3)]
    cases = []
    for name, program, size, arrays in (("vector add 100 k", vector_add_program, 100_000, vectors),
                                        ("matmul 512", packed_matmul, 512, matrices)):
        kernels = [tedsl.build(*program(n)) for n in (te.var("n"), size)]
        calls = [lambda kernel=kernel, arrays=arrays: kernel(*arrays) for kernel in kernels]
        cases.append(Case(f"{name}, any size", {"tedsl": calls[0], "tedsl for this size": calls[1]}))
    return cases


def compile_times() -> list[Case]:
    """Cases that time schedule, lower and build, each from the start; and the import, in a process of its own."""
    programs = {"vector add": vector_add_program, "packed matmul 512": lambda: packed_matmul(512)}
    cases = []
    for name, program in programs.items():
        cases.append(Case(f"{name}: schedule + lower", {"tedsl": lambda p=program: tedsl.lower(*p())}))
        cases.append(Case(f"{name}: schedule + lower + build", {"tedsl": lambda p=program: tedsl.build(*p())}))
    return cases


def chain_program(stages: int, tiled: bool) -> tuple[Any, list[Any]]:
    """A chain of `stages` element-wise formulas; tiled: each with its own tiles, vectors and threads, else computed at the
    rows of the last."""
    A = last = te.placeholder((128, 130), name="A")
    made = []
    for k in range(stages):
        last = te.compute((128, 130), lambda y, x, source=last: source[y, x] * 0.5 + 1.0, name=f"T{k}")
        made.append(last)
    s = te.create_schedule(last.op)
    rows, _ = s[last].split(last.op.axis[0], 8)
    for T in made if tiled else made[:-1]:
        if tiled:
            _, lanes = s[T].split(s[T].leaf_iter_vars[-1], 16)
            s[T].vectorize(lanes)
            s[T].parallel(s[T].leaf_iter_vars[0])
        else:
            s[T].compute_at(s[last], rows)
    return s, [A, last]


def lowering_times() -> list[Case]:
    """Cases that time `lower` for a growing number of stages, in which it should be linear."""
    cases = []
    for tiled in (True, False):
        for stages in (50, 100, 200):
            s, args = chain_program(stages, tiled)
            name = f"lower a chain of {stages} stages, {'tiled' if tiled else 'attached'}"
            cases.append(Case(name, {"tedsl": lambda s=s, args=args: tedsl.lower(s, args)}))
    return cases


def import_seconds() -> float:
    """Seconds that `import tedsl` takes after `import numpy`: the best of five."""
    code = "import time, numpy; t = time.perf_counter(); import tedsl; print(time.perf_counter() - t)"
    return min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
               for _ in range(5))


def all_cases(threads: int, quick: bool) -> list[Any]:
    """Functions that make the cases, so that only one case's arrays live at a time."""
    sizes = (128, 256, 512) if quick else (128, 256, 512, 1024, 2048)
    made: list[Any] = [lambda n=n: matmul(n, threads) for n in sizes]
    made += [lambda: multiply_add(threads), lambda: exponential(threads), lambda: matrix_sum(1, threads),
             lambda: matrix_sum(0, threads), lambda: softmax(512, 512, threads), lambda: softmax(4096, 1024, threads)]
    if threads == 1:
        made.append(lambda: call_overhead(threads))
        made += [lambda c=c: c for c in (*symbolic(threads), *compile_times(), *lowering_times())]
    return made
