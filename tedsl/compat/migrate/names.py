"""What a dotted name of TVM is in tedsl, and why some are not there."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tedsl.absent import StandIn, refusal
from tedsl.compat.v06 import MODULES, NAMES
from tedsl.errors import AbsentModuleError, TedslError
from tedsl.record import record

# Names of single things that have others, or that stand elsewhere; the longest that fits is taken.
RENAMED = {
    "tvm.context": "tedsl.device", "tvm.gpu": "tedsl.cuda", "tvm.nd.context": "tedsl.nd.device", "tvm.nd.gpu": "tedsl.nd.cuda",
    "tvm.target.create": "tedsl.target.Target", "tvm.module": "tedsl.runtime", "tvm.module.load": "tedsl.runtime.load_module",
    "tvm.tir.ir_pass": "tedsl.compat.ir_pass", "tvm.contrib.util": "tedsl.contrib.utils",
    "tvm.topi.util": "tedsl.topi.utils", "topi.util": "topi.utils",
    "tvm.expr": "tedsl.tir", "tvm.expr.UIntImm": "tedsl.compat.expr.UIntImm",
    "tvm.arith": "tedsl.arith", "tvm.arith.DetectLinearEquation": "tedsl.arith.detect_linear_equation",
    "tvm.arith.DetectClipBound": "tedsl.arith.detect_clip_bound", "tvm.arith.DeduceBound": "tedsl.arith.deduce_bound",
    "tvm.arith.intset_interval": "tedsl.arith.IntervalSet", "tvm.arith.intset_vector": "tedsl.arith.IntSet.vector",
    "tvm.arith.intset_single_point": "tedsl.arith.IntSet.single_point",
    "tvm.build_module.build": "tedsl.build", "tvm.build_module.lower": "tedsl.lower",
    "tvm.container": "tedsl.ir.container", "tvm.container.LoweredFunc": "tedsl.compat.container.LoweredFunc",
    "tvm.make": "tedsl.tir", "tvm.stmt": "tedsl.tir",
    **{f"tvm.make.{name}": f"tedsl.compat.make.{name}"
       for name in ("For", "Call", "node", "static_cast", "range_by_min_extent")},
    **{f"tvm.{home}.{name}": f"tedsl.compat.make.{name}" for home in ("make", "stmt")
       for name in ("Block", "Provide", "Realize", "Prefetch", "ProducerConsumer", "Free")},
    **{f"tvm.expr.Call.{kind}": f"tedsl.compat.make.Call.{kind}"
       for kind in ("Extern", "ExternCPlusPlus", "PureExtern", "Halide", "Intrinsic", "PureIntrinsic")},
    **{f"tvm.stmt.For.{kind}": f"tedsl.tir.ForKind.{kind.upper()}"
       for kind in ("Serial", "Parallel", "Vectorized", "Unrolled")},
}
# What the root has under the name that programs of TVM 0.6 use.
_AT_ROOT = ("build", "build_config", "cpu", "cuda", "get_global_func", "IRModule", "lower", "metal", "opencl", "PassContext",
            "register_func", "rocm", "Target", "TVMError", "vulkan")
_PACKAGES = ("tvm", "topi")
_UNLOADED: set[str] = set()  # modules that their packages do not load, which only a look at them imported


@record
class Note:
    """What a reader of the program has to look at: the line, the name, and the reason."""

    line: int
    name: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.name}: {self.reason}"


def is_of_tvm(name: str) -> bool:
    """Whether a dotted name belongs to TVM, or to the package topi that TVM 0.6 had beside it."""
    return name.partition(".")[0] in _PACKAGES


def name_here(name: str) -> str:
    """Returns what a dotted name of TVM is called in tedsl, whether or not it exists."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        head, rest = ".".join(parts[:count]), parts[count:]
        if head in RENAMED:
            return ".".join([RENAMED[head], *rest])
    if parts[0] == "topi":
        return name
    if len(parts) > 1 and parts[1] in ("api", "intrin"):
        parts[1:2] = []
    if len(parts) > 1:
        parts[:2] = _below_root(parts[1])
    return ".".join(["tedsl", *parts[1:]]) if parts[0] == "tvm" else ".".join(parts)


def _below_root(name: str) -> list[str]:
    """What `tvm.<name>` is called."""
    if name in MODULES and name != "topi":
        return MODULES[name].split(".")
    if name in NAMES and name not in _AT_ROOT:
        module, _, own = NAMES[name].partition(":")
        return [*module.split("."), own or name]
    return ["tedsl", name]


def why_not_there(name: str, imported: str | None = None) -> str | None:
    """Returns why a dotted name of tedsl cannot be used, or None if it can.

    imported: the module that the program imports, if not what is named: modules inside of it are there if it loads them.
    Names below an object that is no module are attributes of it, which are not looked at.
    """
    root, *rest = name.split(".")
    place: object = import_module(root)
    path = root
    for part in rest:
        if not isinstance(place, ModuleType):
            return None
        path = f"{path}.{part}"
        try:
            place = _inside(place, part, path, f"{imported or name}.".startswith(f"{path}."))
            if isinstance(place, StandIn) and path == name:
                raise refusal(path)
        except AbsentModuleError as error:
            reason = " ".join(str(error).split())
            return reason if imported else f"{reason}; to import it does no harm, to use it raises this error"
        except (TedslError, AttributeError, ImportError) as error:
            return " ".join(str(error).split())
    return None


def _inside(module: ModuleType, name: str, path: str, is_imported: bool) -> object:
    """Returns what a module has under a name; of modules inside it that it does not load, one that the program imports."""
    if path not in _UNLOADED:
        try:
            return getattr(module, name)
        except AttributeError:
            if not hasattr(module, "__path__"):
                raise
    try:
        found = import_module(path)
    except ModuleNotFoundError:
        return getattr(module, name)  # whose error names what is like it
    if not is_imported and not isinstance(found, StandIn):
        _UNLOADED.add(path)
        raise AttributeError(f"it is there after: import {path}")
    return found
