"""The processors that kernels are cross-built for, and how their programs are built and run here."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

RUNNER = Path(__file__).with_name("runner.c")
THREADS = Path(__file__).with_name("threads.c")


@dataclass(frozen=True)
class Machine:
    """A processor that qemu emulates. exact: it computes what x86-64 with fma computes, bit by bit."""

    name: str
    target: str
    system: str  # the triple of Debian's packages
    qemu: tuple[str, ...]
    exact: bool = True

    @property
    def compiler(self) -> str:
        return f"{self.system}-gcc"

    def missing(self) -> list[str]:
        """The programs that are not installed here."""
        return [program for program in (self.compiler, self.qemu[0]) if shutil.which(program) is None]

    def compile(self, source: Path, folder: Path) -> Path:
        """Compiles a program that calls functions of a library, whose header stands in `folder`."""
        out = folder / source.stem
        done = subprocess.run([self.compiler, "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-I", str(folder), str(source),
                               "-o", str(out), "-ldl"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return out

    def run(self, *command: str) -> str:
        """Runs a program of this machine, and returns what it printed."""
        done = subprocess.run([*self.qemu, "-L", f"/usr/{self.system}", *command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{self.name}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


ARM64, RISCV = "aarch64-linux-gnu", "riscv64-linux-gnu"
MACHINES = [
    Machine("NEON", f"llvm -mtriple={ARM64}", ARM64, ("qemu-aarch64",)),
    Machine("SVE", f"llvm -mtriple={ARM64} -mattr=+sve", ARM64, ("qemu-aarch64", "-cpu", "max")),
    Machine("SVE 256", f"llvm -mtriple={ARM64} -mattr=+sve -vector-width=256", ARM64,
            ("qemu-aarch64", "-cpu", "max,sve-max-vq=2")),
    Machine("RV64GC", f"llvm -mtriple={RISCV}", RISCV, ("qemu-riscv64",)),
    Machine("RVV 128", f"llvm -mtriple={RISCV} -mattr=+v", RISCV,
            ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0")),
    Machine("RVV 256", f"llvm -mtriple={RISCV} -mattr=+v,+zvl256b", RISCV,
            ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=256,vext_spec=v1.0")),
    Machine("ARMv7", "llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a15", "arm-linux-gnueabihf",
            ("qemu-arm", "-cpu", "cortex-a15"), exact=False),  # its vectors of float32 flush denormal numbers to zero
]
