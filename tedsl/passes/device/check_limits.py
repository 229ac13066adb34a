"""The limits of a device, checked where a kernel's numbers are constants: threads of a block, and bytes of shared memory.

Numbers that only a call knows are checked by the driver when it launches.
"""

from __future__ import annotations

import math
import warnings

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.func import PrimFunc
from tedsl.ir.source_line import user_level
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.device.share_memory import SCOPES, common_bytes, offset_of, scope_text
from tedsl.passes.facts.memory_uses import bytes_of
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.threads.gather_threads import Kernel, kernel_of
from tedsl.target.target import Target

# By the kind of target, where the notation does not say: most threads along x, y, z of a block, and bytes of shared memory.
_ALONG = {"cuda": (1024, 1024, 64), "nvptx": (1024, 1024, 64)}
_SHARED = {"cuda": 48 * 1024, "nvptx": 48 * 1024}
_SHARED_OPTIONS = ("max_shared_memory_per_block", "shared_memory_per_block")


def check_limits(kernel: PrimFunc, target: Target) -> PrimFunc:
    """Returns `kernel` unchanged; raises LoweringError if it has more threads or more shared memory than a block of `target`
    can have. Of kinds whose devices differ, such as opencl, more threads than usual are a warning.
    """
    launch = kernel_of(kernel.body)
    _check_threads(kernel.name, launch, target)
    _check_shared(kernel, target)
    return kernel


def _check_threads(name: str, launch: Kernel, target: Target) -> None:
    counts = {thread.axis.thread_tag: build.as_int(thread.count) for thread in launch.axes if not thread.is_block}
    known = {tag: count for tag, count in counts.items() if count is not None}
    along = dict(zip(("threadIdx.x", "threadIdx.y", "threadIdx.z"), _ALONG.get(target.kind.name, ())))
    for tag, count in known.items():
        most = along.get(tag, count)
        if count > most:
            raise LoweringError(f"{name} has {count} threads of {tag} in a block, and {target.kind.name} at most {most}",
                                hint=f"split the loop that is bound to {tag} by {most} or less, and bind the inner loop",
                                about=tag)
    total = math.prod(known.values())
    if total > target.max_num_threads:
        written = " x ".join(f"{count} of {tag}" for tag, count in known.items())
        problem = f"{name} has {total} threads in a block ({written}), and {target.kind.name} at most {target.max_num_threads}"
        if not along and "max_num_threads" not in target.attrs:
            warnings.warn(f"{problem} where nothing is said: devices that have no more refuse the launch; -max_num_threads="
                          f"{total} says that they have", UserWarning, stacklevel=user_level())
            return
        raise LoweringError(problem,
                            hint="split the bound loops by smaller factors, or bind one of them to blockIdx; -max_num_threads "
                                 "of the target says what the device can do", about=max(known, key=lambda tag: known[tag]))


def _check_shared(kernel: PrimFunc, target: Target) -> None:
    said = next((target.attrs[option] for option in _SHARED_OPTIONS if option in target.attrs), None)
    most = int(said) if said is not None else _SHARED.get(target.kind.name)
    nodes = [node for node in post_order(kernel.body)
             if isinstance(node, Allocate) and scope_of(node.buffer_var.type_annotation) == "shared"]
    sizes = {node.buffer_var.name: bytes_of(node) or 0 for node in nodes}
    together = sum(common_bytes(node for node in nodes if scope_text(node) == scope) for scope in SCOPES)
    total = together + sum(bytes_of(node) or 0 for node in nodes if offset_of(node) is None)
    if most is None or total <= most:
        return
    largest = max(sizes, key=lambda name: sizes[name])
    listed = ", ".join(f"{name} {size}" for name, size in sorted(sizes.items(), key=lambda item: -item[1]))
    raise LoweringError(f"{kernel.name} needs {total} bytes of shared memory in a block ({listed}), and {target.kind.name} "
                        f"has {most}",
                        hint=f"compute {largest} at an inner loop, s[{largest}].compute_at(...), or split by smaller factors, "
                             f'so that a block holds less of it; -{_SHARED_OPTIONS[0]}=BYTES says that the device has more',
                        about=largest)
