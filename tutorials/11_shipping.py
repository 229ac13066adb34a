"""Shipping kernels: files that other processes, C programs and other machines use without the compiler.

Run it: `python tutorials/11_shipping.py`. The C program is compiled where a C compiler is installed. docs/shipping.md is the
page behind it.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import timeit
import zipfile

import numpy as np

import tedsl
from tedsl import te

folder = pathlib.Path(tempfile.mkdtemp(prefix="shipping-"))
ROOT = pathlib.Path(tedsl.__file__).parent.parent

# --- 1. A kernel worth keeping ----------------------------------------------------------------------------------------
# Softmax of the rows of a matrix of any size, rows in parallel, and the sum of two arrays. One module holds both.
n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
k1, k2 = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "k")
largest = te.compute((n,), lambda i: te.max(A[i, k1], axis=k1), name="largest")
grown = te.compute((n, m), lambda i, j: te.exp(A[i, j] - largest[i]), name="grown")
total = te.compute((n,), lambda i: te.sum(grown[i, k2], axis=k2), name="total")
B = te.compute((n, m), lambda i, j: grown[i, j] / total[i], name="B")
s = te.create_schedule(B.op)
s[B].parallel(B.op.axis[0])
for stage in (largest, grown, total):
    s[stage].compute_at(s[B], B.op.axis[0])
x, y = te.placeholder((8,), name="x"), te.placeholder((8,), name="y")
z = te.compute((8,), lambda i: x[i] + y[i], name="z")
functions = [tedsl.lower(s, [A, B], name="softmax"), tedsl.lower(te.create_schedule(z.op), [x, y, z], name="add")]
module = tedsl.build(functions)

a = np.random.default_rng(0).standard_normal((200, 77)).astype("float32")
b = np.empty_like(a)
module(a, b)
np.testing.assert_allclose(b, np.exp(a) / np.exp(a).sum(1, keepdims=True), rtol=1e-5)

# --- 2. A file for another Python process -----------------------------------------------------------------------------
# A .tedsl file holds machine code, signatures and loops. No linker is needed, neither to write nor to load it.
kernel = folder / "kernels.tedsl"
module.export_library(kernel)
PROGRAM = """
import sys, time
begin = time.perf_counter()
import numpy as np
import tedsl
imported = time.perf_counter()
softmax = tedsl.runtime.load_module(sys.argv[1])["softmax"]
loaded = time.perf_counter()
a = np.load(sys.argv[2])
b = np.empty_like(a)
softmax(a, b)
np.save(sys.argv[3], b)
print(f"imports of numpy and tedsl {(imported - begin) * 1e3:.0f} ms, load_module {(loaded - imported) * 1e3:.1f} ms")
"""
np.save(folder / "a.npy", a)
environment = {**os.environ, "PYTHONPATH": str(ROOT)}
fresh = subprocess.run([sys.executable, "-c", PROGRAM, kernel, folder / "a.npy", folder / "b.npy"], env=environment, check=True,
                       capture_output=True, text=True)
assert (np.load(folder / "b.npy") == b).all(), "another process computes the same bits"
print(f"A fresh process loads kernels.tedsl and computes the same bits:\n    {fresh.stdout.strip()}")

# --- 3. Files are checked before anything in them is used -------------------------------------------------------------
damaged = bytearray(kernel.read_bytes())
damaged[1000] ^= 4
(folder / "damaged.tedsl").write_bytes(damaged)
try:
    tedsl.runtime.load_module(folder / "damaged.tedsl")
except tedsl.TedslError as error:
    print(f"\nOne bit changed:\n    {error}")
    assert "damaged" in str(error)

other = tedsl.build(s, [A, B], target="llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", name="softmax")
other.export_library(folder / "neoverse.tedsl")
if tedsl.target.Target("llvm").arch != "aarch64":
    try:
        tedsl.runtime.load_module(folder / "neoverse.tedsl")
    except tedsl.TedslError as error:
        print(f"\nBuilt for another processor:\n    {error}")

# --- 4. A library and a header for C ----------------------------------------------------------------------------------
# The library holds its thread pool, its temporary memory and its checks of arguments: it needs nothing of tedsl.
print("\nThe header declares, among others:")
module.export_library(folder / "kernels.h")
header = (folder / "kernels.h").read_text()
print("    " + next(line for line in header.splitlines() if line.startswith("int32_t kernels_softmax(")))

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "kernels.h"

int main(void) {
    float a[4] = {0, 1, 2, 3}, b[4];
    int64_t shape[2] = {2, 2}, wrong[2] = {4, 1};
    DLTensor in = {a, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0}, out = {b, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0};
    const DLTensor *args[2] = {&in, &out};
    char message[300];
    if (kernels_softmax(args, 2, message, sizeof message) != KERNELS_OK) return 1;
    printf("%.4f %.4f %.4f %.4f\n", (double)b[0], (double)b[1], (double)b[2], (double)b[3]);
    float x[8] = {0}, z[8];
    int64_t eight[1] = {8};
    DLTensor tx = {x, {1, 0}, 1, {2, 32, 1}, eight, NULL, 0}, tz = {z, {1, 0}, 1, {2, 32, 1}, eight, NULL, 0};
    const DLTensor *three[3] = {&tx, &tx, &tz};
    clock_t begin = clock();
    for (int i = 0; i < 1000000; i++) kernels_add(three, 3, message, sizeof message);
    printf("%.0f\n", (double)(clock() - begin) / CLOCKS_PER_SEC * 1e3);
    out.shape = wrong;
    if (kernels_softmax(args, 2, message, sizeof message) == KERNELS_OK) return 2;
    printf("%s\n", message);
    return 0;
}
"""
in_c = None
compiler, linker = shutil.which("cc"), shutil.which("ld") or shutil.which("cc")
if linker:
    module.export_library(folder / "libkernels.so")
if compiler:
    (folder / "main.c").write_text(MAIN)
    subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main", "-L.", "-lkernels", "-lm",
                    "-pthread", "-Wl,-rpath,."], cwd=folder, check=True)
    lines = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines[0] == "0.2689 0.7311 0.2689 0.7311"
    in_c = float(lines[1])
    print(f"\nA C program, compiled with -Wall -Wextra -Werror, prints\n    {lines[0]}\nand is told about a wrong shape:\n"
          f"    {lines[2][:100]}...")
else:
    print("\n(no C compiler here: the C program was not compiled)")

# --- 5. The same kernel as C source -----------------------------------------------------------------------------------
# target="c" writes C99 that a person can read: loops keep the names of the schedule.
source = tedsl.build(s, [A, B], target="c", name="softmax").get_source()
assert any("expf(" in line for line in source.splitlines())
print(f"\nThe module as C99 has {len(source.splitlines())} lines; one of them:")
print("    " + next(line.strip() for line in source.splitlines() if "expf(" in line)[:100])

# --- 6. A wheel for pip -----------------------------------------------------------------------------------------------
# A Python package of the kernels, for machines without tedsl: builtin functions, type stubs, docstrings, the checks.
in_wheel = None
if linker:
    module.export_library(folder / "kernels-1.0.whl")
    wheel = next(folder.glob("kernels-1.0-*.whl"))
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # as `pip install` does
    INSTALLED = """
import sys, timeit
sys.modules["tedsl"] = sys.modules["llvmlite"] = None  # importing them would fail
import numpy as np
import kernels
x, z = np.zeros(8, "float32"), np.zeros(8, "float32")
print(min(timeit.repeat(lambda: kernels.add(x, x, z), number=20_000, repeat=5)) / 20_000 * 1e9)
print(kernels.add.__doc__.splitlines()[0])
try:
    kernels.add(x, x, z[:4])
except ValueError as error:
    print(str(error).splitlines()[0])
"""
    lines = subprocess.run([sys.executable, "-c", INSTALLED], env={**os.environ, "PYTHONPATH": str(site)}, check=True,
                           capture_output=True, text=True).stdout.splitlines()
    in_wheel = float(lines[0])
    print(f"\n{wheel.name}, imported without tedsl:\n    {lines[1]}\n    {lines[2][:100]}")

# --- 7. What it costs -------------------------------------------------------------------------------------------------
for suffix in ("o", "ll", "s", "tar"):
    module.export_library(folder / f"kernels.{suffix}")
print("\nSizes in bytes:")
for path in sorted(folder.iterdir()):
    if path.name.startswith(("kernels", "libkernels")):
        print(f"    {path.name:52s} {path.stat().st_size:8d}")
small, result = np.zeros(8, "float32"), np.zeros(8, "float32")


def nanoseconds(function):
    """The time of one call of `function(x, y, z)` with eight elements."""
    return min(timeit.repeat(lambda: function(small, small, result), number=20_000, repeat=5)) / 20_000 * 1e9


print("\nA call of `add` with 8 elements, its arguments checked, in nanoseconds (an empty Python function "
      f"{nanoseconds(lambda a, b, c: None):.0f}):")
print(f"    the module that was built            {nanoseconds(module['add']):6.0f}")
print(f"    the module from kernels.tedsl        {nanoseconds(tedsl.runtime.load_module(kernel)['add']):6.0f}")
if linker:
    library = tedsl.runtime.load_module(folder / "libkernels.so")
    print(f"    libkernels.so, called from Python    {nanoseconds(library['add']):6.0f}")
if in_wheel is not None:
    print(f"    the wheel                            {in_wheel:6.0f}")
if in_c is not None:
    print(f"    libkernels.so, called from C         {in_c:6.0f}")
shutil.rmtree(folder)
