"""The tags of wheels are true: glibc has had what kernels take from it since the version that the tag names.

The glibc of the machine says with which version each of its functions came, and those of other machines where their packages
for cross-compilation are installed.
"""

import os
import platform
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tedsl.codegen.llvm.export.link import LIBC
from tedsl.codegen.llvm.export.wheel.archive import _GLIBC
from tests.codegen.export import programs

LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0")
OF_MUSL = {"pthread_atfork"}  # asked for weakly: glibc has the other name of it
_SYMBOL = re.compile(r"\s\d+\s(?:FUNC|IFUNC|OBJECT|NOTYPE)\s.*\s([^@\s]+)@@?GLIBC_([\d.]+)")

pytestmark = pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf here")


def library_folder(machine):
    """The folder of the C library of `machine`, or None."""
    if machine == platform.machine():
        loaded = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
        return next((Path(path).parent for path in loaded if path.endswith("/libc.so.6")), None)
    folder = Path(f"/usr/{machine}-linux-gnu/lib")
    return folder if (folder / LIBRARIES[0]).exists() else None


def first_versions(folder):
    """The oldest version of each function of the C library in `folder`."""
    oldest = {}
    for name in LIBRARIES:
        command = ["readelf", "--dyn-syms", "--wide", folder / name]
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
            found = _SYMBOL.search(line)
            if found and " UND " not in line:
                version = tuple(map(int, found[2].split(".")))
                oldest[found[1]] = min(version, oldest.get(found[1], version))
    return oldest


@pytest.mark.parametrize("machine", sorted(_GLIBC))
def test_glibc_had_all_functions_in_the_version_of_the_tag(machine):
    folder = library_folder(machine)
    if folder is None:
        pytest.skip(f"there is no glibc for {machine} here")
    oldest, tag = first_versions(folder), tuple(map(int, _GLIBC[machine].split("_")))
    assert {name for name in LIBC - OF_MUSL if oldest.get(name, (99,)) > tag} == set()
    assert oldest["pthread_create"] < oldest["pthread_cond_clockwait"], "versions are read"


@pytest.mark.skipif(not any(map(shutil.which, ("ld", "cc"))), reason="needs a linker")
def test_extension_modules_ask_for_no_version_and_no_other_library(tmp_path):
    programs.module("symbolic", "sums", "halves").export_library(tmp_path / "kernels-1.0.whl")
    path, = tmp_path.glob("*.whl")
    assert f"manylinux_{_GLIBC[os.uname().machine]}_" in path.name
    with zipfile.ZipFile(path) as archive:
        (tmp_path / "level.so").write_bytes(archive.read("kernels/_level0.abi3.so"))
    about = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", tmp_path / "level.so"], capture_output=True,
                           text=True, check=True).stdout
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", about)) <= set(LIBRARIES)
    assert "No version information found" in about
