"""The kinds of targets in one table: the options of each, and the backend that generates its code.

Kinds of others come from `register_kind`, or from packages that declare an entry point in the group `tedsl.targets`.
"""

from __future__ import annotations

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.plugins import TARGETS, load_plugin, plugin_names
from tedsl.record import record
from tedsl.target.known_tags import KNOWN


@record
class TargetKind:
    """A kind of target.

    keys: the names by which schedules are chosen ("cpu", "gpu"); options: those it takes besides the common ones.
    backend: "module:class" of a `tedsl.codegen.backend.Backend`, imported on first use; "" for a kind without a backend.
    device_backend: of a device beside the processor the same of a `tedsl.codegen.device.DeviceBackend`. device: the kind of the
    devices that run the code; "" if they are called as the kind of target.
    portable: a target that names no processor means any, not this machine. triple, processor: what LLVM calls the machine,
    if nothing else is said.
    """

    name: str
    keys: tuple[str, ...]
    options: tuple[str, ...] = ()
    max_num_threads: int | None = None  # in a block of threads, and side by side in a warp: of devices, if nothing else is said
    thread_warp_size: int | None = None
    backend: str = ""
    portable: bool = False
    triple: str = ""
    processor: str = ""
    device_backend: str = ""
    device: str = ""

    @property
    def device_kind(self) -> str:
        """The kind of the devices that run the code."""
        return self.device or self.name

    def __str__(self) -> str:
        return self.name


COMMON = ("keys", "device", "model", "libs", "tag", "host", "num-cores", "from_device", "runtime", "link-params", "system-lib")
# Options that are numbers from 1 on.
COUNTS = ("num-cores", "vector-width", "max_num_threads", "thread_warp_size", "max_threads_per_block")
_CPU = ("mcpu", "mattr", "mtriple", "mfloat-abi", "mabi", "opt-level", "fast-math", "executor", "interface-api", "unpacked-api")
_GPU = ("arch", "mcpu", "max_num_threads", "thread_warp_size", "max_threads_per_block", "shared_memory_per_block",
        "registers_per_block", "max_shared_memory_per_block", "libs")
_NVPTX = "nvptx64-nvidia-cuda"
_PTX = "tedsl.codegen.nvptx.backend:PTXBackend"
KINDS = {k.name: k for k in (
    TargetKind("llvm", ("cpu",), (*_CPU, "vector-width"), backend="tedsl.codegen.llvm.backend:LLVMBackend"),
    TargetKind("c", ("cpu",), ("mcpu", "march", "mattr", "mtriple", *_CPU[3:], "cc", "math", "parallel", "vectors"),
               backend="tedsl.codegen.c.backend:CBackend", portable=True),
    TargetKind("cuda", ("cuda", "gpu"), (*_GPU, "math"), 1024, 32, triple=_NVPTX, processor="sm_70",
               device_backend=_PTX),
    TargetKind("nvptx", ("cuda", "gpu"), (*_GPU, "math", "mtriple"), 1024, 32, triple=_NVPTX, processor="sm_70",
               device_backend=_PTX, device="cuda"),
    TargetKind("rocm", ("rocm", "gpu"), (*_GPU, "mtriple", "mattr"), 256, 64, triple="amdgcn-amd-amdhsa", processor="gfx906",
               device_backend="tedsl.codegen.nvptx.amdgpu:AMDGPUBackend"),
    TargetKind("opencl", ("opencl", "gpu"), (*_GPU, "fma", "math", "vectors"), 256, 1,
               device_backend="tedsl.codegen.c.opencl:OpenCLBackend"),
    TargetKind("spirv", ("opencl", "gpu"), _GPU, 256, 1, triple="spirv64v1.2-unknown-unknown",
               device_backend="tedsl.codegen.nvptx.spirv:SPIRVBackend"),
    TargetKind("vulkan", ("vulkan", "gpu"), _GPU, 256, 1),
    TargetKind("metal", ("metal", "gpu"), _GPU, 256, 16),
    TargetKind("webgpu", ("webgpu", "gpu"), _GPU, 256, 1),
    TargetKind("hexagon", ("hexagon",), ("mcpu", "mattr", "mtriple", "llvm-options")),
    TargetKind("ext_dev", ("ext_dev",), ()),
)}
_SAME = {"stackvm": "llvm"}  # TVM's interpreter on the processor: the code of the machine does what it did
_ADDED: dict[str, TargetKind] = {}  # by register_kind and by packages
TAGS = dict(KNOWN)  # names for targets, also those of register_tag in tags.py: what each stands for


def register_kind(kind: TargetKind) -> None:
    """Registers `kind`: `Target(kind.name)` and `build(..., target=kind.name)` use its backend from now on.

    Raises ArgumentError if the name is taken, ArgumentTypeError for anything but a TargetKind that is filled in.
    """
    _check_kind(kind)
    if kind.name in KINDS or _ADDED.get(kind.name, kind) != kind:
        raise ArgumentError(f"register_kind: there is a target kind {kind.name!r} already", hint="choose another name")
    _ADDED[kind.name] = kind


def find_kind(name: str) -> TargetKind | None:
    """Returns the kind called `name`: ours, a registered one, or one that an installed package declares; None if there is none.
    """
    kind = KINDS.get(_SAME.get(name, name)) or _ADDED.get(name)
    if kind is None and name in plugin_names(TARGETS):
        kind = load_plugin(TARGETS, name)
        _check_kind(kind)
        _ADDED[name] = kind
    return kind


def kind_names() -> list[str]:
    """Returns the names of all kinds, ours first."""
    return list(dict.fromkeys([*KINDS, *_ADDED, *plugin_names(TARGETS)]))


def names_that_build() -> list[str]:
    """Returns the names of the kinds that have a backend; for the others schedules are lowered but no code is generated."""
    return [name for name in kind_names() if (kind := find_kind(name)) is not None and (kind.backend or kind.device_backend)]


def _check_kind(kind: object) -> None:
    """Refuses an object that is not a TargetKind, and a kind whose backend is not of the form "module:class"."""
    form = 'write TargetKind("mychip", keys=("cpu",), options=("mcpu",), backend="mychip.codegen:Backend")'
    if not isinstance(kind, TargetKind):
        raise ArgumentTypeError(f"a target kind is a tedsl.target.TargetKind, not {kind!r}", hint=form)
    if not isinstance(kind.name, str) or not kind.name.isidentifier():
        raise ArgumentTypeError(f"the name of a target kind is an identifier, not {kind.name!r}", hint=form)
    if not isinstance(kind.keys, tuple) or not kind.keys or not isinstance(kind.options, tuple):
        raise ArgumentTypeError(f"target kind {kind.name!r}: keys are a tuple with at least one name, options a tuple; "
                                f"got {kind.keys!r} and {kind.options!r}", hint=form)
    for backend in (str(kind.backend), str(kind.device_backend)):
        module, colon, name = backend.partition(":")
        if backend and not (module and colon and name):
            raise ArgumentError(f"target kind {kind.name!r}: the backend is {backend!r}, not \"module:class\"", hint=form)
