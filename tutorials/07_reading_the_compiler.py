"""Reading the compiler: every step from a formula to machine code can be looked at, and a schedule explains itself.

Run it: `python tutorials/07_reading_the_compiler.py`. It prints what it looks at, and writes a page for a browser.
"""

import textwrap
from pathlib import Path

import numpy as np

import tedsl
from tedsl import te

# --- 1. A program to look at ------------------------------------------------------------------------------------------
# The sum of each row of A + 1, for any number of rows. 100 columns, which no usual factor divides.
n = te.var("n")
A = te.placeholder((n, 100), name="A")
B = te.compute((n, 100), lambda i, j: A[i, j] + 1.0, name="B")
k = te.reduce_axis((0, 100), "k")
C = te.compute((n,), lambda i: te.sum(B[i, k], axis=k), name="C")

s = te.create_schedule(C.op)
print("A schedule that nobody touched: one nest of loops for each formula.\n")
print(s)
assert "for k in 0..100 (reduction)" in str(s)

# --- 2. Directives, and what the schedule remembers of them -----------------------------------------------------------
rows, row = s[C].split(C.op.axis[0], factor=8)  # eight rows at a time
blocks, lane = s[C].split(k, factor=16)         # and sixteen columns
s[C].parallel(rows)
s[B].compute_at(s[C], rows)                     # B for those eight rows only, right before they are summed
s[B].vectorize(s[B].op.axis[1])

print("\nThe journal: the directives, as Python, with the line that gave each of them.\n")
for directive in s.journal:
    print(" ", directive.origin)
assert len(s.journal) == 5
assert s.journal[0].text == "i_outer, i_inner = s[C].split(s[C].op.axis[0], factor=8)"
assert "07_reading_the_compiler.py:" in s.journal[0].origin

# --- 3. What does it mean? --------------------------------------------------------------------------------------------
# `explain` asks the compiler: how much of each stage exists at a time, and why the loops still ask questions.
explained = s.explain()
print("\nThe schedule explained:\n")
print(*(part for line in explained.splitlines() for part in textwrap.wrap(line, 110) or [""]), sep="\n")
assert "memory: 8 x 100 float32, 800 elements, 3200 bytes, for each iteration of i.outer of C" in explained
assert "guard: k.outer*16 + k.inner < 100: 16 does not divide 100" in explained
assert "guard: i.outer*8 + i.inner < n: 8 is not proved to divide n" in explained

# One of the guards is of our own making: 20 divides 100. Take back the directives up to that split, and write it again.
s.undo(4)
assert len(s.journal) == 1, "the axes of before are good again: rows, row and k"
blocks, lane = s[C].split(k, factor=20)
s[C].parallel(rows)
s[B].compute_at(s[C], rows)
s[B].vectorize(s[B].op.axis[1])
assert "does not divide" not in s.explain()
print("\nWith a factor that divides 100, that guard is gone:\n")
print("\n".join(line for line in s.explain().splitlines() if "guard" in line))

# --- 4. The loops -----------------------------------------------------------------------------------------------------
# `lower` gives what the passes make of it; simple_mode leaves loops whole, for reading. `show` prints it.
loops = tedsl.lower(s, [A, C], simple_mode=True)
print("\nThe loops:\n")
loops.show()
assert "in parallel(" in loops.readable() and "B[i, 0:100] = " in loops.readable()

# --- 5. Step by step --------------------------------------------------------------------------------------------------
# A trace has the loops after each directive and after each pass; a step prints what it changed.
trace = tedsl.trace(s, [A, C])
print("\nWhat compute_at did:\n")
step = next(step for step in trace.steps if "compute_at" in step.title)
print(step)
assert "+         B = allocate(" in str(step) and "-     B = allocate(" in str(step)

print("\nThe steps that changed something, and by how many lines:\n")
changed = {step.title: step.panel().changes for step in trace.steps if any(step.panel().changes)}
for title, (came, gone) in changed.items():
    print(f"  +{came:<3} -{gone:<3} {title[:90]}")
assert "vectorize_loops" in changed and "separate_tails" in changed

# `trace.show()` prints all of it, in colour on a terminal; `save` puts it side by side on one page for a browser.
page = Path(__file__).parent / "out" / "reading_the_compiler.html"
page.parent.mkdir(exist_ok=True)
trace.save(page)
print("\nAll steps, side by side: out/reading_the_compiler.html (press j and k to move)")
assert "<svg" in page.read_text(encoding="utf-8")

# --- 6. The same schedule elsewhere -----------------------------------------------------------------------------------
# A journal can be kept as JSON and applied to the same program another day: nothing in it is run as Python.
kept = s.journal.to_json()
again = te.create_schedule(C.op)
again.replay(te.Journal.from_json(kept))
assert str(again) == str(s) and str(tedsl.lower(again, [A, C])) == str(tedsl.lower(s, [A, C]))
print(f"\nThe journal as JSON has {len(kept)} characters, and makes the same loops again.")

# --- 7. Machine code --------------------------------------------------------------------------------------------------
kernel = tedsl.build(s, [A, C])
llvm = kernel.get_source("ll")  # "asm" is the assembly, "tir" the loops after the passes that know the machine
print("\nIn LLVM's language, the beginning of the first function:\n")
print("\n".join(line[:110] for line in llvm[llvm.index("define"):].splitlines()[:3]))
assert "define" in llvm

a = np.random.default_rng(0).random((37, 100), dtype="float32")  # 37 rows: 8 does not divide that either
c = np.empty(37, "float32")
kernel(a, c)
np.testing.assert_allclose(c, (a + 1).sum(axis=1), rtol=1e-5)
print("\nThe kernel agrees with numpy.")

# --- A mistake, on purpose --------------------------------------------------------------------------------------------
# What only shows when loops are made points back at the directive behind it.
s = te.create_schedule(C.op)
s[C].unroll(C.op.axis[0])  # as many copies as there are rows, and nobody knows how many
try:
    tedsl.build(s, [A, C])
except tedsl.TedslError as error:
    print("\nRefused, with the line that caused it:\n ", error)
    assert "from: s[C].unroll(s[C].op.axis[0])  (07_reading_the_compiler.py:" in str(error)
else:
    raise AssertionError("unrolling a loop of unknown length must be refused")
