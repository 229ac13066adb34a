"""Matrix multiplication: from three plain loops to the speed of a vendor library, one directive at a time.

Run it: `python tutorials/03_matmul.py [size]`. Every step prints its loops, its speed beside numpy's and its share of the
multiply-add limit measured on this machine. One thread until the step that says otherwise.
"""

import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy with one thread too, set before it is imported
os.environ.setdefault("TEDSL_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import statistics
import time

import numpy as np

import tedsl
from benchmarks.limits import fma_limit
from benchmarks.matmul import packed_matmul
from tedsl import te

N = int(sys.argv[1]) if len(sys.argv) > 1 else 512
LANES = tedsl.target.Target("llvm").vector_lanes("float32")
rng = np.random.default_rng(0)
a, b = rng.random((N, N), dtype="float32"), rng.random((N, N), dtype="float32")
expected = a @ b


def seconds_of(function, repeat=7):
    """The median time of a call."""
    function()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


numpy_seconds = seconds_of(lambda: np.matmul(a, b))
flops = 2 * N**3
LIMIT = fma_limit()
print(f"{N} x {N} x {N}, float32; numpy: {numpy_seconds * 1e3:.2f} ms; "
      f"limit: {LIMIT / 1e9:.0f} GFLOP/s with one thread")


def show(title, schedule, arguments):
    """Print the loops, run the kernel, check the result, compare its speed."""
    print(f"\n=== {title}\n{tedsl.lower(schedule, arguments, simple_mode=True)}")
    kernel = tedsl.build(schedule, arguments)
    c = np.empty((N, N), "float32")
    kernel(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4)
    seconds = seconds_of(lambda: kernel(a, b, c))
    print(f"--- {title}: {seconds * 1e3:.2f} ms, {numpy_seconds / seconds:.2f} times numpy's speed, "
          f"{100 * flops / seconds / LIMIT:.0f} % of the limit")
    return seconds


def matmul():
    """The formula. All steps below compute this."""
    A = te.placeholder((N, N), name="A")
    B = te.placeholder((N, N), name="B")
    k = te.reduce_axis((0, N), "k")
    C = te.compute((N, N), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")
    return A, B, C


# 1. Three loops as the formula says. B is read down its columns: each element from another cache line.
A, B, C = matmul()
s = te.create_schedule(C.op)
naive = show("naive", s, [A, B, C])

# 2. Blocking: a 32 x 32 tile of C is computed from a few rows of A and a few columns of B that stay in cache.
BLOCK = 32
A, B, C = matmul()
s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
(k,) = s[C].op.reduce_axis
ko, ki = s[C].split(k, factor=4)
s[C].reorder(xo, yo, ko, ki, xi, yi)
show("blocking", s, [A, B, C])

# 3. Vectorization: the innermost loop runs along a row of B and of C, so it becomes vector instructions.
s[C].vectorize(yi)
show("vectorization", s, [A, B, C])

# 4. Loop permutation: xi before ki, so that one row of the tile stays in registers while k runs.
A, B, C = matmul()
s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
(k,) = s[C].op.reduce_axis
ko, ki = s[C].split(k, factor=4)
s[C].reorder(xo, yo, ko, xi, ki, yi)
s[C].vectorize(yi)
show("loop permutation", s, [A, B, C])

# 5. Packing: B is copied so that the 32 columns of a tile lie one after the other in memory.
A, B, C = matmul()
k = te.reduce_axis((0, N), "k")
packed_b = te.compute((N // BLOCK, N, BLOCK), lambda bigN, k, littleN: B[k, bigN * BLOCK + littleN], name="packedB")
C = te.compute((N, N), lambda x, y: te.sum(A[x, k] * packed_b[y // BLOCK, k, te.indexmod(y, BLOCK)], axis=k), name="C")
s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
(k,) = s[C].op.reduce_axis
ko, ki = s[C].split(k, factor=4)
s[C].reorder(xo, yo, ko, xi, ki, yi)
s[C].vectorize(yi)
bigN, _, littleN = s[packed_b].op.axis
s[packed_b].vectorize(littleN)
s[packed_b].parallel(bigN)
show("packing", s, [A, B, C])

# 6. Write cache: the tile is computed in a local array, and written to C once.
s = te.create_schedule(C.op)
CC = s.cache_write(C, "local")
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, BLOCK)
s[CC].compute_at(s[C], yo)
xc, yc = s[CC].op.axis
(k,) = s[CC].op.reduce_axis
ko, ki = s[CC].split(k, factor=4)
s[CC].reorder(ko, ki, xc, yc)
s[CC].unroll(ki)
s[CC].unroll(xc)
s[CC].vectorize(yc)
s[C].unroll(xi)
s[C].vectorize(yi)
bigN, _, littleN = s[packed_b].op.axis
s[packed_b].vectorize(littleN)
s[packed_b].parallel(bigN)
show("write cache", s, [A, B, C])

# 7. K blocks, parallel: K is cut into blocks and their loop goes outside, so that the part of packedB that is in use fits a
# cache even for large matrices. No write cache is needed: the compiler keeps the tile of C in registers during each block.
s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, BLOCK)
(k,) = s[C].op.reduce_axis
ko, ki = s[C].split(k, factor=256)
s[C].reorder(ko, yo, xo, ki, xi, yi)
s[C].unroll(xi)
s[C].vectorize(yi)
s[C].parallel(yo)
bigN, _, littleN = s[packed_b].op.axis
s[packed_b].vectorize(littleN)
s[packed_b].parallel(bigN)
show("K blocks, parallel", s, [A, B, C])

# 8. The last step: a register tile as large as the registers allow, the panel of B packed just before it is used (so it is
# still in the cache, and each thread packs its own), all threads. The schedule stands in benchmarks/matmul.py, where its speed
# is measured beside other libraries.
s, arguments = packed_matmul(N)
last = show("register tile, packing inside, parallel", s, arguments)
assert last < naive
print(f"\nfrom the first to the last step: {naive / last:.0f} times faster")
