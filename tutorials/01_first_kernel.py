"""The first kernel: from a formula to machine code, in five steps.

Run it: `python tutorials/01_first_kernel.py`. Each step prints the loops that the compiler made.
"""

import numpy as np

import tedsl
from tedsl import te

# --- 1. What to compute: a formula over indices -----------------------------------------------------------------------
# A placeholder stands for an array that the caller will bring; `compute` says what element [i] of the result is.
n = 1_000_003  # a prime: nothing divides it, and nothing needs to
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute((n,), lambda i: A[i] + B[i], name="C")
print("The formula:", C.op)

# --- 2. How to compute it: a schedule ---------------------------------------------------------------------------------
# The schedule that nobody touched is one plain loop.
s = te.create_schedule(C.op)
plain = str(tedsl.lower(s, [A, B, C], simple_mode=True))
print("\nUntouched:\n" + plain)
assert "for (i: int32, 0, 1000003) {" in plain

# --- 3. Splitting a loop ----------------------------------------------------------------------------------------------
# 16 elements at a time. 16 does not divide n: the compiler adds a guard, and only where it cannot prove it away.
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=16)
split = str(tedsl.lower(s, [A, B, C], simple_mode=True))
print("\nSplit by 16:\n" + split)
assert "i.outer" in split and "@tir.likely" in split

# --- 4. Vector instructions and threads -------------------------------------------------------------------------------
# The inner loop becomes vector instructions, the outer one runs on all cores.
s = te.create_schedule(C.op)
chunk, rest = s[C].split(C.op.axis[0], factor=16 * 1024)
lanes_outer, lanes = s[C].split(rest, factor=16)
s[C].vectorize(lanes)
s[C].parallel(chunk)
fast = str(tedsl.lower(s, [A, B, C], simple_mode=True))
print("\nParallel and vectorized:\n" + fast)
assert '"parallel"' in fast and "ramp(" in fast

# --- 5. Machine code, called with numpy arrays ------------------------------------------------------------------------
add = tedsl.build(s, [A, B, C])
a = np.random.default_rng(0).random(n, dtype="float32")
b = np.random.default_rng(1).random(n, dtype="float32")
c = np.empty(n, "float32")
add(a, b, c)
np.testing.assert_array_equal(c, a + b)
print("\nThe kernel agrees with numpy on", n, "elements.")

seconds = add.time_evaluator(add.entry_name, tedsl.cpu(), number=20, repeat=5)(a, b, c).median
print(f"{seconds * 1e6:.0f} microseconds: {3 * 4 * n / seconds / 1e9:.1f} GB/s")

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
