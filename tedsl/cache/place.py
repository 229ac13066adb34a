"""Where the cache stands and how large it may be: TEDSL_CACHE_DIR and TEDSL_CACHE_SIZE."""

from __future__ import annotations

import os
import re
import sys
import warnings
from functools import lru_cache

from tedsl.ir.source_line import user_level

FOLDER, SIZE = "TEDSL_CACHE_DIR", "TEDSL_CACHE_SIZE"
OFF = "off"
DEFAULT_SIZE = 1 << 30
_SIZE = re.compile(r"([0-9]+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_warned: set[str] = set()


def cache_folder() -> str:
    """Returns the folder of the cache, which need not exist; "" where there is no cache."""
    said = os.environ.get(FOLDER, "").strip()
    if said.lower() == OFF:
        return ""
    return os.path.abspath(os.path.expanduser(said)) if said else _of_user()


def cache_limit() -> int:
    """Returns how many bytes the cache may hold. A text that says no size counts as none, after a warning."""
    return _bytes(os.environ.get(SIZE, "").strip())


@lru_cache(maxsize=8)
def _bytes(said: str) -> int:
    if not said:
        return DEFAULT_SIZE
    match = _SIZE.fullmatch(said)
    if match is None:
        warn_once(f"the environment variable {SIZE} is {said!r}, which is not a size such as 500M or 2G: the cache may hold 1G")
        return DEFAULT_SIZE
    return int(match[1]) << 10 * " kmgt".index(match[2].lower() or " ")


def _of_user() -> str:
    """The folder for caches of this user, as the platform has it; "" where the user has no folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        base = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    return os.path.join(base, "tedsl") if os.path.isabs(base) else ""


def warn_once(message: str) -> None:
    """Warns of `message`, the first time in this process."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=user_level())
