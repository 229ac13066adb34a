"""Entry points: what installed packages of others add to tedsl, looked up by name and loaded when first asked for.

A package declares them in its pyproject.toml:

    [project.entry-points."tedsl.targets"]
    mychip = "mychip.target:KIND"               # a tedsl.target.TargetKind
    [project.entry-points."tedsl.intrinsics"]
    mychip_dot = "mychip.intrinsics:dot"        # a function that returns a te.TensorIntrin
    [project.entry-points."tedsl.modules"]
    loadbinary_mychip = "mychip.modules:load"   # a function that makes a runtime.RuntimeModule of its bytes
    [project.entry-points."tedsl.codegens"]
    mycompiler = "mychip.graphs:codegen"        # a function of graphs that makes a runtime.RuntimeModule
    [project.entry-points."tedsl.devices"]
    mychip = "mychip.driver:DRIVER"             # a tedsl.runtime.devices.api.DeviceAPI
"""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentError

# The groups.
TARGETS, INTRINSICS, MODULES, DEVICES = "tedsl.targets", "tedsl.intrinsics", "tedsl.modules", "tedsl.devices"
CODEGENS = "tedsl.codegens"


def plugin_names(group: str) -> list[str]:
    """The names that installed packages declare in `group`, sorted."""
    return sorted({entry.name for entry in _entries(group)})


def _entries(group: str) -> Any:
    from importlib import metadata  # takes as long as the whole front wing, and few programs ask

    return metadata.entry_points(group=group)


def load_plugin(group: str, name: str) -> Any:
    """The object that a package declares as `name` in `group`; None if no package does.

    Raises ArgumentError if two packages declare it, or if the package's module cannot be imported.
    """
    entries = {entry.value: entry for entry in _entries(group) if entry.name == name}
    if not entries:
        return None
    if len(entries) > 1:
        raise ArgumentError(f"{name!r} is declared by several packages for {group}: {', '.join(sorted(entries))}",
                            hint="uninstall all of them but one")
    (entry,) = entries.values()
    try:
        return entry.load()
    except Exception as error:
        raise ArgumentError(f"{name!r} of {group} cannot be loaded from {entry.value}: {error!r}",
                            hint="the package that declares it is broken; python -c 'import "
                                 f"{entry.value.partition(':')[0]}' shows where") from error
