"""Kernels for graphics processors without one: from a vector add to a tiled product, reading what the simulator reports.

Run it: `python tutorials/12_gpu.py`. docs/devices.md and docs/simulator.md are the pages behind it; with a GPU at hand the same
programs run on `tedsl.cuda(0)`.
"""

import textwrap

import numpy as np

import tedsl
from tedsl import simulate, te
from tedsl.errors import DeviceError, LoweringError

rng = np.random.default_rng(0)
device = tedsl.sim(0)  # a simulated CUDA device: an interpreter of the PTX that tedsl writes


def launched(s, arguments, *inputs):
    """The result of the program on the simulated device, and the report of its launch."""
    function = tedsl.build(s, arguments, target="cuda")
    arrays = [tedsl.nd.array(value, device) for value in inputs]
    out = tedsl.nd.empty([int(n) for n in arguments[-1].shape], str(arguments[-1].dtype), device)
    simulate.reset()
    function(*arrays, out)
    return out.numpy(), simulate.last_report()


# --- 1. Blocks and threads --------------------------------------------------------------------------------------------
# A launch runs blocks of threads. Two loops are bound to them; what was a loop is now an index that each thread has.
n = 1000
A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
C = te.compute((n,), lambda i: A[i] + B[i], name="C")
s_add = te.create_schedule(C.op)
block, thread = s_add[C].split(C.op.axis[0], factor=128)
s_add[C].bind(block, te.thread_axis("blockIdx.x"))
s_add[C].bind(thread, te.thread_axis("threadIdx.x"))
print("A vector add in blocks of 128 threads:\n")
print(tedsl.lower(s_add, [A, B, C], simple_mode=True)["main"].readable())

module = tedsl.build(s_add, [A, B, C], target="cuda")
ptx = module.imported_modules[0].get_source("ptx")
print(f"\nThe host function launches a kernel of {len(ptx.splitlines())} lines of PTX; its load and its add:")
print("\n".join(line for line in ptx.splitlines() if "ld.global" in line or "add.rn.f32" in line))
a, b = rng.standard_normal((2, n), "float32")
result, report = launched(s_add, [A, B, C], a, b)
np.testing.assert_array_equal(result, a + b)
assert not report.findings

# --- 2. A mistake that is refused --------------------------------------------------------------------------------------
# A stage that is not bound would be computed by the host, which cannot see the memory of the device.
try:
    tedsl.build(te.create_schedule(C.op), [A, B, C], target="cuda")
except LoweringError as error:
    print("\nWithout bind:")
    print(textwrap.fill(str(error), 108, initial_indent="  ", subsequent_indent="  "))

# --- 3. Neighbours read neighbours --------------------------------------------------------------------------------------
# A transpose reads columns and writes rows. The threads of a warp read far apart: each of their floats moves a sector of 32
# bytes. Through shared memory both sides are rows; there columns are read, each from one bank, unless rows are 33 floats apart.
m = 128
X = te.placeholder((m, m), name="X")
Y = te.compute((m, m), lambda i, j: X[j, i], name="Y")


def transposed(staged=False, align=0):
    """Tiles of 32 x 32; staged: they go through shared memory, whose rows are `align` floats apart."""
    s = te.create_schedule(Y.op)
    tile = s.cache_read(X, "shared", [Y]) if staged else None
    y, x, yi, xi = s[Y].tile(*Y.op.axis, 32, 32)
    rest, row = s[Y].split(yi, factor=8)
    for loop, name in ((y, "blockIdx.y"), (x, "blockIdx.x"), (row, "threadIdx.y"), (xi, "threadIdx.x")):
        s[Y].bind(loop, te.thread_axis(name))
    s[Y].reorder(y, x, rest, row, xi)
    if tile is not None:
        s[tile].compute_at(s[Y], x)
        rows, columns = s[tile].op.axis
        if align:
            s[tile].storage_align(rows, align - 1, align - 32)
        s[tile].bind(s[tile].split(rows, factor=8)[1], te.thread_axis("threadIdx.y"))
        s[tile].bind(columns, te.thread_axis("threadIdx.x"))
    return s


x = rng.standard_normal((m, m), "float32")
print("\nA transpose of 128 x 128, by what the simulator counts:\n")
print("                           loads used   stores used   conflict of banks   model")
reports = {}
for name, s in (("each thread on its own", transposed()), ("tiles in shared memory", transposed(staged=True)),
                ("tiles with rows of 33", transposed(staged=True, align=33))):
    result, reports[name] = launched(s, [X, Y], x)
    np.testing.assert_array_equal(result, x.T)
    loads, stores = (reports[name].traffic("global", kind) for kind in ("load", "store"))
    shared = reports[name].traffic("shared")
    conflict = f"{shared.conflict:.1f}" if shared.requests else "none"
    microseconds = reports[name].duration.seconds * 1e6
    print(f"{name:26s} {loads.efficiency:9.0%} {stores.efficiency:12.0%} {conflict:>16s} {microseconds:12.2f} us")
direct, shared, aligned = reports.values()
assert min(direct.traffic("global", kind).efficiency for kind in ("load", "store")) < 0.13
assert all(r.traffic("global", kind).efficiency == 1 for r in (shared, aligned) for kind in ("load", "store"))
assert shared.traffic("shared").conflict > 10 and aligned.traffic("shared").conflict == 1

# --- 4. A tiled product ---------------------------------------------------------------------------------------------------
# Each block keeps tiles of both operands in shared memory; each of its threads keeps results in a register.
k = te.reduce_axis((0, 64), "k")
P, Q = te.placeholder((64, 64), name="P"), te.placeholder((64, 64), name="Q")
R = te.compute((64, 64), lambda i, j: te.sum(P[i, k] * Q[k, j], axis=k), name="R")


def product(tile):
    """A thread for each result of a tile x tile block; tile 0: operands are read from global memory."""
    s = te.create_schedule(R.op)
    copies = [s.cache_read(T, "shared", [R]) for T in (P, Q)] if tile else []
    total = s.cache_write(R, "local")
    y, x, yi, xi = s[R].tile(*s[R].op.axis, 16, 16)
    for loop, name in ((y, "blockIdx.y"), (x, "blockIdx.x"), (yi, "threadIdx.y"), (xi, "threadIdx.x")):
        s[R].bind(loop, te.thread_axis(name))
    s[total].compute_at(s[R], xi)
    steps, _ = s[total].split(s[total].op.reduce_axis[0], factor=16)
    for copy in copies:
        s[copy].compute_at(s[total], steps)
        for axis, name in zip(s[copy].op.axis, ("threadIdx.y", "threadIdx.x")):
            s[copy].bind(axis, te.thread_axis(name))
    return s


p, q = rng.integers(-4, 5, (2, 64, 64)).astype("float32")
moved = []
for tile in (0, 16):
    result, report = launched(product(tile), [P, Q, R], p, q)
    np.testing.assert_array_equal(result, p @ q)
    moved.append(report.traffic("global", "load").moved)
print(f"\nA product of 64 x 64 loads {moved[0]} bytes from global memory without tiles, {moved[1]} with them.")
assert moved[1] * 4 < moved[0]

# --- 5. What a GPU hides ------------------------------------------------------------------------------------------------------
# Memory that nothing has written holds anything. A GPU computes with it in silence; the simulator says so, and in checked mode
# the first finding is an error.
add = tedsl.build(s_add, [A, B, C], target="cuda")
here = tedsl.nd.array(a, device)
forgotten, out = (tedsl.nd.empty((n,), "float32", device) for _ in range(2))
try:
    with simulate.mode("checked"):
        add(here, forgotten, out)
except DeviceError as error:
    print("\nAn array that was never filled:")
    print(textwrap.fill(str(error), 108, initial_indent="  ", subsequent_indent="  "))
else:
    raise AssertionError("the simulator finds it")

print("\nThe whole report of the tiled product:\n")
print(report)
