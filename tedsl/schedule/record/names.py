"""Python names for the objects in journals, since users may give tensors, loops and variables any name."""

from __future__ import annotations

import itertools
import keyword
import re
import unicodedata
from collections.abc import Collection

RESERVED = frozenset(("s", "te"))  # what a journal is written over


def is_plain(name: str) -> bool:
    """Whether `name` is a Python identifier that a journal may use and that Python does not normalize, as it does "ﬁ" to
    "fi".
    """
    return name.isidentifier() and not keyword.iskeyword(name) and name not in RESERVED \
        and unicodedata.normalize("NFKC", name) == name


def free_name(wish: str, *taken: Collection[str]) -> str:
    """A Python identifier derived from `wish` that is in none of `taken`."""
    stem = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wish))
    if not stem.isidentifier() or keyword.iskeyword(stem):
        stem = f"_{stem}"
    if stem not in RESERVED and not is_plain(stem):
        stem = "".join(c if c.isascii() else "_" for c in stem)
    tries = (f"{stem}_{n}" if n else stem for n in itertools.count())
    return next(name for name in tries if name not in RESERVED and not any(name in names for names in taken))
