"""What a machine can do: the targets of `build`, the current one, the host."""

from tedsl.target.current import as_target, host_target
from tedsl.target.kinds import TargetKind, register_kind
from tedsl.target.named import create, cuda, rocm
from tedsl.target.target import Target

__all__ = ["Target", "TargetKind", "as_target", "create", "cuda", "host_target", "register_kind", "rocm"]
