"""Kernels interpreted by oclgrind, which reports races, accesses outside of arrays, reads of memory that nobody wrote, and
barriers that not all threads reach: there is nothing to report.

As a program: runs the schedules on the device that oclgrind simulates, and prints the name of each.
"""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest

import tedsl
from tests.devices.opencl_device import DRIVER
from tests.devices.test_opencl_programs import floats, on_device, reversed_by_blocks
from tests.passes.device.test_share_memory import chain
from tests.passes.threads.programs import convolution, row_sums, softmax, tiled_matmul, vector_add

PLACES = [f"{folder}/oclgrind/liboclgrind-rt-icd.so" for folder in ("/usr/lib", "/usr/lib64", "/usr/local/lib")]
SIMULATOR = next((place for place in PLACES if os.path.exists(place)), "")
NEEDED = {"oclgrind (Debian: apt-get install oclgrind)": SIMULATOR, "pyopencl": find_spec("pyopencl")}
needs_oclgrind = pytest.mark.skipif(not all(NEEDED.values()),
                                    reason=f"not installed: {', '.join(name for name, there in NEEDED.items() if not there)}")
PROGRAMS = {
    "vector add": (lambda: vector_add(21), [(21,), (21,)], (21,)),
    "tiled product": (lambda: tiled_matmul(17, 5, 9), [(17, 9), (9, 5)], (17, 5)),
    "convolution": (lambda: convolution(1, 2, 4, 4), [(1, 1, 2, 4), (3, 3, 2, 4)], (1, 1, 4, 4)),
    "row sums": (lambda: row_sums(5, 13), [(5, 13)], (5,)),
    "row sums by 12 threads": (lambda: row_sums(5, 30, threads=12, rows=2), [(5, 30)], (5,)),
    "softmax": (lambda: softmax(3, 13), [(3, 13)], (3, 13)),
    "shared memory": (lambda: reversed_by_blocks("shared"), [(64,)], (64,)),
    "memory of a warp": (lambda: reversed_by_blocks("warp"), [(64,)], (64,)),
    "memory of two dtypes": (lambda: chain(dtypes=("float32", "float64"), each=3)[:2], [(6, 256)], (6, 256), "float64"),
}
# Its check for memory that nobody wrote does not know an instruction of its own compiler, which divisions become.
WITH_DIVISIONS = ("convolution",)


def under_oclgrind(names, folder, *, initialised, broken=""):
    """What oclgrind says of the programs. broken: text that is taken out of their kernels."""
    (folder / "oclgrind.icd").write_text(SIMULATOR + "\n")
    environment = {**os.environ, "OCL_ICD_VENDORS": str(folder), "OCLGRIND_DATA_RACES": "1",
                   "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if initialised:
        environment["OCLGRIND_UNINITIALIZED"] = "1"
    run = subprocess.run([sys.executable, "-m", "tests.devices.test_oclgrind", broken, *names], capture_output=True, text=True,
                         env=environment, check=False)
    assert run.stdout.split("\n") == ["Oclgrind Simulator", *names, ""], run.stdout + run.stderr
    return run.stderr


def run_programs(names, broken):
    if broken:
        load = DRIVER.load
        DRIVER.load = lambda number, code: load(number, replace(code, text=code.text.replace(broken, "")))
    print(tedsl.device("opencl", 0).device_name)
    for name in names:
        program, inputs, *result = PROGRAMS[name]
        on_device(tedsl.build(*program(), "opencl"), [floats(*of, seed=k) for k, of in enumerate(inputs)], *result)
        print(name, flush=True)


@needs_oclgrind
def test_nothing_is_reported(tmp_path):
    assert under_oclgrind([name for name in PROGRAMS if name not in WITH_DIVISIONS], tmp_path, initialised=True) == ""
    assert under_oclgrind(WITH_DIVISIONS, tmp_path, initialised=False) == ""


@needs_oclgrind
@pytest.mark.parametrize("name", ["shared memory", "memory of two dtypes"])
def test_a_barrier_less_is_reported(name, tmp_path):
    said = under_oclgrind([name], tmp_path, initialised=False, broken="barrier(CLK_LOCAL_MEM_FENCE);")
    assert "Read-write data race" in said or "Write-read data race" in said, said


if __name__ == "__main__":
    run_programs(sys.argv[2:], sys.argv[1])
