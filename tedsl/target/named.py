"""Functions that return targets, by TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.target.target import Target

Options = str | Sequence[str] | None
_RASPBERRY = "-mtriple=aarch64-linux-gnu -mattr=+neon -mcpu=cortex-a72"
# What the boards are that TVM knows by their names.
_BOARDS = {
    **dict.fromkeys(("pixel2", "mate10", "mate10pro", "p20", "p20pro"), "-mtriple=aarch64-linux-android -mattr=+neon"),
    "rasp3b": "-mtriple=armv7l-linux-gnueabihf -mattr=+neon", "rasp4b": "-mtriple=armv8l-linux-gnueabihf -mattr=+neon",
    "rasp4b64": _RASPBERRY, "rk3399": "-mtriple=aarch64-linux-gnu -mattr=+neon",
    "pynq": "-mtriple=armv7a-linux-eabi -mattr=+neon", "ultra96": "-mtriple=aarch64-linux-gnu -mattr=+neon",
    "sifive-u54": "-mtriple=riscv64-unknown-linux-gnu -mcpu=sifive-u54 -mabi=lp64d",
    "sifive-u74": "-mtriple=riscv64-unknown-linux-gnu -mcpu=sifive-u74 -mabi=lp64d",
    "sifive-e31": "-mtriple=riscv32-unknown-linux-gnu -mcpu=sifive-e31 -mabi=ilp32",
    "sifive-e76": "-mtriple=riscv32-unknown-linux-gnu -mcpu=sifive-e76 -mabi=ilp32",
}


def cuda(model: str = "unknown", arch: str | None = None, options: Options = None) -> Target:
    """Returns the target "cuda" for the processor `model` of architecture `arch` ("sm_80"), with further options as in a
    notation.
    """
    return _named("cuda", model, options, f"-arch={arch}" if arch is not None else "")


def rocm(model: str = "unknown", options: Options = None) -> Target:
    """Returns the target "rocm" for the processor `model`, with further options as in a notation."""
    return _named("rocm", model, options)


def mali(model: str = "unknown", options: Options = None) -> Target:
    """Returns the target "opencl" for a Mali GPU."""
    return _named("opencl", model, options, "-device=mali")


def bifrost(model: str = "unknown", options: Options = None) -> Target:
    """Returns the target "opencl" for a Mali GPU of the architecture Bifrost."""
    return _named("opencl", model, options, "-device=bifrost")


def intel_graphics(model: str = "unknown", options: Options = None) -> Target:
    """Returns the target "opencl" for a GPU of Intel, whose warps have 16 threads."""
    return _named("opencl", model, options, "-device=intel_graphics -thread_warp_size=16")


def arm_cpu(model: str = "unknown", options: Options = None) -> Target:
    """Returns the target "llvm" for the Arm processor of a board: "rasp3b", "rasp4b64", "rk3399", ...; others by `options`."""
    return _named("llvm", model, options, f"-device=arm_cpu {_BOARDS.get(model, '')}")


def rasp(options: Options = None) -> Target:
    """Returns the target of a Raspberry Pi 3."""
    return arm_cpu("rasp3b", options)


def riscv_cpu(model: str = "sifive-u54", options: Options = None) -> Target:
    """Returns the target "llvm" for a RISC-V processor: "sifive-u54", "sifive-u74", "sifive-e31", "sifive-e76"; others by
    `options`.
    """
    return _named("llvm", model, options, f"-device=riscv_cpu {_BOARDS.get(model, '')}")


def vta(model: str = "unknown", options: Options = None) -> Target:
    """Returns the target "ext_dev" for VTA, for which schedules are written and lowered."""
    return _named("ext_dev", model, options, "-keys=vta,cpu -device=vta")


def hexagon(cpu_ver: str = "v66", **kwargs: Any) -> Target:
    """Returns the target "hexagon" for a processor of version `cpu_ver`, for which schedules are lowered. kwargs: options of
    code, accepted: none is made.
    """
    return Target(f"hexagon -mcpu=hexagon{cpu_ver}")


def _named(kind: str, model: str, options: Options, fixed: str = "") -> Target:
    """The target of a notation whose later options take the place of the same ones before."""
    more = options.split() if isinstance(options, str) else list(options or ())
    named = [] if model == "unknown" else [f"-model={model}"]
    return Target(" ".join([kind, *fixed.split(), *named, *more]))


def create(target: Any) -> Target:
    """Returns a target from a str, a dict or a Target: the older name of `Target(target)`."""
    return Target(target)


def current_target(allow_none: bool = True) -> Target | None:
    """Returns the target of the innermost `with` block, as `Target.current`: its name in TVM 0.6."""
    return Target.current(allow_none)
