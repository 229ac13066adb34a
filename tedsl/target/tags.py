"""Tags: names for targets, each with the dict of what it stands for. `Target(name)` is the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.target.kinds import TAGS
from tedsl.target.target import Target


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> Target:
    """Makes `name` a notation of the target that `config` describes, which is returned.

    Raises ArgumentError if the name has another meaning and override is False.
    """
    if not isinstance(name, str) or not name or " " in name or name.startswith(("-", "{")):
        raise ArgumentTypeError(f"register_tag: a tag is a name without spaces, not {name!r}", hint='for example "farm/board7"')
    if not isinstance(config, Mapping):
        raise ArgumentTypeError(f"register_tag: the configuration of {name!r} is {config!r}",
                                hint='a dict: {"kind": "llvm", "mcpu": "haswell"}')
    target = Target(dict(config))
    if name in Target.list_kinds() or (name in TAGS and Target(name) != target and not override):
        raise ArgumentError(f"register_tag: {name!r} stands for another target already", hint="pass override=True for a tag")
    TAGS[name] = dict(config)
    return target


def list_tags() -> dict[str, Target]:
    """Returns the target of each tag."""
    return {name: Target(name) for name in TAGS}
