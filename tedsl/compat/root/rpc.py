"""Of TVM's rpc the session that is this process: `remote = rpc.LocalSession()`. Boards and servers are not part of tedsl: see
`tedsl/absent.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tedsl.absent import stands_in_part
from tedsl.contrib.utils import TempDirectory
from tedsl.errors import ArgumentError
from tedsl.nd import Device, device
from tedsl.runtime import Module, get_global_func, load_module

__all__ = ["LocalSession"]


class LocalSession:
    """A session as programs for boards use it, on this machine: files that are uploaded are copied to a folder of its own.

        remote = rpc.LocalSession()
        remote.upload("lib.so")
        f = remote.load_module("lib.so")
        a = nd.array(x, remote.cpu())
    """

    def __init__(self) -> None:
        self._folder = TempDirectory()

    def upload(self, data: Any, target: str | None = None) -> None:
        """Copies a file, or bytes, to the session, where it is called `target` (by default as the file)."""
        if isinstance(data, (bytes, bytearray)):
            if not target:
                raise ArgumentError("upload: bytes need a name", hint='remote.upload(data, target="lib.so")')
            Path(self._folder.relpath(target)).write_bytes(data)
        else:
            shutil.copy(data, self._folder.relpath(target or Path(data).name))

    def download(self, path: str) -> bytearray:
        """Returns the content of a file of the session."""
        return bytearray(Path(self._folder.relpath(path)).read_bytes())

    def remove(self, path: str) -> None:
        """Removes a file of the session."""
        Path(self._folder.relpath(path)).unlink()

    def load_module(self, path: str) -> Module:
        """Returns the module in an uploaded file."""
        loaded: Module = load_module(self._folder.relpath(path))
        return loaded

    def get_function(self, name: str) -> Callable[..., Any]:
        """Returns the function that is registered as `name`."""
        found = get_global_func(name)
        assert found is not None  # it raises for an unknown name
        return found

    def device(self, dev_type: Any, dev_id: int = 0) -> Device:
        """Returns a device of this machine."""
        return device(dev_type, dev_id)

    context = device

    def cpu(self, dev_id: int = 0) -> Device:
        return device("cpu", dev_id)

    def cuda(self, dev_id: int = 0) -> Device:
        return device("cuda", dev_id)

    gpu = cuda

    def cl(self, dev_id: int = 0) -> Device:
        return device("opencl", dev_id)


stands_in_part(globals())
