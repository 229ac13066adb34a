"""Names of values in texts: identifiers, each once."""

from __future__ import annotations

import keyword
import re


def unique_name(hint: str, taken: set[str]) -> str:
    """An identifier like `hint` that is not in `taken`, to which it is added."""
    base = re.sub(r"\W", "_", hint, flags=re.ASCII) or "t"
    base = f"_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
