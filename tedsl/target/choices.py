"""Options of targets that name one of a few ways."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import ArgumentError
from tedsl.target.target import Target


def chosen(target: Target, option: str, known: Sequence[str]) -> str:
    """Returns what `target` chooses for `option`, the first of the `known` choices by default. ArgumentError for any other."""
    choice = str(target.attrs.get(option, known[0]))
    if choice not in known:
        raise ArgumentError(f"the option {option} of target {target} is {choice!r}",
                            hint=f"choose {' or '.join(f'-{option}={name}' for name in known)}")
    return choice
