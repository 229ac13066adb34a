"""topi: operators without writing loops, and schedules that make them fast on the machine at hand.

Run it: `python tutorials/08_topi.py`. Everything that it claims, it checks.
"""

import time

import numpy as np

import tedsl
import topi
from tedsl import te
from tedsl.ir.script import script  # formulas and loops as text

rng = np.random.default_rng(0)

# --- 1. An operator is a formula --------------------------------------------------------------------------------------
# The sum of each row, for any number of rows and columns: what took a reduce_axis and a compute is one call.
n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
B = topi.sum(A, axis=1)
s = te.create_schedule(B.op)
loops = tedsl.lower(s, [A, B])
print("The row sum:\n")
loops.show()
assert "for ax0 in range(n):" in loops.readable() and "A_red[ax0] += A[ax0, k1]" in loops.readable()

# --- 2. Tensors have operators ----------------------------------------------------------------------------------------
# `a + b` broadcasts as in numpy; topi.broadcast_add is the same operator by name.
x, y = 100, 10
a = te.placeholder((x, y, y), name="a")
b = te.placeholder((y, y), name="b")
c = a + b
d = a * b
assert repr(c.op) == repr(topi.broadcast_add(a, b).op)

# A chain of them is a graph of stages. Nothing is computed yet.
e = topi.elemwise_sum([c, d])
f = e / 2.0
g = topi.sum(f)
print("\nThe stages of sum((a + b + a * b) / 2):\n")
stages = te.create_schedule(g.op).stages
for stage in stages:
    formula = "the caller's array" if isinstance(stage.op, te.PlaceholderOp) else script(stage.op.body[0])
    print(f"  {stage.op.name}: {formula}")
assert [stage.op.name for stage in stages] == ["a", "b", "T_add", "T_multiply", "T_elemwise_sum", "T_divide", "T_divide_red"]
assert repr(stages[0]) == "stage(a, placeholder(a, [100, 10, 10]))"

# --- 3. Schedules by name ---------------------------------------------------------------------------------------------
# Each takes the result and looks at the whole graph: what is cheap is written into its readers, the sum gets its loops.
# topi.generic is right everywhere, topi.x86 uses threads and vectors, topi.cuda blocks and threads of a graphics processor;
# built for a processor, those run as loops.
data = rng.random((x, y, y), "float32"), rng.random((y, y), "float32")
expected = ((data[0] + data[1] + data[0] * data[1]) / 2).sum()
for room in (topi.generic, topi.x86, topi.cuda):
    schedule = room.schedule_reduce(g)
    assert str(schedule).count("computed inline") == 4
    result = np.empty((), "float32")
    tedsl.build(schedule, [a, b, g], "llvm")(*data, result)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    print(f"\n{room.__name__}: {result}, as numpy says")

print("\nThe loops of topi.x86. Sixteen sums side by side, or more, which become one at the end:\n")
tedsl.lower(topi.x86.schedule_reduce(g), [a, b, g], simple_mode=True).show()

# The target chooses as well: schedule(outs) asks the `with` block, or takes this machine. A vector of Haswell holds eight
# numbers, and the sums fill four of them.
with tedsl.target.Target("llvm -mcpu=haswell"):
    narrow = str(tedsl.lower(topi.schedules.schedule(g), [a, b, g], simple_mode=True))
assert "sum_lanes((float32x32*)" in narrow

# --- 4. What is around an operator is fused with it -------------------------------------------------------------------
# A fully connected layer: product of matrices, bias, relu. One loop nest: bias and relu are applied to each tile of the
# product before it leaves the registers.
inputs, weight, bias = te.placeholder((64, 256), name="inputs"), te.placeholder((128, 256), name="weight"), \
    te.placeholder((128,), name="bias")
layer = topi.nn.relu(topi.nn.dense(inputs, weight, bias))
schedule = topi.schedules.schedule(layer)
print("\nThe schedule of a fully connected layer:\n")
print(schedule)
assert "T_dense_bias: computed inline" in str(schedule) and "T_dense: computed at T_relu" in str(schedule)
arrays = [rng.standard_normal(shape, "float32") for shape in ((64, 256), (128, 256), (128,))]
result = np.empty((64, 128), "float32")
tedsl.build(schedule, [inputs, weight, bias, layer])(*arrays, result)
np.testing.assert_allclose(result, np.maximum(arrays[0] @ arrays[1].T + arrays[2], 0), rtol=1e-4, atol=1e-4)

# --- 5. softmax -------------------------------------------------------------------------------------------------------
# Four looks at each row: its maximum, the exponentials, their sum, the division. The schedule does all of them while the
# row is in the nearest cache.
def median_ms(function, *args, rounds=9):
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function(*args)
        taken.append(time.perf_counter() - begin)
    return 1e3 * sorted(taken)[rounds // 2]


def softmax_numpy(values):
    shifted = np.exp(values - values.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


print("\nsoftmax: the median time of a call in ms. numpy goes through all of the memory for each of the four looks.\n")
for shape in ((512, 512), (4096, 1024)):
    t = te.placeholder(shape, name="t")
    probability = topi.nn.softmax(t)
    begin = time.perf_counter()
    kernel = tedsl.build(topi.schedules.schedule(probability), [t, probability])
    built = 1e3 * (time.perf_counter() - begin)
    values, result = rng.standard_normal(shape, "float32"), np.empty(shape, "float32")
    kernel(values, result)
    np.testing.assert_allclose(result, softmax_numpy(values), rtol=1e-5)
    ours, theirs = median_ms(kernel, values, result), median_ms(softmax_numpy, values)
    print(f"  {shape!s:14} topi {ours:7.3f}   numpy {theirs:7.3f}   built in {built:.0f} ms")

# --- 6. Errors come from where the mistake is -------------------------------------------------------------------------
try:
    topi.nn.dense(inputs, te.placeholder((128, 255), name="weight"))
except ValueError as error:
    print(f"\nA weight of the wrong shape:\n  {error}")
    assert "256 and 255 terms to sum" in str(error)
