"""What the cache on disk knows of a schedule: under which key the code is that it was compiled to."""

from __future__ import annotations

from typing import Any, Protocol

from tedsl.cache.store import SCHEDULE, current_store
from tedsl.codegen.backend import backend_for
from tedsl.passes.config import PassConfig
from tedsl.runtime.module import Module
from tedsl.target.target import Target

_CODE = "code"


class Recalls(Protocol):
    """A backend whose modules are kept on disk."""

    def recall(self, code_key: str, target: Target, config: PassConfig, *, quick: bool = False) -> Module | None:
        """Returns the module whose code is kept under `code_key`, from a build with these options; or None."""
        ...


def recall(key: str | None, target: Target, config: PassConfig, quick: bool) -> Module | None:
    """Returns the module that the schedule of this key was compiled to; None if the cache does not have it."""
    store = current_store()
    pieces = None if key is None or store is None or not target.kind.backend else store.load(key, SCHEDULE)
    if pieces is None or _CODE not in pieces:
        return None
    backend: Recalls | None = _recalling(backend_for(target))
    return None if backend is None else backend.recall(pieces[_CODE].decode(), target, config, quick=quick)


def _recalling(backend: Any) -> Recalls | None:
    """`backend`, if it keeps its modules on disk. Protocols tell too, in ten times the time."""
    return backend if hasattr(backend, "recall") else None


def remember(key: str, module: Module) -> None:
    """Notes in the cache that the schedule of this key was compiled to `module`, if the code of that is kept."""
    store = current_store()
    if store is not None and module.code_key:
        store.save(key, SCHEDULE, {_CODE: module.code_key.encode()})
