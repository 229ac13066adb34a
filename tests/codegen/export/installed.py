"""Checks the wheels `kernels` and `others` where they are installed, with numpy alone: `.ci/wheels` runs it."""

import gc
import os
import sys

import kernels
import numpy as np
import others

assert not {"tedsl", "llvmlite"} & {name for name, module in sys.modules.items() if module is not None}
x, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
kernels.add(x, x, c)
assert (c == 2 * x).all()
a = a32 = np.arange(12, dtype="int32").reshape(3, 4)
for view in (a, a[::-1, ::-1], np.asfortranarray(a), np.broadcast_to(a[0], (3, 4))):
    out = np.zeros((3, 4), "int32")
    kernels.scale(view, a[0], 3, out)
    assert (out == view * 3 + a[0]).all()
    others.scale(view, a[0], np.int16(-2), out.T.copy().T)
rows, sums = np.arange(280, dtype="float32").reshape(4, 70), np.zeros(4, "float32")
kernels.sums(rows, sums)
assert np.allclose(sums, rows.sum(1) * rows.sum())
h = np.zeros(5, "float16")
kernels.halves(np.zeros(5, "float16"), 0.25, h)
assert (h == 0.25).all()
n = np.zeros(1, "float32")
kernels.large(np.ones(1, "float32"), 5, n)
assert n == 10
a, b = np.arange(96, dtype="float64").reshape(8, 12), np.ones((12, 16))
product = np.zeros((8, 16))
kernels.matmul(a, b, product)
assert (product == a @ b).all()
low, high = np.zeros(8, "uint8"), np.zeros(8, "uint8")
kernels.extrema(a.astype("uint8"), low, high)
assert (low == a.min(1)).all() and (high == a.max(1)).all()
flags = np.zeros(8, bool)
kernels.greater(x.astype("int64"), 3, flags)
assert flags.tolist() == [i > 3 for i in range(8)]
many = [np.zeros(8, "float32") for _ in range(40)]
kernels.many(x, *many)
assert all((array == x * k).all() for k, array in enumerate(many))
brain = np.array([0x3F80, 0x4000, 0x4040], "uint16")  # 1, 2, 3 in bfloat16
kernels.brain(brain, doubled := np.zeros(3, "uint16"))
assert doubled.tolist() == [0x4000, 0x4080, 0x40C0]
assert kernels.first_above(x, 3.5) == 4 and type(kernels.first_above(x[::-1], 1)) is int

for wrong in ((x, x), (x, x, x), (x.astype("float64"), x, c), (x[::2], x, c), (x, [1], c)):
    try:
        kernels.add(*wrong)
        raise AssertionError(f"{wrong} was accepted")
    except (TypeError, ValueError) as error:
        assert str(error).startswith("add"), error


def scaled():
    """Whether both packages compute on threads of their own."""
    outs = [np.zeros((3, 4), "int32") for _ in range(2)]
    kernels.scale(a32, a32[0], 3, outs[0])
    others.scale(a32, a32[0], 5, outs[1])
    return all((out == a32 * k + a32[0]).all() for out, k in zip(outs, (3, 5)))


assert scaled()
child = os.fork()
if child == 0:
    os._exit(0 if scaled() and scaled() else 1)
assert os.waitpid(child, 0)[1] == 0 and scaled()

CALLS = int(os.environ.get("CALLS", "20000"))
gc.collect()
watched = {"x": x, "c": c, "None": None}
before = {name: sys.getrefcount(item) for name, item in watched.items()}
for _ in range(CALLS):
    kernels.add(x, x, c)
    kernels.first_above(x, 3.5)
gc.collect()
after = {name: sys.getrefcount(item) for name, item in watched.items()}
assert all(abs(after[name] - before[name]) < CALLS // 1000 for name in watched), (before, after)
print(f"{sys.version.split()[0]} with numpy {np.__version__} computes what numpy computes")
