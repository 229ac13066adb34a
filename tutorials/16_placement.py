"""A network on two unequal devices: split into parts, profiled, placed, and run over actors.

Run it: `python tutorials/16_placement.py`. The accelerator is a simulated one with a stated model of its speed, so that the
same numbers come out on every machine; the results are computed by the processor.

The method follows the adaptive partition of convolutional networks (Journal of Computer Applications 43(9), 2023).
"""

from pathlib import Path

import numpy as np

from tedsl import graph
from tedsl.graph import Spec, constant, ops, placement

out = Path(__file__).parent / "out"
out.mkdir(exist_ok=True)
rng = np.random.default_rng(0)


# --- 1. A network with branches ----------------------------------------------------------------------------------------
def conv(x, filters, kernel):
    shape = (filters, x.shape[1], kernel, kernel)
    weight = rng.standard_normal(shape).astype("float32") * np.float32((2 / np.prod(shape[1:])) ** 0.5)
    return ops.nn.relu(ops.nn.conv2d(x, constant(weight, name="w"), 1, kernel // 2, 1))


def pool(x):
    return ops.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")


def network(x):
    x = pool(conv(x, 32, 3))
    for width in (16, 32):
        narrow = conv(x, width, 1)
        x = pool(ops.concatenate([conv(narrow, 4 * width, 1), conv(narrow, 4 * width, 3)], 1))
    x = ops.nn.flatten(x)
    weight = constant(rng.standard_normal((1000, x.shape[1])).astype("float32") * np.float32(0.01), name="w")
    return ops.nn.softmax(ops.nn.dense(x, weight))


g = graph.trace(network, Spec((1, 3, 64, 64)), name="branches")
parts = placement.split(g)
print(f"{parts}\n")
# Cut behind each max pool, and on both sides of the branches that meet in a concatenation.
assert len(parts) == 10 and len(parts.edges) == 11

# --- 2. Two devices, each better at something --------------------------------------------------------------------------
cpu = placement.Simulated("cpu", flops=4e10, bandwidth=2e10, launch=1e-6, link_latency=1e-6, link_bandwidth=1e12)
gpu = placement.Simulated("gpu", flops=4e11, bandwidth=1e10, launch=1e-5, link_latency=5e-6)
profile = placement.profile(parts, [cpu, gpu])
print(f"{profile}\n")

# --- 3. Who computes what? ---------------------------------------------------------------------------------------------
times = {method: placement.place(profile, method=method).makespan * 1e3 for method in (*placement.METHODS, "optimal")}
for method, time in times.items():
    print(f"{method:14} {time:7.3f} ms")
assert times["optimal"] <= times["moves"] <= times["critical_path"] <= times["fastest"]
assert times["moves"] < times["single"]

placed = placement.place(profile, method="moves")
print(f"\n{placed}")
(out / "16_placement.svg").write_text(placed._repr_svg_())

# --- 4. It runs ----------------------------------------------------------------------------------------------------------
x = rng.standard_normal((1, 3, 64, 64)).astype("float32")
(expected,) = graph.evaluate(g, x)
np.testing.assert_allclose(placed.run(x), expected, rtol=1e-4, atol=1e-6)

results = []
report = placed.run(x, batches=8, fetch=lambda number, y: results.append(y.copy()))
assert len(results) == 8 and all(np.array_equal(y, results[0]) for y in results)
print(f"\n8 inputs through {len(parts)} parts on {len(set(placed.assignment))} threads; the bottleneck acted "
      f"{max(share.acts for share in report.shares.values())} times")
