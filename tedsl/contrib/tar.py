"""Archives by the names of TVM's contrib.tar. `mod.export_library("kernels.tar")` writes one without them."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

from tedsl.errors import ArgumentError, entries


def tar(output: str | Path, files: str | Path | Sequence[str | Path]) -> None:
    """Writes an archive of files and folders, each at its root under its own name."""
    listed = [files] if isinstance(files, (str, Path)) else files
    paths = [Path(file) for file in listed]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        raise ArgumentError(f"tar: two files have one name: {', '.join(names)}", hint="give them different names")
    with tarfile.open(output, "w:gz" if str(output).endswith("gz") else "w") as archive:
        for path in paths:
            archive.add(path, path.name)


def untar(tar_file: str | Path, directory: str | Path) -> None:
    """Unpacks an archive into a folder. Paths that lead out of it are refused."""
    try:
        with tarfile.open(tar_file) as archive:
            archive.extractall(directory, filter="data")
    except tarfile.TarError as error:
        raise ArgumentError(f"untar: {tar_file} cannot be unpacked: {error}") from error


entries(globals(), absent={"normalize_file_list_by_unpacking_tars": "untar(file, folder), then os.listdir(folder)"})
