"""gdb sees kernels: their names, their stages and the lines of their loops."""

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tedsl
from tedsl import te
from tedsl.codegen.llvm.debug import gdb
from tedsl.passes.context import PassContext

pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("ld", "cc"))), reason="needs a linker")


def build(name):
    A = te.placeholder((100,), name="A")
    twice = te.compute((100,), lambda i: A[i] * 2 + 1, name="twice")
    with PassContext(config={"tedsl.gdb": True}):
        return tedsl.build(te.create_schedule(twice.op), [A, twice], name=name)


def test_objects_are_listed_while_their_modules_live():
    before = len(gdb.listed())
    modules = [build(f"listed{k}") for k in range(3)]
    assert len(gdb.listed()) == before + 3 and b"listed2.kernel" in gdb.listed()[0]
    del modules[1]
    gc.collect()
    images = gdb.listed()
    assert len(images) == before + 2 and not any(b"listed1.kernel" in image for image in images)
    del modules
    gc.collect()
    assert len(gdb.listed()) == before


PROGRAM = """
import numpy as np, tedsl
from tests.codegen.debug.test_gdb import build
f = build("seen")
x = np.zeros(100, "float32")
f(x, np.zeros(100, "float32"))
"""


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_gdb_stops_in_a_kernel_and_shows_its_line(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    root = Path(tedsl.__file__).parent.parent
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", f"set environment PYTHONPATH {root}",
         "-ex", "break seen.kernel", "-ex", "run", "-ex", "backtrace 2", "-ex", "info source", "--args", sys.executable,
         str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120)
    if "ptrace" in done.stderr or "Cannot create process" in done.stderr:
        pytest.skip("this system does not let gdb trace a process")
    assert ("seen.kernel" in done.stdout and "for i in range(100):" in done.stdout) or "twice[" in done.stdout, \
        done.stdout[-3000:] + done.stderr[-2000:]
    assert "tedsl-" in done.stdout
