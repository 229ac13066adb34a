"""Temporary folders, by the name of TVM's contrib.utils."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from types import TracebackType

from tedsl.errors import ArgumentError


class TempDirectory:
    """A folder that is removed with its files when this object is no longer referenced, or at the end of its `with` block."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool = False) -> None:
        """custom_path: a folder that is made here, or is there and empty. keep_for_debug: the folder is not removed."""
        if custom_path is None:
            self.temp_dir = tempfile.mkdtemp(prefix="tedsl_")
        else:
            os.makedirs(custom_path, exist_ok=True)
            if os.listdir(custom_path):
                raise ArgumentError(f"tempdir: the folder {custom_path!r} has files",
                                    hint="name one that is empty or not there")
            self.temp_dir = custom_path
        self._removal: weakref.finalize[[str, bool], TempDirectory] | None = None
        self.set_keep_for_debug(keep_for_debug)

    def set_keep_for_debug(self, set_to: bool = True) -> None:
        """Says whether the folder stays when this object goes."""
        if self._removal is not None:
            self._removal.detach()
        self._removal = None if set_to else weakref.finalize(self, shutil.rmtree, self.temp_dir, True)

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
        self.set_keep_for_debug()
        shutil.rmtree(self.temp_dir, ignore_errors=True)

    def __truediv__(self, name: str) -> str:
        return self.relpath(name)

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool = False) -> TempDirectory:
    """Returns a new empty folder; `TempDirectory` says what the parameters mean."""
    return TempDirectory(custom_path, keep_for_debug)


def is_source_path(path: str) -> bool:
    """Tells whether `path` is the path of a source file rather than the source: one line with an extension."""
    if not isinstance(path, str):
        raise ArgumentError(f"a path or a source is a str, not {path!r}")
    return "\n" not in path and path.rpartition(".")[2] in ("c", "cc", "cpp", "h", "ll")


def which(exec_name: str) -> str | None:
    """Returns the path of a program that the shell finds by its name, None if there is none."""
    return shutil.which(exec_name)
