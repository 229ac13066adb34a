"""Targets of `build`: what a machine can do, which target is current, and what the host is."""

from tedsl.errors import entries
from tedsl.target.current import as_target, host_target
from tedsl.target.kinds import TargetKind, register_kind
from tedsl.target.machine import Cache, Machine
from tedsl.target.named import create, cuda, rocm
from tedsl.target.target import Target

__all__ = ["Cache", "Machine", "Target", "TargetKind", "as_target", "create", "cuda", "host_target", "register_kind", "rocm"]

entries(globals(), instead={"build_config": "tedsl.transform.build_config"})
