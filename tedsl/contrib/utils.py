"""Temporary folders, by the name of TVM's contrib.utils."""

from __future__ import annotations

import os
import tempfile
from types import TracebackType

from tedsl.errors import ArgumentError


class TempDirectory:
    """A folder that is removed with its files when this object is no longer referenced, or at the end of its `with` block."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tedsl_")
        self.temp_dir = self._folder.name

    @property
    def path(self) -> str:
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """Returns the path of a file `name` in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """Returns the names of its files."""
        return sorted(os.listdir(self.temp_dir))

    def remove(self) -> None:
        """Removes the folder and its files now."""
        self._folder.cleanup()

    def __truediv__(self, name: str) -> str:
        return self.relpath(name)

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()


def tempdir() -> TempDirectory:
    """Returns a new empty folder."""
    return TempDirectory()


def is_source_path(text: str) -> bool:
    """Tells whether `text` is the path of a source file rather than the source: one line with an extension."""
    if not isinstance(text, str):
        raise ArgumentError(f"a path or a source is a str, not {text!r}")
    return "\n" not in text and text.rpartition(".")[2] in ("c", "cc", "cpp", "h", "ll")
