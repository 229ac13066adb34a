"""Files from the network by the names of TVM's contrib.download, for programs that fetch their images and weights."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path

from tedsl.errors import ArgumentError, entries

TEST_DATA_ROOT_PATH = Path(os.environ.get("TEST_DATA_ROOT_PATH", "~/.tedsl_test_data"))


def download(url: str, path: str | Path, overwrite: bool = False, size_compare: bool = False, retries: int = 3) -> None:
    """Writes what is at `url` to the file `path`, unless it is there.

    overwrite: it is written anew. size_compare: it is written anew where its size is not that of what is there. retries: how
    often it is tried. The file is whole, or not there.
    """
    target = Path(path).expanduser()
    if target.is_file() and not overwrite and not (size_compare and _size_at(url) != target.stat().st_size):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    begun = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        for left in reversed(range(max(1, retries))):
            try:
                urllib.request.urlretrieve(url, begun)
                break
            except (OSError, ValueError) as error:
                if not left or isinstance(error, ValueError):
                    raise ArgumentError(f"download: {url} cannot be fetched: {error}",
                                        hint=f"fetch it by hand, to {target}") from error
        begun.replace(target)
    finally:
        begun.unlink(missing_ok=True)


def _size_at(url: str) -> int:
    """The size that a server says a file has; -1 where it says none."""
    with urllib.request.urlopen(url) as answer:
        return int(answer.headers.get("Content-Length", -1))


def download_testdata(url: str, relpath: str, module: str | list[str] | None = None, overwrite: bool = False) -> str:
    """Returns the path of a file of `url` in the folder of the environment variable TEST_DATA_ROOT_PATH, or the user's.

    module: a folder in it, or several inside each other.
    """
    folders = [module] if isinstance(module, str) else module or []
    path = TEST_DATA_ROOT_PATH.expanduser().joinpath(*folders, relpath)
    download(url, path, overwrite, size_compare=False)
    return str(path)


entries(globals())
