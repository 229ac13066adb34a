"""The first kernel: from a formula to machine code, in five steps.

Run it: `python tutorials/01_first_kernel.py`. It prints the loops that the compiler made, and what they say.
docs/reading_the_loops.md explains that notation word by word, beside TVM's.
"""

import timeit

import numpy as np

import tedsl
from tedsl import te

# --- 1. What to compute: a formula over indices -----------------------------------------------------------------------
# A placeholder stands for an array that the caller will bring; `compute` says what element [i] of the result is.
n = 1_000_003  # a prime: nothing divides it, and nothing needs to
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute((n,), lambda i: A[i] + B[i], name="C")

# --- 2. How to compute it: a schedule ---------------------------------------------------------------------------------
# The schedule that nobody touched is one plain loop. `lower` makes the loops, `show` prints them.
s = te.create_schedule(C.op)
plain = tedsl.lower(s, [A, B, C])
print("Untouched, the formula is one loop over i:\n")
plain.show()
assert "for i in range(1000003):" in plain.readable()

# --- 3. Splitting a loop ----------------------------------------------------------------------------------------------
# 16 elements at a time. 16 does not divide n: the compiler adds a guard, and only where it cannot prove it away.
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=16)
split = tedsl.lower(s, [A, B, C], simple_mode=True)
print("\nSplit by 16: i.outer counts the blocks, i.inner the elements of one. 62501 blocks of 16 are 1000016")
print("elements, so `likely(...)` guards the last block; elsewhere it holds.\n")
split.show()
assert "for i.outer in range(62501):" in split.readable() and "if likely(i.outer*16 + i.inner < 1000003):" in split.readable()

# --- 4. Vector instructions and threads -------------------------------------------------------------------------------
# The inner loop becomes vector instructions, the outer one runs on all cores.
s = te.create_schedule(C.op)
chunk, rest = s[C].split(C.op.axis[0], factor=16 * 1024)
blocks, lanes = s[C].split(rest, factor=16)
s[C].vectorize(lanes)
s[C].parallel(chunk)
fast = tedsl.lower(s, [A, B, C])
print("\nParallel and vectorized: 62 chunks on all cores, in each 1024 times 16 elements at once. `at : at+16` is a")
print("slice, as in numpy. The guard has become a mask, `where`: only the lanes inside the arrays are touched.\n")
fast.show()
assert "in parallel(62):" in fast.readable() and "C[at : at+16] = A[at : at+16] + B[at : at+16] where" in fast.readable()

# Programs and books about TVM print the same loops so:
print("\nThe statement in the middle, as TVM writes it:\n")
store = next(line for line in str(fast).splitlines() if "C_2[" in line)
print("   ", store.strip()[:100], "...")
assert "ramp(" in store

# --- 5. Machine code, called with numpy arrays ------------------------------------------------------------------------
add = tedsl.build(s, [A, B, C])
a = np.random.default_rng(0).random(n, dtype="float32")
b = np.random.default_rng(1).random(n, dtype="float32")
c = np.empty(n, "float32")
add(a, b, c)
np.testing.assert_array_equal(c, a + b)
print("\nThe kernel agrees with numpy on", n, "elements.")

ours = min(timeit.repeat(lambda: add(a, b, c), number=5, repeat=20)) / 5
numpys = min(timeit.repeat(lambda: np.add(a, b, out=c), number=5, repeat=20)) / 5
print(f"A call takes {ours * 1e6:.0f} microseconds, numpy's {numpys * 1e6:.0f} (the best of 20 measurements).")
print(f"12 bytes for each element make {12e-9 * n / ours:.0f} and {12e-9 * n / numpys:.0f} GB/s: both wait for memory,")
print("not for additions.")

# --- A mistake, on purpose --------------------------------------------------------------------------------------------
# A wrong schedule is refused where it is written, with a message that says what to do.
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=16)
try:
    s[C].vectorize(C.op.axis[0])
except tedsl.TedslError as error:
    print("\nRefused, as it should be:\n ", error)
else:
    raise AssertionError("vectorizing a loop that was split must be refused")
