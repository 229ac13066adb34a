"""Reductions: sums over one axis and several, in many lanes with rfactor, and reductions of pairs (argmax).

Run it: `python tutorials/02_reductions.py`.
"""

import timeit

import numpy as np

import tedsl
from tedsl import te

rng = np.random.default_rng(0)

# --- 1. The sum of each row, for any shape ----------------------------------------------------------------------------
# `te.var` stands for a dimension that the arrays of the call decide.
n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), "k")
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
s = te.create_schedule(B.op)
loops = tedsl.lower(s, [A, B])
print("The sum of each row. n, m and the strides are those of the arrays that a call brings:\n")
loops.show()
assert "B[i] = 0.0" in loops.readable() and "B[i] += A[i, k]" in loops.readable()

row_sum = tedsl.build(s, [A, B])
for shape in ((3, 5), (1, 1), (17, 0), (64, 1000)):
    a = rng.random(shape, dtype="float32")
    b = np.empty(shape[0], "float32")
    row_sum(a, b)  # one kernel, every shape
    np.testing.assert_allclose(b, a.sum(axis=1), rtol=1e-5)
print("\nOne kernel summed the rows of four shapes.")

# --- 2. Several axes at once, and a condition -------------------------------------------------------------------------
C = te.placeholder((8, 6, 10), name="C")
i1, i2 = te.reduce_axis((0, 6), "i1"), te.reduce_axis((0, 10), "i2")
D = te.compute((8,), lambda i: te.max(C[i, i1, i2], axis=[i1, i2], where=te.all(i1 < 4, i2 > 2)), name="D")
s = te.create_schedule(D.op)
print("\nThe maximum where i1 < 4 and i2 > 2. Each condition stands outside of the loops that it does not need:\n")
tedsl.lower(s, [C, D], simple_mode=True).show()
c, d = rng.random((8, 6, 10), dtype="float32"), np.empty(8, "float32")
tedsl.build(s, [C, D])(c, d)
np.testing.assert_array_equal(d, c[:, :4, 3:].max(axis=(1, 2)))

# --- 3. rfactor: a sum in many lanes ----------------------------------------------------------------------------------
# One running sum is one dependency chain. rfactor makes a stage that sums each 64th element on its own, in vector lanes,
# and a second one that adds the 64 partial sums. The order of additions changes: that is why tedsl never does it unasked.
size = 1_000_000
X = te.placeholder((size,), name="X")
k = te.reduce_axis((0, size), "k")
S = te.compute((), lambda: te.sum(X[k], axis=k), name="S")
plain = te.create_schedule(S.op)

s = te.create_schedule(S.op)
k_outer, k_lane = s[S].split(S.op.reduce_axis[0], factor=64)
P = s.rfactor(S, k_lane)
s[P].reorder(*s[P].op.reduce_axis, s[P].op.axis[0])  # the lanes innermost
s[P].vectorize(s[P].op.axis[0])
factored = tedsl.lower(s, [X, S])
print("\nA sum in 64 lanes, which are added up at the end:\n")
factored.show()
assert "S.rf[0:64] += X[" in factored.readable()

x, total = rng.random(size, dtype="float32"), np.empty((), "float32")
calls = {"numpy": lambda: x.sum()}
for name, schedule in (("one chain", plain), ("rfactor", s)):
    kernel = tedsl.build(schedule, [X, S])
    kernel(x, total)
    np.testing.assert_allclose(total, x.sum(dtype="float64"), rtol=1e-3)
    calls[name] = lambda kernel=kernel: kernel(x, total)
print("\nThe time of a call, the best of 9:\n")
for name, call in calls.items():
    print(f"  {name:10s} {min(timeit.repeat(call, number=1, repeat=9)) * 1e6:6.0f} us")
print("\nIn one chain each addition waits for the one before. The lanes of rfactor do not wait for each other, and")
print("neither do numpy's partial sums.")

# --- 4. Reductions of pairs: argmax -----------------------------------------------------------------------------------
# The combiner takes two (index, value) pairs and returns the better one.
argmax = te.comm_reducer(
    lambda x, y: (tedsl.tir.Select(x[1] >= y[1], x[0], y[0]), tedsl.tir.Select(x[1] >= y[1], x[1], y[1])),
    lambda t0, t1: (tedsl.tir.const(-1, t0), te.min_value(t1)), name="argmax")
rows, columns = 33, 77
index = te.placeholder((rows, columns), "int32", name="index")
value = te.placeholder((rows, columns), "float32", name="value")
k = te.reduce_axis((0, columns), "k")
best_index, best_value = te.compute((rows,), lambda i: argmax((index[i, k], value[i, k]), axis=k), name="best")
s = te.create_schedule(best_index.op)
print("\nArgmax. Both parts of the better pair are chosen before either is stored:\n")
tedsl.lower(s, [index, value, best_index, best_value]).show()
kernel = tedsl.build(s, [index, value, best_index, best_value])
indices = np.tile(np.arange(columns, dtype="int32"), (rows, 1))
values = rng.random((rows, columns), dtype="float32")
out_index, out_value = np.empty(rows, "int32"), np.empty(rows, "float32")
kernel(indices, values, out_index, out_value)
np.testing.assert_array_equal(out_index, values.argmax(axis=1))
np.testing.assert_array_equal(out_value, values.max(axis=1))
print("\nArgmax agrees with numpy.")
