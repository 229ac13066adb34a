"""A product of matrices that is slow, why it is, and a search for the schedule that is not.

Run it: `python tutorials/17_tuning.py 60`. The number is the budget of the search in seconds; without it, it is 12.
"""

import sys
from pathlib import Path

import numpy as np

import tedsl
from tedsl import autotvm, te

out = Path(__file__).parent / "out"
out.mkdir(exist_ok=True)
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 12.0
n = 512
rng = np.random.default_rng(0)
a, b = (rng.standard_normal((n, n), dtype="float32") for _ in range(2))
c = np.zeros((n, n), "float32")


# --- 1. A kernel that is slow, and why ---------------------------------------------------------------------------------
def formula():
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_schedule(C.op), A, B, C, k


s, A, B, C, k = formula()
slow = tedsl.build(s, [A, B, C])
report = tedsl.why_slow(slow, a, b, c)
print(f"{report}\n")
assert "scalar" in [cause.kind for cause in report.told]  # its innermost loop, k, adds to one element

# The remedy that it names: loops of the result inside of k, one of them in vectors.
s, A, B, C, k = formula()
i, j = s[C].op.axis
s[C].reorder(i, k, j)
s[C].vectorize(s[C].split(j, factor=16)[1])
vectors = tedsl.build(s, [A, B, C])
report = tedsl.why_slow(vectors, a, b, c)
print(f"{str(report).splitlines()[0]}\n")  # what is left: it loads and stores for each product
assert "scalar" not in [cause.kind for cause in report.told]


# --- 2. A template: the same directives, with numbers that are left open -----------------------------------------------
def product():
    s, A, B, C, k = formula()
    i, j = s[C].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("rows", i, num_outputs=2, filter=lambda split: split.size[-1] <= 16)
    cfg.define_split("columns", j, num_outputs=2, filter=lambda split: 8 <= split.size[-1] <= 128)
    cfg.define_split("terms", k, num_outputs=2)
    cfg.define_knob("columns first", [False, True])
    io, ii = cfg["rows"].apply(s, C, i)
    jo, ji = cfg["columns"].apply(s, C, j)
    ko, ki = cfg["terms"].apply(s, C, k)
    outer = (jo, io) if cfg["columns first"].val else (io, jo)
    s[C].reorder(*outer, ko, ki, ii, ji)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    s[C].parallel(s[C].fuse(*outer))
    return s, [A, B, C]


# --- 3. The search ------------------------------------------------------------------------------------------------------
# Each trial is built and run in a process of its own, its results are compared, and it is written to a file: run it again
# with the same file, and it goes on.
records = out / "product.json"
records.unlink(missing_ok=True)
best = tedsl.tune(product, seconds, records=records, progress=False)
print(f"{best}\n")
print(f"{best.explain_best()}\n")

kernel = best.build()
kernel(a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
times = {name: module.time_evaluator(module.entry_name, number=1, repeat=5, min_repeat_ms=20)(a, b, c).min
         for name, module in (("as written", slow), ("in vectors", vectors), ("found", kernel))}
for name, time in times.items():
    print(f"{name:10}  {time * 1e3:8.3f} ms  {2 * n ** 3 / time / 1e9:7.1f} GFLOP/s")
assert times["found"] < times["in vectors"] < times["as written"]

# --- 4. What the search saw ----------------------------------------------------------------------------------------------
# Times over the search with the best so far; and what the model expected, against what was measured.
best.plot().save(out / "17_tuning.svg")
print(f"\nthe search as a picture: {(out / '17_tuning.svg').relative_to(Path(__file__).parent)}")

# --- 5. The best in other programs --------------------------------------------------------------------------------------
# The file is one of autotvm's records: inside of the context the template is the schedule whose median time was the least.
name = f"{product.__module__}.product"
template = autotvm.template(name)(product)
with autotvm.apply_history_best(str(records)), tedsl.Target("llvm"):
    s, args = template()
assert not best.best.choices or str(s.journal) == str(best.schedule.journal)  # without choices: the default schedule
print(f"the schedule that the records hold:\n{s.journal}")
