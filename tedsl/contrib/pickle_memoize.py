"""Results of functions remembered by their arguments, as tests of TVM do with references that take long.

    @memoize("tests.conv2d")
    def reference(size): ...                    computed once for each size

With `save_at_exit` they are written as `.pkl_memoize_py3/KEY.NAME.pkl` in the current folder when Python ends, and read from
there by the next run; without it nothing is read or written.
"""

from __future__ import annotations

import atexit
import functools
import pickle
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

from tedsl.errors import ArgumentTypeError, entries, type_in_words

P = ParamSpec("P")
R = TypeVar("R")


class Cache:
    """The results under one key. `cache` is a dict from arguments to results; `path` is the file."""

    cache_by_key: ClassVar[dict[str, Cache]] = {}

    def __init__(self, key: str, save_at_exit: bool) -> None:
        self.path = Path(f".pkl_memoize_py{sys.version_info[0]}") / key
        self.save_at_exit = save_at_exit
        self.dirty = False
        self.cache: dict[Hashable, Any] = _read(self.path) if save_at_exit else {}
        if save_at_exit:
            atexit.register(self.save)

    def save(self) -> None:
        """Writes the results, if there are new ones."""
        if self.dirty:
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_bytes(pickle.dumps(self.cache))
            self.dirty = False


def _read(path: Path) -> dict[Hashable, Any]:
    """The results in a file; none where there is no file, or one that is damaged."""
    try:
        found: dict[Hashable, Any] = pickle.loads(path.read_bytes())
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):
        return {}
    return found


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: results of a function are remembered under `key` and its name, by arguments and by what it holds of the scope
    around it. Both are hashable.
    """
    if not isinstance(key, str):
        raise ArgumentTypeError(f"memoize: the key is a str, not {type_in_words(key)}", hint='@memoize("tests.conv2d")')

    def remembering(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{key}.{function.__name__}.pkl"
        known = Cache.cache_by_key.setdefault(name, Cache(name, save_at_exit))
        cells: tuple[Any, ...] = getattr(function, "__closure__", None) or ()

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            held = tuple(cell.cell_contents for cell in cells)
            at = (len(held), *held, *args, *sorted(kwargs.items()))
            try:
                if at not in known.cache:
                    known.cache[at] = function(*args, **kwargs)
                    known.dirty = True
            except TypeError:
                odd = next((value for value in at if not _is_hashable(value)), None)
                if odd is None:
                    raise
                raise ArgumentTypeError(f"memoize: {function.__name__} gets, or holds, {type_in_words(odd)}, which has no hash",
                                        hint="pass shapes as tuples and dtypes as texts") from None
            remembered: R = known.cache[at]
            return remembered

        return call

    return remembering


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


entries(globals())
