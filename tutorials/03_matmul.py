"""Matrix multiplication: from three plain loops to the speed of a vendor library, one directive at a time.

Run it: `python tutorials/03_matmul.py [size]`. Every step prints its loops, its speed beside numpy's and its share of what this
machine can multiply and add at most. One thread, unless TEDSL_NUM_THREADS says otherwise.
"""

import os
import pathlib
import statistics
import sys

os.environ.setdefault("TEDSL_NUM_THREADS", "1")
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["TEDSL_NUM_THREADS"]  # as many for numpy, set before it is imported
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import numpy as np

import tedsl
from benchmarks.limits import fma_probe
from benchmarks.matmul import packed_matmul
from benchmarks.measure import samples_of, share
from tedsl import te

N = int(sys.argv[1]) if len(sys.argv) > 1 else 512
THREADS = int(os.environ["TEDSL_NUM_THREADS"])
rng = np.random.default_rng(0)
a, b = rng.random((N, N), dtype="float32"), rng.random((N, N), dtype="float32")
expected = a @ b
probe = fma_probe(THREADS)  # multiply-adds on registers alone: measured beside every kernel, for the clock changes
print(f"{N} x {N} x {N}, float32, {THREADS} thread{'s' * (THREADS > 1)}. Each step says how long a call takes, how many times")
print("as fast as numpy's matrix product (OpenBLAS, assembly written by hand) that is, and how much of the limit:")
print(f"{2 * N**3 / 1e6:.0f} million multiplications and additions at the rate at which this machine does nothing else.")

SHOWN = 10  # lines of loops: those of the later steps are many, written out by `unroll`


def show(title, schedule, arguments):
    """Print the loops, run the kernel, check the result, compare its speed."""
    lines = tedsl.lower(schedule, arguments, simple_mode=True).readable().splitlines()[1:]
    print(f"\n{title}:", *lines[:SHOWN], sep="\n")
    if len(lines) > SHOWN:
        print(f"    ... and {len(lines) - SHOWN} lines more")
    kernel = tedsl.build(schedule, arguments)
    c = np.empty((N, N), "float32")
    kernel(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4)
    samples = samples_of({"ours": lambda: kernel(a, b, c), "numpy": lambda: np.matmul(a, b), "limit": probe.call}, rounds=7)
    ours, numpys = (statistics.median(samples[name]) for name in ("ours", "numpy"))
    part = share(2 * N**3, samples["ours"], probe, samples["limit"])
    print(f"--- {ours * 1e3:.2f} ms, {numpys / ours:.2f} times as fast as numpy, {100 * part:.0f} % of the limit")
    return ours


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
naive = show("Naive", s, [A, B, C])

# 2. Blocking: a 32 x 32 tile of C is computed from a few rows of A and a few columns of B that stay in cache.
BLOCK = 32
A, B, C = matmul()
s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
(k,) = s[C].op.reduce_axis
ko, ki = s[C].split(k, factor=4)
s[C].reorder(xo, yo, ko, ki, xi, yi)
show("Blocking", s, [A, B, C])

# 3. Vectorization: the innermost loop runs along a row of B and of C, so it becomes vector instructions.
s[C].vectorize(yi)
show("Vectorization", s, [A, B, C])

# 4. Loop permutation: xi before ki, so that one row of the tile stays in registers while k runs.
A, B, C = matmul()
s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
(k,) = s[C].op.reduce_axis
ko, ki = s[C].split(k, factor=4)
s[C].reorder(xo, yo, ko, xi, ki, yi)
s[C].vectorize(yi)
show("Loop permutation", s, [A, B, C])

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
show("Packing", s, [A, B, C])

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
show("Write cache", s, [A, B, C])

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
last = show("Register tile, packing inside, parallel", s, arguments)
assert last < naive
print(f"\nFrom the first to the last step: {naive / last:.0f} times faster. The rest to 100 % is loading, storing and packing:")
print("instructions that multiply nothing, which no library is without.")
