"""What NVIDIA's assembler says of kernels, where it is installed: whether their registers suffice.

    PassContext(config={"tedsl.check_registers": True})      a build asks it, which takes 30 to 170 ms
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from tedsl.errors import LoweringError
from tedsl.target.target import Target

_KERNEL = re.compile(r"Compiling entry function '(\w+)'")
_SPILLED = re.compile(r"(\d+) bytes spill stores")
_USED = re.compile(r"Used (\d+) registers")


def check_registers(ptx: str, target: Target) -> None:
    """Raises LoweringError if the assembler refuses `ptx`, or if a thread of a kernel has too few registers for what it keeps
    and goes through memory instead. Where there is no assembler, or none for the device, nothing is checked.
    """
    assembler = _assembler()
    if not assembler or target.cpu not in _known_to(assembler):
        return
    done = subprocess.run([assembler, "-v", f"-arch={target.cpu}", "-", "-o", "/dev/null"], input=ptx, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise LoweringError(f"NVIDIA's assembler refuses these kernels: {done.stderr.strip()}",
                            hint="if it speaks of resources, let a block have fewer threads or less memory")
    for part in _KERNEL.split(done.stderr)[1:][::2]:
        said = done.stderr.partition(f"'{part}'")[2]
        spilled, used = _SPILLED.search(said), _USED.search(said)
        if spilled and used and int(spilled[1]):
            raise LoweringError(f"a thread of {part} has {used[1]} registers and keeps {spilled[1]} bytes more in memory",
                                hint="split the tiles of local and wmma stages by smaller factors, unroll less, or bind fewer "
                                     "threads to a block: it has 65536 registers for all of them")


@functools.cache
def _assembler() -> str:
    """The path of the assembler: of NVIDIA's package, or on PATH; "" for none."""
    packaged = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cuda_nvcc" / "bin" / "ptxas"
    return str(packaged) if packaged.exists() else shutil.which("ptxas") or ""


@functools.cache
def _known_to(assembler: str) -> frozenset[str]:
    """The devices that an assembler knows, by its help."""
    text = subprocess.run([assembler, "--help"], capture_output=True, text=True, check=False).stdout
    return frozenset(re.findall(r"'(sm_\d+)'", text))
